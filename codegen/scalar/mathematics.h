// Scalar definitions: mathematical functions of one and two numbers.
#pragma once

#include <numbers>

#include "codegen/scalar/definition.h"

namespace wick::scalar {

#define WICK_UNARY(Type, text, Base, function) \
  struct Type : Base {                         \
    static constexpr const char* kName = text; \
    WICK_APPLY1(x) { return b.function(x); }   \
  };
WICK_UNARY(Exp2, "exp2", FloatScalar, exp2)
WICK_UNARY(Log2, "log2", FloatOrComplexScalar, log2)
WICK_UNARY(Log10, "log10", FloatOrComplexScalar, log10)
WICK_UNARY(Tan, "tan", FloatOrComplexScalar, tan)
WICK_UNARY(Asin, "asin", FloatOrComplexScalar, asin)
WICK_UNARY(Acos, "acos", FloatOrComplexScalar, acos)
WICK_UNARY(Atan, "atan", FloatOrComplexScalar, atan)
WICK_UNARY(Sinh, "sinh", FloatOrComplexScalar, sinh)
WICK_UNARY(Cosh, "cosh", FloatOrComplexScalar, cosh)
WICK_UNARY(Asinh, "asinh", FloatOrComplexScalar, asinh)
WICK_UNARY(Acosh, "acosh", FloatOrComplexScalar, acosh)
WICK_UNARY(Atanh, "atanh", FloatOrComplexScalar, atanh)
WICK_UNARY(Sqrt, "sqrt", FloatOrComplexScalar, sqrt)
WICK_UNARY(Erfc, "erfc", FloatScalar, erfc)
WICK_UNARY(Erfcx, "erfcx", FloatScalar, erfcx)
WICK_UNARY(Erfinv, "erfinv", FloatScalar, erfinv)
WICK_UNARY(Lgamma, "lgamma", FloatScalar, lgamma)
WICK_UNARY(Digamma, "digamma", FloatScalar, digamma)
WICK_UNARY(I0, "i0", FloatScalar, i0)
WICK_UNARY(I0e, "i0e", FloatScalar, i0e)
WICK_UNARY(I1, "i1", FloatScalar, i1)
WICK_UNARY(I1e, "i1e", FloatScalar, i1e)
WICK_UNARY(Ndtri, "ndtri", FloatScalar, ndtri)
WICK_UNARY(LogNdtr, "log_ndtr", FloatScalar, logNdtr)
#undef WICK_UNARY

// Functions with float32 arithmetic.
#define WICK_UNARY(Type, text, Base, function) \
  struct Type : Base {                         \
    static constexpr const char* kName = text; \
    static constexpr bool kOnLanes = true;     \
    WICK_APPLY1(x) { return b.function(x); }   \
  };
WICK_UNARY(Exp, "exp", FloatOrComplexScalar, exp)
WICK_UNARY(Sin, "sin", FloatOrComplexScalar, sin)
WICK_UNARY(Cos, "cos", FloatOrComplexScalar, cos)
WICK_UNARY(Expm1, "expm1", FloatScalar, expm1)
WICK_UNARY(Log, "log", FloatOrComplexScalar, log)
WICK_UNARY(Log1p, "log1p", FloatScalar, log1p)
WICK_UNARY(Tanh, "tanh", FloatOrComplexScalar, tanh)
WICK_UNARY(Erf, "erf", FloatScalar, erf)
WICK_UNARY(Rsqrt, "rsqrt", FloatOrComplexScalar, rsqrt)
#undef WICK_UNARY

// Functions that take float32 and float64 alone.
#define WICK_UNARY(Type, text, function)         \
  struct Type : FloatScalar {                    \
    static constexpr unsigned kDTypes = kFloats; \
    static constexpr const char* kName = text;   \
    WICK_APPLY1(x) { return b.function(x); }     \
  };
WICK_UNARY(K0, "modified_bessel_k0", k0)
WICK_UNARY(K0e, "scaled_modified_bessel_k0", k0e)
WICK_UNARY(K1, "modified_bessel_k1", k1)
WICK_UNARY(K1e, "scaled_modified_bessel_k1", k1e)
WICK_UNARY(ModifiedI0, "modified_bessel_i0", i0)
WICK_UNARY(ModifiedI1, "modified_bessel_i1", i1)
WICK_UNARY(BesselJ0, "bessel_j0", besselJ0)
WICK_UNARY(BesselJ1, "bessel_j1", besselJ1)
WICK_UNARY(BesselY0, "bessel_y0", besselY0)
WICK_UNARY(BesselY1, "bessel_y1", besselY1)
WICK_UNARY(AiryAi, "airy_ai", airyAi)
#undef WICK_UNARY

struct Atan2 : FloatScalar {
  static constexpr const char* kName = "atan2";
  static constexpr bool kOnLanes = true;
  WICK_APPLY2(y, x) { return b.atan2(y, x); }
};
#define WICK_BINARY(Type, text, Base, dtypes, function) \
  struct Type : Base {                                  \
    static constexpr unsigned kDTypes = dtypes;         \
    static constexpr const char* kName = text;          \
    WICK_APPLY2(x, y) { return b.function(x, y); }      \
  };
WICK_BINARY(Hypot, "hypot", StrictFloatScalar, kAnyFloat, hypot)
WICK_BINARY(Copysign, "copysign", FloatScalar, kAnyFloat, copysign)
WICK_BINARY(Nextafter, "nextafter", StrictFloatScalar, kFloats, nextafter)
WICK_BINARY(Zeta, "zeta", FloatScalar, kFloats, zeta)
WICK_BINARY(Igamma, "igamma", StrictFloatScalar, kAnyFloat, igamma)
WICK_BINARY(Igammac, "igammac", StrictFloatScalar, kAnyFloat, igammac)
WICK_BINARY(ChebyshevT, "chebyshev_polynomial_t", FloatScalar, kFloats, chebyshevT)
WICK_BINARY(ChebyshevU, "chebyshev_polynomial_u", FloatScalar, kFloats, chebyshevU)
WICK_BINARY(ChebyshevV, "chebyshev_polynomial_v", FloatScalar, kFloats, chebyshevV)
WICK_BINARY(ChebyshevW, "chebyshev_polynomial_w", FloatScalar, kFloats, chebyshevW)
WICK_BINARY(HermiteH, "hermite_polynomial_h", FloatScalar, kFloats, hermiteH)
WICK_BINARY(HermiteHe, "hermite_polynomial_he", FloatScalar, kFloats, hermiteHe)
WICK_BINARY(LaguerreL, "laguerre_polynomial_l", FloatScalar, kFloats, laguerreL)
WICK_BINARY(LegendreP, "legendre_polynomial_p", FloatScalar, kFloats, legendreP)
#undef WICK_BINARY

// On [0, 1] rather than [-1, 1].
#define WICK_SHIFTED(Type, text, function)                                         \
  struct Type : FloatScalar {                                                      \
    static constexpr unsigned kDTypes = kFloats;                                   \
    static constexpr const char* kName = text;                                     \
    WICK_APPLY2(x, n) { return b.function(b.sub(b.add(x, x), b.constant(1)), n); } \
  };
WICK_SHIFTED(ShiftedChebyshevT, "shifted_chebyshev_polynomial_t", chebyshevT)
WICK_SHIFTED(ShiftedChebyshevU, "shifted_chebyshev_polynomial_u", chebyshevU)
WICK_SHIFTED(ShiftedChebyshevV, "shifted_chebyshev_polynomial_v", chebyshevV)
WICK_SHIFTED(ShiftedChebyshevW, "shifted_chebyshev_polynomial_w", chebyshevW)
#undef WICK_SHIFTED

struct Polygamma : FloatScalar {
  static constexpr const char* kName = "polygamma";
  static constexpr uint8_t kParams = 1;
  WICK_APPLY2(n, x) { return b.polygamma(n, x); }
};
struct SphericalBesselJ0 : FloatScalar {
  static constexpr unsigned kDTypes = kFloats;
  static constexpr const char* kName = "spherical_bessel_j0";
  WICK_APPLY1(x) {
    auto zero = b.constant(0);
    auto infinite = b.isNan(b.sub(x, x));
    // Near zero the quotient loses nothing, for sin x is x there; only zero itself divides badly.
    auto plain = b.select(b.eq(x, zero), b.constant(1), b.div(b.sin(x), x));
    return b.select(b.both(infinite, b.negate(b.isNan(x))), zero, plain);
  }
};
struct Sinc : FloatOrComplexScalar {
  static constexpr const char* kName = "sinc";
  WICK_APPLY1(x) {
    auto product = b.mul(x, b.constant(std::numbers::pi));
    return b.select(b.eq(x, b.constant(0)), b.constant(1), b.div(b.sin(product), product));
  }
};
struct DegToRad : FloatScalar {
  static constexpr const char* kName = "deg2rad";
  WICK_APPLY1(x) { return b.mul(x, b.constant(std::numbers::pi / 180)); }
};
struct RadToDeg : FloatScalar {
  static constexpr const char* kName = "rad2deg";
  WICK_APPLY1(x) { return b.mul(x, b.constant(180 / std::numbers::pi)); }
};
struct Logit : FloatScalar {
  static constexpr const char* kName = "logit";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) { return b.log(b.div(x, b.sub(b.constant(1), x))); }
};
struct LogitEps : FloatScalar {
  static constexpr const char* kName = "logit";
  static constexpr uint8_t kParams = 6;
  WICK_APPLY3(x, low, high) {
    auto inside = b.select(b.lt(x, low), low, b.select(b.gt(x, high), high, x));
    return b.log(b.div(inside, b.sub(b.constant(1), inside)));
  }
};
struct Entr : FloatScalar {
  static constexpr const char* kName = "entr";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) {
    auto zero = b.constant(0);
    auto inside = b.neg(b.mul(x, b.log(x)));
    auto rest = b.select(b.eq(x, zero), zero, b.constant(-std::numeric_limits<double>::infinity()));
    return b.select(b.either(b.isNan(x), b.gt(x, zero)), inside, rest);
  }
};
struct Ndtr : FloatScalar {
  static constexpr const char* kName = "ndtr";
  WICK_APPLY1(x) {
    // The complementary function keeps the lower tail exact.
    auto t = b.mul(x, b.constant(std::numbers::sqrt2 / 2));
    return b.mul(b.constant(0.5), b.erfc(b.neg(t)));
  }
};
struct Xlogy : FloatScalar {
  static constexpr const char* kName = "xlogy";
  WICK_APPLY2(x, y) {
    auto zero = b.constant(0);
    auto value = b.select(b.eq(x, zero), zero, b.mul(x, b.log(y)));
    return b.select(b.isNan(y), y, value);
  }
};
struct Xlog1py : FloatScalar {
  static constexpr const char* kName = "xlog1py";
  WICK_APPLY2(x, y) {
    auto zero = b.constant(0);
    auto value = b.select(b.eq(x, zero), zero, b.mul(x, b.log1p(y)));
    return b.select(b.isNan(y), y, value);
  }
};
// Equal infinities would give NaN for their difference.
template <class B>
auto isEqualInfinity(B b, typename B::V x, typename B::V y) {
  return b.both(b.eq(x, y), b.isNan(b.sub(x, x)));
}
struct Logaddexp : StrictFloatScalar {
  static constexpr const char* kName = "logaddexp";
  WICK_APPLY2(x, y) {
    auto top = b.select(b.either(b.isNan(x), b.ge(x, y)), x, y);
    auto value = b.add(top, b.log1p(b.exp(b.neg(b.abs(b.sub(x, y))))));
    return b.select(isEqualInfinity(b, x, y), x, value);
  }
};
struct Logaddexp2 : StrictFloatScalar {
  static constexpr const char* kName = "logaddexp2";
  WICK_APPLY2(x, y) {
    auto top = b.select(b.either(b.isNan(x), b.ge(x, y)), x, y);
    auto small = b.log1p(b.exp2(b.neg(b.abs(b.sub(x, y)))));
    auto value = b.add(top, b.mul(small, b.constant(std::numbers::log2e)));
    return b.select(isEqualInfinity(b, x, y), x, value);
  }
};
// Real for complex numbers.
struct Angle : FloatOrComplexScalar {
  static constexpr const char* kName = "angle_cpu";
  WICK_APPLY1(x) {
    if constexpr (B::isComplex()) {
      return std::atan2(b.imagPart(x), b.realPart(x));
    } else {
      auto zero = b.constant(0);
      auto turned = b.select(b.lt(x, zero), b.constant(std::numbers::pi), zero);
      return b.select(b.isNan(x), x, turned);
    }
  }
};
struct Conj : AnyScalar {
  static constexpr unsigned kDTypes = kComplexes;
  static constexpr const char* kName = "conj_cpu";
  WICK_APPLY1(x) { return b.makeComplex(b.realPart(x), -b.imagPart(x)); }
};
struct MakeComplex : AnyScalar {
  static constexpr unsigned kDTypes = kFloats;
  static constexpr const char* kName = "complex_cpu";
  WICK_APPLY2(re, im) { return b.makeComplex(re, im); }
};
struct Polar : AnyScalar {
  static constexpr unsigned kDTypes = kFloats;
  static constexpr const char* kName = "polar_cpu";
  WICK_APPLY2(length, angle) {
    return b.makeComplex(b.mul(length, b.cos(angle)), b.mul(length, b.sin(angle)));
  }
};

}  // namespace wick::scalar
