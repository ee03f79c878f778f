// PlainBuilder<T>: the builder whose values are plain numbers of type T. A scalar definition
// instantiated with it is the eager kernel's arithmetic.
//
// A builder offers types V (a value of the compute dtype), Mask (a boolean) and the functions
// below; every other builder (machine code, text, analysis) offers the same. The compute dtype is
// never float16 or bfloat16: those are computed in float32 and rounded when stored. Integer
// arithmetic wraps. A function that makes no sense for T (sin of an integer) may be named in a
// branch that T never takes; its result is then unspecified.
#pragma once

#include <limits>

#include "codegen/scalar/functions.h"
#include "codegen/scalar/special_functions.h"
#include "core/complex_product.h"
#include "core/convert.h"

namespace wick {

template <class T>
struct RealPart {
  using Type = T;
};
template <class R>
struct RealPart<std::complex<R>> {
  using Type = R;
};

template <class T>
struct PlainBuilder {
  using V = T;
  using Mask = bool;
  using Real = typename RealPart<T>::Type;

  // What the compute dtype is; constant in every builder as far as control flow goes.
  static constexpr bool isInteger() { return std::is_integral_v<T>; }
  static constexpr bool isBool() { return std::is_same_v<T, bool>; }
  static constexpr bool isSigned() { return std::is_signed_v<T>; }
  static constexpr bool isComplex() { return kIsComplex<T>; }
  static constexpr bool isDouble() { return std::is_same_v<Real, double>; }
  static constexpr bool isFloat() { return std::is_floating_point_v<T>; }

  static V constant(double v) { return convert<V>(v); }
  static V lowest() { return std::numeric_limits<Real>::lowest(); }
  static V highest() { return std::numeric_limits<Real>::max(); }

  static V add(V a, V b) {
    if constexpr (isBool()) {
      return a || b;
    } else if constexpr (isInteger()) {
      return static_cast<V>(wide(a) + wide(b));
    } else {
      return a + b;
    }
  }
  static V sub(V a, V b) {
    if constexpr (isBool()) {
      return a != b;
    } else if constexpr (isInteger()) {
      return static_cast<V>(wide(a) - wide(b));
    } else {
      return a - b;
    }
  }
  static V mul(V a, V b) {
    if constexpr (isBool()) {
      return a && b;
    } else if constexpr (isInteger()) {
      return static_cast<V>(wide(a) * wide(b));
    } else if constexpr (isComplex()) {
      return complexProduct(a, b);
    } else {
      return a * b;
    }
  }
  // Floats only.
  static V div(V a, V b) {
    if constexpr (isInteger()) {
      return a;
    } else if constexpr (isComplex()) {
      return divideComplex(a, b);
    } else {
      return a / b;
    }
  }
  // Integers only, toward zero. The caller has made sure that no divisor is zero; one that is gives
  // zero. The minimum divided by -1 wraps.
  static V intDiv(V a, V b) {
    if constexpr (isBool()) {
      return a && b;
    } else if constexpr (isInteger()) {
      if (b == 0) return 0;
      if constexpr (isSigned()) {
        if (b == V(-1)) return neg(a);
      }
      return static_cast<V>(a / b);
    } else {
      return a;
    }
  }
  static V intRem(V a, V b) {
    if constexpr (isInteger() && !isBool()) {
      if (b == 0) return 0;
      if constexpr (isSigned()) {
        if (b == V(-1)) return 0;
      }
      return static_cast<V>(a % b);
    } else {
      return a;
    }
  }
  static V neg(V a) {
    if constexpr (isInteger()) {
      return static_cast<V>(0u - wide(a));
    } else {
      return -a;
    }
  }
  static V abs(V a) {
    if constexpr (isFloat()) {
      return std::fabs(a);
    } else if constexpr (isInteger() && std::is_signed_v<T>) {
      return a < 0 ? neg(a) : a;
    } else {
      return a;
    }
  }

  static Mask eq(V a, V b) { return a == b; }
  static Mask ne(V a, V b) { return a != b; }
  static Mask lt(V a, V b) {
    if constexpr (isComplex())
      return false;
    else
      return a < b;
  }
  static Mask le(V a, V b) {
    if constexpr (isComplex())
      return false;
    else
      return a <= b;
  }
  static Mask gt(V a, V b) { return lt(b, a); }
  static Mask ge(V a, V b) { return le(b, a); }
  static Mask isNan(V a) {
    if constexpr (isInteger())
      return false;
    else
      return a != a;
  }
  static Mask signBit(V a) {
    if constexpr (isFloat())
      return std::signbit(a);
    else
      return lt(a, V(0));
  }
  static Mask both(Mask a, Mask b) { return a & b; }
  static Mask either(Mask a, Mask b) { return a | b; }
  static Mask differ(Mask a, Mask b) { return a != b; }
  static Mask negate(Mask a) { return !a; }
  static V select(Mask m, V a, V b) { return m ? a : b; }
  // 0 or 1.
  static V fromMask(Mask m) { return static_cast<V>(static_cast<Real>(m)); }

  // Integers only; on bool they are the logical operations.
  static V bitAnd(V a, V b) {
    return bits(a, b, [](auto x, auto y) { return x & y; });
  }
  static V bitOr(V a, V b) {
    return bits(a, b, [](auto x, auto y) { return x | y; });
  }
  static V bitXor(V a, V b) {
    return bits(a, b, [](auto x, auto y) { return x ^ y; });
  }
  static V bitNot(V a) {
    if constexpr (isBool()) {
      return !a;
    } else {
      return bits(a, a, [](auto x, auto) { return ~x; });
    }
  }
  // The count wraps at 32 or 64, as the processor's does.
  static V shiftLeft(V a, V count) {
    if constexpr (isInteger() && !isBool()) {
      return static_cast<V>(wide(a) << shiftCount(count));
    } else {
      return a;
    }
  }
  static V shiftRight(V a, V count) {
    if constexpr (isInteger() && !isBool()) {
      using Wide = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;
      return static_cast<V>(static_cast<Wide>(a) >> shiftCount(count));
    } else {
      return a;
    }
  }
  static V gcd(V a, V b) {
    if constexpr (isInteger() && !isBool()) {
      using U = std::make_unsigned_t<V>;
      U x = static_cast<U>(abs(a));
      U y = static_cast<U>(abs(b));
      while (y != 0) {
        U rest = static_cast<U>(x % y);
        x = y;
        y = rest;
      }
      return static_cast<V>(x);
    } else {
      return a;
    }
  }

  // Integers only. A negative exponent gives zero, except for bases whose reciprocal is an integer.
  static V intPow(V base, V exponent) {
    if constexpr (isInteger() && !isBool()) {
      if (exponent < 0) {
        if (base == 1) return 1;
        if (base == V(-1)) return (exponent & 1) != 0 ? V(-1) : V(1);
        return 0;
      }
      V result = 1;
      for (; exponent > 0; exponent = static_cast<V>(exponent >> 1)) {
        if ((exponent & 1) != 0) result = mul(result, base);
        base = mul(base, base);
      }
      return result;
    } else {
      return base;
    }
  }

  // Complex only (the identity and zero for real numbers).
  static Real realPart(V a) {
    if constexpr (isComplex())
      return a.real();
    else
      return a;
  }
  static Real imagPart(V a) {
    if constexpr (isComplex())
      return a.imag();
    else
      return Real(0);
  }
  static Real magnitude(V a) {
    if constexpr (isComplex())
      return std::hypot(a.real(), a.imag());
    else
      return a;
  }
  static std::complex<Real> makeComplex(Real re, Real im) { return {re, im}; }

#define WICK_FUNCTION(name)                      \
  static V name(V a) {                           \
    if constexpr (requires { math::name(a); }) { \
      return math::name(a);                      \
    } else {                                     \
      return a;                                  \
    }                                            \
  }
  WICK_FORALL_UNARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
#define WICK_FUNCTION(name)                         \
  static V name(V a, V b) {                         \
    if constexpr (requires { math::name(a, b); }) { \
      return math::name(a, b);                      \
    } else {                                        \
      return a;                                     \
    }                                               \
  }
  WICK_FORALL_BINARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION

 private:
  // Unsigned and at least as wide as int, so that no promotion back to int can overflow.
  static auto wide(V a) {
    if constexpr (sizeof(V) == 8) {
      return static_cast<uint64_t>(a);
    } else {
      return static_cast<uint32_t>(a);
    }
  }
  static unsigned shiftCount(V count) {
    return static_cast<unsigned>(wide(count) & (sizeof(V) == 8 ? 63 : 31));
  }
  template <class F>
  static V bits(V a, V b, F f) {
    if constexpr (isInteger()) {
      return static_cast<V>(f(a, b));
    } else {
      return a;
    }
  }
  // Scaled by the larger part of the divisor, so that its square neither overflows nor vanishes. A
  // divisor of zero makes both parts NaN.
  static V divideComplex(V a, V b) {
    if constexpr (isComplex()) {
      Real scale = std::max(std::fabs(b.real()), std::fabs(b.imag()));
      return complexQuotient(V(a.real() / scale, a.imag() / scale),
                             V(b.real() / scale, b.imag() / scale));
    } else {
      return a;
    }
  }
};

}  // namespace wick
