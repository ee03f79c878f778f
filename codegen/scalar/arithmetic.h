// Scalar definitions: arithmetic, extrema, comparison, logic, bits, selection.
#pragma once

#include "codegen/scalar/definition.h"

namespace wick::scalar {

struct Add : AnyScalar {
  static constexpr const char* kName = "add";
  WICK_APPLY2(x, y) { return b.add(x, y); }
};
struct AddAlpha : AnyScalar {
  static constexpr const char* kName = "add";
  static constexpr uint8_t kParams = 4;
  WICK_APPLY3(x, y, alpha) { return b.add(x, b.mul(alpha, y)); }
};
struct Sub : NumberScalar {
  static constexpr const char* kName = "sub";
  WICK_APPLY2(x, y) { return b.sub(x, y); }
};
struct SubAlpha : NumberScalar {
  static constexpr const char* kName = "sub";
  static constexpr uint8_t kParams = 4;
  WICK_APPLY3(x, y, alpha) { return b.sub(x, b.mul(alpha, y)); }
};
struct Mul : AnyScalar {
  static constexpr const char* kName = "mul";
  WICK_APPLY2(x, y) { return b.mul(x, y); }
};
struct TrueDiv : FloatOrComplexScalar {
  static constexpr const char* kName = "div";
  WICK_APPLY2(x, y) { return b.div(x, y); }
};
struct TruncDiv : RealScalar {
  static constexpr const char* kName = "div_trunc";
  WICK_APPLY2(x, y) {
    if (b.isInteger()) return b.intDiv(x, y);
    return b.trunc(b.div(x, y));
  }
};
// Rounded toward minus infinity. For floats the quotient is built from the remainder, so that it is
// exact where x / y would round up to the next integer.
struct FloorDiv : RealScalar {
  static constexpr const char* kName = "div_floor";
  static constexpr bool kOnLanes = true;
  WICK_APPLY2(x, y) {
    auto zero = b.constant(0);
    auto one = b.constant(1);
    if (b.isInteger()) {
      auto quotient = b.intDiv(x, y);
      auto rest = b.intRem(x, y);
      auto below = b.both(b.ne(rest, zero), b.differ(b.lt(y, zero), b.lt(rest, zero)));
      return b.select(below, b.sub(quotient, one), quotient);
    }
    auto plain = b.div(x, y);
    auto rest = b.fmod(x, y);
    auto quotient = b.div(b.sub(x, rest), y);
    auto below = b.both(b.ne(rest, zero), b.differ(b.lt(y, zero), b.lt(rest, zero)));
    quotient = b.select(below, b.sub(quotient, one), quotient);
    auto whole = b.floor(quotient);
    whole = b.select(b.gt(b.sub(quotient, whole), b.constant(0.5)), b.add(whole, one), whole);
    whole = b.select(b.eq(quotient, zero), b.copysign(zero, plain), whole);
    return b.select(b.eq(y, zero), plain, whole);
  }
};
// The sign of the divisor.
struct Remainder : RealScalar {
  static constexpr const char* kName = "remainder";
  static constexpr bool kOnLanes = true;
  WICK_APPLY2(x, y) {
    auto zero = b.constant(0);
    auto rest = b.isInteger() ? b.intRem(x, y) : b.fmod(x, y);
    auto off = b.both(b.ne(rest, zero), b.differ(b.lt(y, zero), b.lt(rest, zero)));
    return b.select(off, b.add(rest, y), rest);
  }
};
// The sign of the dividend.
struct Fmod : RealScalar {
  static constexpr const char* kName = "fmod";
  static constexpr bool kOnLanes = true;
  WICK_APPLY2(x, y) {
    if (b.isInteger()) return b.intRem(x, y);
    return b.fmod(x, y);
  }
};
struct Pow : NumberScalar {
  static constexpr const char* kName = "pow";
  static constexpr bool kOnLanes = true;
  static constexpr uint8_t kBare = 2;
  WICK_APPLY2(x, y) {
    if (b.isInteger()) return b.intPow(x, y);
    return b.pow(x, y);
  }
};
struct Square : NumberScalar {
  static constexpr const char* kName = "pow";
  WICK_APPLY1(x) { return b.mul(x, x); }
};
struct Cube : NumberScalar {
  static constexpr const char* kName = "pow";
  WICK_APPLY1(x) { return b.mul(b.mul(x, x), x); }
};
struct InverseSquare : StrictFloatOrComplexScalar {
  static constexpr const char* kName = "pow";
  WICK_APPLY1(x) { return b.div(b.constant(1), b.mul(x, x)); }
};
struct Gcd : IntegerScalar {
  static constexpr const char* kName = "gcd_cpu";
  WICK_APPLY2(x, y) { return b.gcd(x, y); }
};
struct Lcm : IntegerScalar {
  static constexpr const char* kName = "lcm_cpu";
  WICK_APPLY2(x, y) { return b.abs(b.mul(b.intDiv(x, b.gcd(x, y)), y)); }
};

struct Neg : NumberScalar {
  static constexpr const char* kName = "neg_cpu";
  WICK_APPLY1(x) { return b.neg(x); }
};
// Real for complex numbers.
struct Abs : AnyScalar {
  static constexpr const char* kName = "abs_cpu";
  WICK_APPLY1(x) {
    if constexpr (B::isComplex()) {
      return b.magnitude(x);
    } else {
      return b.abs(x);
    }
  }
};
struct Sign : OrderedScalar {
  static constexpr const char* kName = "sign_cpu";
  WICK_APPLY1(x) {
    auto zero = b.constant(0);
    if (b.isBool()) return x;
    return b.sub(b.fromMask(b.gt(x, zero)), b.fromMask(b.lt(x, zero)));
  }
};
struct SgnComplex : AnyScalar {
  static constexpr const char* kName = "sgn_cpu";
  static constexpr unsigned kDTypes = kComplexes;
  WICK_APPLY1(x) {
    auto length = b.magnitude(x);
    auto unit = b.makeComplex(b.realPart(x) / length, b.imagPart(x) / length);
    return b.select(b.eq(x, b.constant(0)), b.constant(0), unit);
  }
};
struct Reciprocal : FloatOrComplexScalar {
  static constexpr const char* kName = "reciprocal_cpu";
  WICK_APPLY1(x) { return b.div(b.constant(1), x); }
};
struct Identity : AnyScalar {
  static constexpr const char* kName = "copy";
  WICK_APPLY1(x) { return x; }
};

struct Ceil : RealScalar {
  static constexpr const char* kName = "ceil";
  WICK_APPLY1(x) { return b.ceil(x); }
};
struct Floor : RealScalar {
  static constexpr const char* kName = "floor";
  WICK_APPLY1(x) { return b.floor(x); }
};
// Halves to even.
struct Round : RealScalar {
  static constexpr const char* kName = "round_cpu";
  WICK_APPLY1(x) { return b.rint(x); }
};
struct Trunc : RealScalar {
  static constexpr const char* kName = "trunc";
  WICK_APPLY1(x) { return b.trunc(x); }
};
struct Frac : StrictFloatScalar {
  static constexpr const char* kName = "frac_cpu";
  WICK_APPLY1(x) { return b.sub(x, b.trunc(x)); }
};
// Rounds to a multiple of a power of ten, which `ten` is when `decimals` is positive and whose
// reciprocal it is otherwise.
struct RoundUp : StrictFloatScalar {
  static constexpr const char* kName = "round_cpu";
  static constexpr uint8_t kParams = 2;
  WICK_APPLY2(x, ten) { return b.div(b.rint(b.mul(x, ten)), ten); }
};
struct RoundDown : StrictFloatScalar {
  static constexpr const char* kName = "round_cpu";
  static constexpr uint8_t kParams = 2;
  WICK_APPLY2(x, ten) { return b.mul(b.rint(b.div(x, ten)), ten); }
};

// NaN wins.
struct Maximum : OrderedScalar {
  static constexpr const char* kName = "maximum_cpu";
  WICK_APPLY2(x, y) {
    if (b.isBool()) return b.add(x, y);
    return b.select(b.either(b.isNan(x), b.ge(x, y)), x, y);
  }
};
struct Minimum : OrderedScalar {
  static constexpr const char* kName = "minimum_cpu";
  WICK_APPLY2(x, y) {
    if (b.isBool()) return b.mul(x, y);
    return b.select(b.either(b.isNan(x), b.le(x, y)), x, y);
  }
};
// NaN loses.
struct Fmax : OrderedScalar {
  static constexpr const char* kName = "fmax_cpu";
  WICK_APPLY2(x, y) {
    if (b.isBool()) return b.add(x, y);
    return b.select(b.either(b.isNan(y), b.ge(x, y)), x, y);
  }
};
struct Fmin : OrderedScalar {
  static constexpr const char* kName = "fmin_cpu";
  WICK_APPLY2(x, y) {
    if (b.isBool()) return b.mul(x, y);
    return b.select(b.either(b.isNan(y), b.le(x, y)), x, y);
  }
};
// The upper bound wins over the lower one, NaN in any input over both.
struct Clamp : RealScalar {
  static constexpr const char* kName = "clamp_cpu";
  static constexpr uint8_t kBare = 6;
  static constexpr bool kOnLanes = true;
  WICK_APPLY3(x, low, high) {
    auto raised = b.select(b.either(b.isNan(x), b.ge(x, low)), x, low);
    // What is asked of `raised` would become a branch for each element where it were asked for NaN.
    return b.select(b.either(b.isNan(high), b.gt(raised, high)), high, raised);
  }
};
struct ClampMin : OrderedScalar {
  static constexpr const char* kName = "clamp_min_cpu";
  static constexpr uint8_t kBare = 2;
  WICK_APPLY2(x, low) { return b.select(b.either(b.isNan(x), b.ge(x, low)), x, low); }
};
struct ClampMax : OrderedScalar {
  static constexpr const char* kName = "clamp_max_cpu";
  static constexpr uint8_t kBare = 2;
  WICK_APPLY2(x, high) { return b.select(b.either(b.isNan(x), b.le(x, high)), x, high); }
};

#define WICK_COMPARISON(Type, text, Base, function) \
  struct Type : Base {                              \
    static constexpr const char* kName = text;      \
    WICK_APPLY2(x, y) { return b.function(x, y); }  \
  };
WICK_COMPARISON(Eq, "eq_cpu", AnyScalar, eq)
WICK_COMPARISON(Ne, "ne_cpu", AnyScalar, ne)
WICK_COMPARISON(Lt, "lt_cpu", OrderedScalar, lt)
WICK_COMPARISON(Le, "le_cpu", OrderedScalar, le)
WICK_COMPARISON(Gt, "gt_cpu", OrderedScalar, gt)
WICK_COMPARISON(Ge, "ge_cpu", OrderedScalar, ge)
#undef WICK_COMPARISON

struct LogicalScalar : AnyScalar {
  static constexpr unsigned kDTypes = kBool;
};
struct LogicalAnd : LogicalScalar {
  static constexpr const char* kName = "logical_and";
  static constexpr uint8_t kMasks = 3;
  WICK_APPLY2(x, y) { return b.both(x, y); }
};
struct LogicalOr : LogicalScalar {
  static constexpr const char* kName = "logical_or";
  static constexpr uint8_t kMasks = 3;
  WICK_APPLY2(x, y) { return b.either(x, y); }
};
struct LogicalXor : LogicalScalar {
  static constexpr const char* kName = "logical_xor";
  static constexpr uint8_t kMasks = 3;
  WICK_APPLY2(x, y) { return b.differ(x, y); }
};
struct LogicalNot : LogicalScalar {
  static constexpr const char* kName = "logical_not";
  static constexpr uint8_t kMasks = 1;
  WICK_APPLY1(x) { return b.negate(x); }
};

struct BitAnd : BitScalar {
  static constexpr const char* kName = "bitwise_and_cpu";
  WICK_APPLY2(x, y) { return b.bitAnd(x, y); }
};
struct BitOr : BitScalar {
  static constexpr const char* kName = "bitwise_or_cpu";
  WICK_APPLY2(x, y) { return b.bitOr(x, y); }
};
struct BitXor : BitScalar {
  static constexpr const char* kName = "bitwise_xor_cpu";
  WICK_APPLY2(x, y) { return b.bitXor(x, y); }
};
struct BitNot : BitScalar {
  static constexpr const char* kName = "bitwise_not_cpu";
  WICK_APPLY1(x) { return b.bitNot(x); }
};
struct ShiftLeft : IntegerScalar {
  static constexpr const char* kName = "lshift_cpu";
  WICK_APPLY2(x, y) { return b.shiftLeft(x, y); }
};
struct ShiftRight : IntegerScalar {
  static constexpr const char* kName = "rshift_cpu";
  WICK_APPLY2(x, y) { return b.shiftRight(x, y); }
};
struct Where : AnyScalar {
  static constexpr const char* kName = "where_cpu";
  static constexpr uint8_t kMasks = 1;
  static constexpr uint8_t kNumInputs = 3;
  template <class B>
  static auto apply(B b, typename B::Mask condition, typename B::V x, typename B::V y) {
    return b.select(condition, x, y);
  }
};
struct MaskedFill : AnyScalar {
  static constexpr const char* kName = "masked_fill";
  static constexpr uint8_t kMasks = 2;
  static constexpr uint8_t kParams = 4;
  static constexpr uint8_t kNumInputs = 3;
  template <class B>
  static auto apply(B b, typename B::V x, typename B::Mask mask, typename B::V value) {
    return b.select(mask, value, x);
  }
};
// From the nearer end, so that weight 1 gives `end` exactly.
struct Lerp : StrictFloatOrComplexScalar {
  static constexpr const char* kName = "lerp_kernel";
  WICK_APPLY3(x, end, weight) {
    auto span = b.sub(end, x);
    auto near = b.add(x, b.mul(weight, span));
    auto far = b.sub(end, b.mul(span, b.sub(b.constant(1), weight)));
    if constexpr (B::isComplex()) {
      return b.select(b.magnitude(weight) < 0.5, near, far);
    } else {
      return b.select(b.lt(weight, b.constant(0.5)), near, far);
    }
  }
};
struct LerpNumber : Lerp {
  static constexpr uint8_t kParams = 4;
};
struct Addcmul : NumberScalar {
  static constexpr const char* kName = "addcmul_cpu_out";
  static constexpr uint8_t kParams = 8;
  WICK_APPLY4(x, y, z, value) { return b.add(x, b.mul(b.mul(value, y), z)); }
};
struct Addcdiv : StrictFloatOrComplexScalar {
  static constexpr const char* kName = "addcdiv_cpu_out";
  static constexpr uint8_t kParams = 8;
  WICK_APPLY4(x, y, z, value) { return b.add(x, b.div(b.mul(value, y), z)); }
};

struct IsNan : AnyScalar {
  static constexpr const char* kName = "isnan";
  WICK_APPLY1(x) { return b.isNan(x); }
};
struct IsReal : AnyScalar {
  static constexpr const char* kName = "isreal";
  WICK_APPLY1(x) {
    if constexpr (B::isComplex()) {
      return b.imagPart(x) == 0;
    } else {
      return b.eq(b.constant(0), b.constant(0));
    }
  }
};
// Infinite or NaN: a number that minus itself is not zero.
template <class B>
auto isSpecial(B b, typename B::V x) {
  return b.isNan(b.sub(x, x));
}
struct IsFinite : AnyScalar {
  static constexpr const char* kName = "isfinite";
  WICK_APPLY1(x) { return b.negate(isSpecial(b, x)); }
};
struct IsInf : AnyScalar {
  static constexpr const char* kName = "isinf";
  WICK_APPLY1(x) {
    if constexpr (B::isComplex()) {
      return std::isinf(b.realPart(x)) || std::isinf(b.imagPart(x));
    } else {
      return b.both(isSpecial(b, x), b.negate(b.isNan(x)));
    }
  }
};
struct IsPosInf : OrderedScalar {
  static constexpr const char* kName = "isposinf";
  WICK_APPLY1(x) { return b.both(isSpecial(b, x), b.gt(x, b.constant(0))); }
};
struct IsNegInf : OrderedScalar {
  static constexpr const char* kName = "isneginf";
  WICK_APPLY1(x) { return b.both(isSpecial(b, x), b.lt(x, b.constant(0))); }
};
struct SignBit : OrderedScalar {
  static constexpr const char* kName = "signbit_cpu";
  WICK_APPLY1(x) { return b.signBit(x); }
};
struct NanToNum : StrictFloatScalar {
  static constexpr const char* kName = "nan_to_num";
  static constexpr uint8_t kParams = 14;
  WICK_APPLY4(x, nan, high, low) {
    auto replaced = b.select(b.gt(x, b.constant(0)), high, low);
    replaced = b.select(b.isNan(x), nan, replaced);
    return b.select(isSpecial(b, x), replaced, x);
  }
};
struct Heaviside : OrderedScalar {
  static constexpr const char* kName = "heaviside_cpu";
  WICK_APPLY2(x, values) {
    auto zero = b.constant(0);
    return b.select(b.eq(x, zero), values, b.fromMask(b.gt(x, zero)));
  }
};

}  // namespace wick::scalar
