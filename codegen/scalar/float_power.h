// The power of two float32 numbers, by the same templates over a builder as those of
// float_functions.h: within a unit in the last place of the true value, and equal to it where a
// float32 number is. It holds for the usual arguments, which powInRange() tells from the others;
// for these the C library is asked.
#pragma once

#include "codegen/scalar/float_functions.h"

#define WICK_INLINE inline __attribute__((always_inline))

namespace wick::floats {

template <class B>
struct TwoParts {
  typename B::V high, low;
};

// log2(x) for positive finite x, off by less than 2^-32 of it.
template <class B>
WICK_INLINE TwoParts<B> log2InParts(B b, typename B::V x) {
  const auto one = b.constant(1.0f), zero = b.constant(0.0f);
  const auto denormal = b.lt(x, b.constant(std::numeric_limits<float>::min()));
  const auto scaled = b.select(denormal, b.mul(x, b.constant(8388608.0f)), x);
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const auto bits = b.toBits(scaled);
  const auto e = b.intShiftRight(b.intSub(bits, b.intConstant(0x3f3504f3)), 23);
  const auto m = b.fromBits(b.intSub(bits, b.intShiftLeft(e, 23)));
  const auto power = b.sub(b.toFloat(e), b.select(denormal, b.constant(23.0f), zero));
  // s = (m - 1) / (m + 1) in two parts.
  const auto f = b.sub(m, one);
  const auto sum = b.add(one, m);
  const auto sum_low = b.sub(m, b.sub(sum, one));
  const auto inverse = b.div(one, sum);
  const auto s = b.mul(f, inverse);
  const auto minus = b.neg(s);
  const auto s_low = b.mul(b.fma(minus, sum_low, b.fma(minus, sum, f)), inverse);
  // log2(m) = 2 atanh(s) / ln(2), and atanh(s) = s (1 + z / 3 + z^2 / 5 ...) with z = s^2.
  const auto z = b.mul(s, s);
  const auto z_low = b.fma(s, b.add(s_low, s_low), b.fma(s, s, b.neg(z)));
  const auto third = b.constant(0x1.555556p-2f);
  const auto cubic = b.mul(z, third);
  const auto cubic_low =
      b.fma(z_low, third, b.fma(z, b.constant(-0x1.555556p-27f), b.fma(z, third, b.neg(cubic))));
  const auto tail = polynomial(b, z, 0.0920290872f, 0.111186087f, 0.142855778f, 0.2f);
  const auto rest = b.fma(b.mul(z, z), tail, cubic_low);
  const auto factor = b.add(cubic, rest);
  const auto factor_low = b.sub(rest, b.sub(factor, cubic));
  const auto more = b.mul(s, factor);
  const auto more_low = b.fma(s_low, factor, b.fma(s, factor_low, b.fma(s, factor, b.neg(more))));
  const auto arc = b.add(s, more);
  const auto arc_low = b.add(b.sub(more, b.sub(arc, s)), b.add(more_low, s_low));
  const auto scale = b.constant(0x1.715476p+1f);
  const auto part = b.mul(arc, scale);
  const auto part_low =
      b.fma(arc_low, scale, b.fma(arc, b.constant(0x1.4ae0cp-25f), b.fma(arc, scale, b.neg(part))));
  const auto high = b.add(power, part);
  return {high, b.add(b.sub(part, b.sub(high, power)), part_low)};
}

// Up to here the sum with kMagic is exact for whole numbers, and tells whether they are odd.
inline constexpr float kLargestExponent = 4194303.0f;

template <class B>
WICK_INLINE typename B::Mask powInRange(B b, typename B::V x, typename B::V y) {
  const auto finite = b.lt(b.abs(x), b.constant(kInf));
  return b.le(b.select(finite, b.abs(y), b.constant(kInf)), b.constant(kLargestExponent));
}

// x^y in range.
template <class B>
WICK_INLINE typename B::V powOf(B b, typename B::V x, typename B::V y) {
  const auto zero = b.constant(0.0f), one = b.constant(1.0f), magic = b.constant(kMagic);
  const auto size = b.abs(x);
  const auto log = log2InParts(b, size);
  const auto product = b.mul(y, log.high);
  const auto product_low =
      limit(b, b.fma(y, log.low, b.fma(y, log.high, b.neg(product))), -0.01f, 0.01f);
  // 2^130 is infinite and 2^-160 zero, whatever is added.
  const auto power = limit(b, product, -160.0f, 130.0f);
  const auto whole = b.sub(b.add(power, magic), magic);
  const auto r = b.sub(power, whole);
  // 2^r = 1 + ln(2) r + r^2 P(r), and 2^(r + low) is 2^r (1 + ln(2) low).
  const auto tail = polynomial(b, r, 0.000154617999f, 0.00133875629f, 0.00961806532f, 0.0555036701f,
                               0.240226507f);
  const auto ln2 = b.constant(0.693147182f);
  const auto curve = b.mul(b.mul(r, r), tail);
  const auto slope = b.fma(ln2, b.fma(r, ln2, curve), ln2);
  const auto q = b.fma(r, ln2, b.fma(product_low, slope, curve));
  const auto positive = b.scale(b.add(one, q), whole);
  const auto of_zero =
      b.select(b.lt(y, zero), b.constant(kInf), b.select(b.eq(y, zero), one, zero));
  const auto value = b.select(b.eq(size, zero), of_zero, positive);
  // Numbers below zero have whole powers, which are negative when the exponent is odd.
  const auto shifted = b.add(y, magic);
  const auto is_whole = b.eq(b.sub(shifted, magic), y);
  const auto odd = b.fromBits(b.intShiftLeft(lowBits(b, shifted), 31));
  const auto sign = b.copysign(one, odd);
  const auto of_negative = b.select(is_whole, b.copysign(value, sign),
                                    b.select(b.eq(size, zero), value, b.constant(kNan)));
  return b.select(b.lt(b.copysign(one, x), zero), of_negative, value);
}

}  // namespace wick::floats

namespace wick::math {

inline float pow(float x, float y) {
  const floats::FloatOps ops;
  return floats::powInRange(ops, x, y) ? floats::powOf(ops, x, y) : std::pow(x, y);
}

}  // namespace wick::math
#undef WICK_INLINE
