// Python's math and cmath on numbers that are not tensors.
#include <algorithm>
#include <numbers>
#include <numeric>

#include "core/complex_product.h"
#include "core/scalar.h"
#include "runtime/ops/arithmetic.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

using I = int64_t;
using F = double;
using C = Complex;
using S = Scalar;

template <class Op>
struct OfScalar {
  Scalar operator()(const Scalar& a) const {
    if constexpr (requires { Op()(C()); }) {
      if (a.isComplex()) return Scalar(Op()(a.to<C>()));
    }
    WICK_CHECK(!a.isComplex(), "expected int or float, got complex");
    return Scalar(Op()(a.toDouble()));
  }
};

// A struct that applies `function` to doubles (and, in the second form, to complex numbers too).
#define WICK_REAL_FUNCTION(Name, function)          \
  struct Name {                                     \
    F operator()(F a) const { return function(a); } \
  };
#define WICK_COMPLEX_FUNCTION(Name, function)       \
  struct Name {                                     \
    F operator()(F a) const { return function(a); } \
    C operator()(C a) const { return function(a); } \
  };

WICK_COMPLEX_FUNCTION(Sqrt, std::sqrt)
WICK_COMPLEX_FUNCTION(Exp, std::exp)
WICK_COMPLEX_FUNCTION(Log, std::log)
WICK_COMPLEX_FUNCTION(Log10, std::log10)
WICK_COMPLEX_FUNCTION(Sin, std::sin)
WICK_COMPLEX_FUNCTION(Cos, std::cos)
WICK_COMPLEX_FUNCTION(Tan, std::tan)
WICK_COMPLEX_FUNCTION(Asin, std::asin)
WICK_COMPLEX_FUNCTION(Acos, std::acos)
WICK_COMPLEX_FUNCTION(Atan, std::atan)
WICK_COMPLEX_FUNCTION(Sinh, std::sinh)
WICK_COMPLEX_FUNCTION(Cosh, std::cosh)
WICK_COMPLEX_FUNCTION(Tanh, std::tanh)
WICK_COMPLEX_FUNCTION(Asinh, std::asinh)
WICK_COMPLEX_FUNCTION(Acosh, std::acosh)
WICK_COMPLEX_FUNCTION(Atanh, std::atanh)
WICK_REAL_FUNCTION(Log1p, std::log1p)
WICK_REAL_FUNCTION(Log2, std::log2)
WICK_REAL_FUNCTION(Expm1, std::expm1)
WICK_REAL_FUNCTION(Erf, std::erf)
WICK_REAL_FUNCTION(Erfc, std::erfc)
WICK_REAL_FUNCTION(Gamma, std::tgamma)
WICK_REAL_FUNCTION(Fabs, std::fabs)

struct Lgamma {
  // Not std::lgamma, which writes the sign to a global variable of all threads.
  F operator()(F a) const {
    int sign = 0;
    return ::lgamma_r(a, &sign);
  }
};
struct Degrees {
  F operator()(F a) const { return a * (180.0 / std::numbers::pi); }
};
struct Radians {
  F operator()(F a) const { return a * (std::numbers::pi / 180.0); }
};
// Halves go to the even neighbour.
struct Round {
  F operator()(F a) const { return std::nearbyint(a); }
};
struct Angle {
  F operator()(F a) const { return a < 0 ? std::numbers::pi : 0.0; }
  F operator()(C a) const { return std::arg(a); }
};

template <F (*Rounding)(F)>
Scalar roundedToInt(Scalar a) {
  WICK_CHECK(!a.isComplex(), "expected int or float, got complex");
  return a.isDouble() ? Scalar(exactInt(Rounding(a.toDouble()))) : Scalar(a.toInt());
}
F floorOf(F a) {
  return std::floor(a);
}
F ceilOf(F a) {
  return std::ceil(a);
}

F realOf(const Scalar& a) {
  WICK_CHECK(!a.isComplex(), "expected int or float, got complex");
  return a.toDouble();
}

struct Atan2 {
  F operator()(F a, F b) const { return std::atan2(a, b); }
};
struct CopySign {
  F operator()(F a, F b) const { return std::copysign(a, b); }
};
struct Fmod {
  F operator()(F a, F b) const { return std::fmod(a, b); }
};
struct IeeeRemainder {
  F operator()(F a, F b) const { return std::remainder(a, b); }
};
struct Hypot {
  F operator()(F a, F b) const { return std::hypot(a, b); }
};
struct Polar {
  C operator()(F length, F angle) const {
    return {length * std::cos(angle), length * std::sin(angle)};
  }
};
struct LogBase {
  F operator()(F a, F b) const { return std::log(a) / std::log(b); }
  C operator()(C a, C b) const { return complexQuotient(std::log(a), std::log(b)); }
  // A real number keeps its real logarithm, which is NaN below zero.
  C operator()(C a, F b) const { return std::log(a) / std::log(b); }
  C operator()(F a, C b) const { return complexQuotient(C(std::log(a)), std::log(b)); }
};
template <class Op>
struct OfScalars {
  auto operator()(const Scalar& a, const Scalar& b) const { return Op()(realOf(a), realOf(b)); }
};

I factorial(I n) {
  WICK_CHECK(n >= 0, "factorial() not defined for negative values");
  // From 66 on all 64 bits of the product are zero.
  if (n >= 66) return 0;
  I out = 1;
  for (I i = 2; i <= n; ++i) out = wrapMul(out, i);
  return out;
}
I gcd(I a, I b) {
  uint64_t x = a < 0 ? -static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t y = b < 0 ? -static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  return static_cast<I>(std::gcd(x, y));
}
std::tuple<F, F> modf(F a) {
  F whole = 0;
  F part = std::modf(a, &whole);
  return {part, whole};
}
std::tuple<F, I> frexp(F a) {
  if (!std::isfinite(a)) return {a, 0};
  int exponent = 0;
  F m = std::frexp(a, &exponent);
  return {m, exponent};
}
F ldexp(F a, I exponent) {
  // Beyond these no finite double remains, and the function takes an int.
  return std::ldexp(a, static_cast<int>(std::clamp<I>(exponent, -5000, 5000)));
}
Scalar polarScalars(const Scalar& a, const Scalar& b) {
  return Polar()(realOf(a), realOf(b));
}
F logScalars(const Scalar& a, const Scalar& b) {
  return LogBase()(realOf(a), realOf(b));
}

#define WICK_MATH(name, Op)                                              \
  {"aten::" name ".int(int a) -> float", kApply<Op, F>},                 \
      {"aten::" name ".float(float a) -> float", kApply<Op, F>}, {       \
    "aten::" name ".Scalar(Scalar a) -> Scalar", kApply<OfScalar<Op>, S> \
  }
#define WICK_CMATH(name, result, Op)                              \
  WICK_MATH(name, Op), {                                          \
    "aten::" name ".complex(complex a) -> " result, kApply<Op, C> \
  }
#define WICK_MATH2(name, scalar_overload, Op)                                                  \
  {"aten::" name ".int(int a, int b) -> float", kApply<Op, F, F>},                             \
      {"aten::" name ".float(float a, float b) -> float", kApply<Op, F, F>},                   \
      {"aten::" name ".int_float(int a, float b) -> float", kApply<Op, F, F>},                 \
      {"aten::" name ".float_int(float a, int b) -> float", kApply<Op, F, F>}, {               \
    "aten::" name scalar_overload "(Scalar a, Scalar b) -> float", kApply<OfScalars<Op>, S, S> \
  }
#define WICK_LOG_BASE(a, b, result, A, B) \
  { "aten::log." a "_" b "(" a " a, " b " b) -> " result, kApply<LogBase, A, B> }

const OperatorRecord kMathRecords[] = {
    WICK_CMATH("sqrt", "complex", Sqrt),
    WICK_CMATH("exp", "complex", Exp),
    WICK_CMATH("log", "complex", Log),
    WICK_CMATH("log10", "complex", Log10),
    WICK_CMATH("sin", "complex", Sin),
    WICK_CMATH("cos", "complex", Cos),
    WICK_CMATH("tan", "complex", Tan),
    WICK_CMATH("asin", "complex", Asin),
    WICK_CMATH("acos", "complex", Acos),
    WICK_CMATH("atan", "complex", Atan),
    WICK_CMATH("sinh", "complex", Sinh),
    WICK_CMATH("cosh", "complex", Cosh),
    WICK_CMATH("tanh", "complex", Tanh),
    WICK_CMATH("asinh", "complex", Asinh),
    WICK_CMATH("acosh", "complex", Acosh),
    WICK_CMATH("atanh", "complex", Atanh),
    WICK_CMATH("angle", "float", Angle),
    WICK_MATH("log1p", Log1p),
    WICK_MATH("log2", Log2),
    WICK_MATH("expm1", Expm1),
    WICK_MATH("erf", Erf),
    WICK_MATH("erfc", Erfc),
    WICK_MATH("gamma", Gamma),
    WICK_MATH("lgamma", Lgamma),
    WICK_MATH("fabs", Fabs),
    WICK_MATH("degrees", Degrees),
    WICK_MATH("radians", Radians),
    WICK_MATH("round", Round),
    WICK_MATH2("atan2", ".Scalar_Scalar", Atan2),
    WICK_MATH2("copysign", "", CopySign),
    WICK_MATH2("fmod", "", Fmod),
    WICK_MATH2("mathremainder", "", IeeeRemainder),
    WICK_MATH2("hypot", ".Scalar_Scalar", Hypot),
    {"aten::real.complex(complex a) -> float", WICK_LAMBDA([](C a) { return a.real(); })},
    {"aten::imag.complex(complex a) -> float", WICK_LAMBDA([](C a) { return a.imag(); })},
    {"aten::polar.int(int a, int b) -> complex", kApply<Polar, F, F>},
    {"aten::polar.float(float a, float b) -> complex", kApply<Polar, F, F>},
    {"aten::polar.int_float(int a, float b) -> complex", kApply<Polar, F, F>},
    {"aten::polar.float_int(float a, int b) -> complex", kApply<Polar, F, F>},
    {"aten::polar.Scalar_Scalar(Scalar a, Scalar b) -> Scalar", WICK_KERNEL(polarScalars)},
    // PyTorch's order: the first one that fits takes tensors, which become numbers then.
    WICK_LOG_BASE("int", "int", "float", F, F),
    WICK_LOG_BASE("float", "float", "float", F, F),
    WICK_LOG_BASE("complex", "complex", "complex", C, C),
    WICK_LOG_BASE("int", "float", "float", F, F),
    WICK_LOG_BASE("float", "int", "float", F, F),
    WICK_LOG_BASE("int", "complex", "complex", F, C),
    WICK_LOG_BASE("complex", "int", "complex", C, F),
    WICK_LOG_BASE("float", "complex", "complex", F, C),
    WICK_LOG_BASE("complex", "float", "complex", C, F),
    {"aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float", WICK_KERNEL(logScalars)},
    {"aten::floor.int(int a) -> int", WICK_LAMBDA([](I a) { return a; })},
    {"aten::floor.float(float a) -> int", WICK_LAMBDA([](F a) { return exactInt(std::floor(a)); })},
    {"aten::floor.Scalar(Scalar a) -> Scalar", WICK_KERNEL(roundedToInt<floorOf>)},
    {"aten::ceil.int(int a) -> int", WICK_LAMBDA([](I a) { return a; })},
    {"aten::ceil.float(float a) -> int", WICK_LAMBDA([](F a) { return exactInt(std::ceil(a)); })},
    {"aten::ceil.Scalar(Scalar a) -> Scalar", WICK_KERNEL(roundedToInt<ceilOf>)},
    {"aten::factorial.int(int a) -> int", WICK_KERNEL(factorial)},
    {"aten::gcd.int(int a, int b) -> int", WICK_KERNEL(gcd)},
    {"aten::modf(float a) -> (float, float)", WICK_KERNEL(modf)},
    {"aten::frexp(float a) -> (float, int)", WICK_KERNEL(frexp)},
    {"aten::ldexp(float x, int i) -> float", WICK_KERNEL(ldexp)},
    {"aten::isnan.float(float a) -> bool", WICK_LAMBDA([](F a) { return std::isnan(a); })},
    {"aten::isnan.complex(complex a) -> bool",
     WICK_LAMBDA([](C a) { return std::isnan(a.real()) || std::isnan(a.imag()); })},
    {"aten::isinf.float(float a) -> bool", WICK_LAMBDA([](F a) { return std::isinf(a); })},
    {"aten::isinf.complex(complex a) -> bool",
     WICK_LAMBDA([](C a) { return std::isinf(a.real()) || std::isinf(a.imag()); })},
    {"aten::isfinite.float(float a) -> bool", WICK_LAMBDA([](F a) { return std::isfinite(a); })},
    {"aten::isfinite.complex(complex a) -> bool",
     WICK_LAMBDA([](C a) { return std::isfinite(a.real()) && std::isfinite(a.imag()); })},
};
// The front end's name for math.fabs.
const OperatorAlias kMathAliases[] = {{"prim::fabs", "aten::fabs"}};
const RegisterOperators kMathRegistered(kMathRecords, kMathAliases);

}  // namespace

}  // namespace wick::ops
