// float32 versions of sine, cosine, arc tangent of a quotient and remainder, by the same templates
// over a builder as those of float_functions.h. They hold for the usual arguments, which inRange
// functions tell from the others; for these the C library is asked. Sine and cosine are within 0.8
// units in the last place of the true value, atan2 within 2.1; fmod is exact.
#pragma once

#include "codegen/scalar/float_functions.h"

#define WICK_INLINE inline __attribute__((always_inline))

namespace wick::floats {

// Up to here a multiple of pi/2 is taken away without loss.
inline constexpr float kLargestAngle = 65536.0f;

template <class B>
WICK_INLINE typename B::Mask sinInRange(B b, typename B::V x) {
  return b.le(b.abs(x), b.constant(kLargestAngle));
}

// sin(x + quarters pi / 2) for x in range.
template <class B>
WICK_INLINE typename B::V sinShifted(B b, typename B::V x, int32_t quarters) {
  const auto magic = b.constant(kMagic);
  const auto shifted = b.fma(x, b.constant(0.636619772f), magic);
  const auto whole = b.sub(shifted, magic);
  const auto quarter = b.intAdd(lowBits(b, shifted), b.intConstant(quarters));
  // The rest in two parts. The first difference is exact.
  const auto first = b.fma(whole, b.constant(-0x1.921fb6p+0f), x);
  const auto second_part = b.mul(whole, b.constant(0x1.777a5cp-25f));
  const auto r = b.add(first, second_part);
  // What the product and the sum lost.
  const auto product_rest = b.fma(whole, b.constant(0x1.777a5cp-25f), b.neg(second_part));
  const auto taken = b.sub(r, first);
  const auto sum_rest = b.add(b.sub(first, b.sub(r, taken)), b.sub(second_part, taken));
  const auto low = b.fma(whole, b.constant(0x1.ee59dap-50f), b.add(sum_rest, product_rest));
  const auto z = b.mul(r, r);
  // r + r^3 S, and its slope times what is lacking.
  const auto sine_tail =
      polynomial(b, z, 2.8326574e-06f, -0.00019853072f, 0.008333379f, -0.16666667f);
  const auto half = b.mul(z, b.constant(0.5f));
  const auto one = b.constant(1.0f);
  const auto slope = b.sub(one, half);
  const auto sine = b.add(r, b.fma(b.mul(r, z), sine_tail, b.mul(low, slope)));
  // 1 - z/2 as two numbers.
  const auto cosine_tail = polynomial(b, z, 2.4430661e-05f, -0.0013887301f, 0.041666646f);
  const auto rest = b.sub(b.sub(one, slope), half);
  const auto cosine =
      b.add(slope, b.add(rest, b.fma(b.mul(z, z), cosine_tail, b.neg(b.mul(r, low)))));
  // An odd number of quarters exchanges them, two or three change the sign.
  const auto odd = b.fromBits(b.intShiftLeft(quarter, 31));
  const auto value = b.select(b.lt(b.copysign(one, odd), b.constant(0.0f)), cosine, sine);
  const auto second = b.fromBits(b.intShiftLeft(b.intShiftRight(quarter, 1), 31));
  return b.select(b.lt(b.copysign(one, second), b.constant(0.0f)), b.neg(value), value);
}

template <class B>
WICK_INLINE typename B::V sin(B b, typename B::V x) {
  return b.select(b.eq(x, b.constant(0.0f)), x, sinShifted(b, x, 0));
}
template <class B>
WICK_INLINE typename B::V cos(B b, typename B::V x) {
  return sinShifted(b, x, 1);
}

// For all arguments.
template <class B>
WICK_INLINE typename B::V atan2(B b, typename B::V y, typename B::V x) {
  const auto zero = b.constant(0.0f), one = b.constant(1.0f);
  const auto across = b.abs(x), up = b.abs(y);
  const auto steep = b.lt(across, up);
  const auto small = b.select(steep, across, up), large = b.select(steep, up, across);
  // Sums of the largest numbers would be infinite.
  const auto factor = b.select(b.lt(b.constant(0x1p126f), large), b.constant(0.25f), one);
  const auto a = b.mul(small, factor), c = b.mul(large, factor);
  // atan(a / c) = pi / 4 + atan((a - c) / (a + c)) beyond tan(pi / 8).
  const auto upper = b.lt(b.mul(c, b.constant(0.41421356f)), a);
  const auto quotient = b.div(b.select(upper, b.sub(a, c), a), b.select(upper, b.add(a, c), c));
  // 0 / 0, and differences of infinities.
  const auto t = b.select(b.eq(small, large), zero, quotient);
  const auto z = b.mul(t, t);
  const auto tail =
      polynomial(b, z, -0.06090139f, 0.105991915f, -0.14244393f, 0.19998528f, -0.33333316f);
  const auto arc = b.fma(b.mul(t, z), tail, t);
  const auto eighth = b.select(b.eq(large, zero), zero, b.constant(0.785398163f));
  auto angle = b.select(
      upper, b.add(b.constant(0.785398163f), b.sub(arc, b.constant(0x1.777a5cp-26f))), arc);
  angle = b.select(b.eq(small, large), eighth, angle);
  angle = b.select(steep, b.sub(b.constant(1.57079633f), b.add(angle, b.constant(0x1.777a5cp-25f))),
                   angle);
  const auto behind = b.lt(b.copysign(one, x), zero);
  angle = b.select(
      behind, b.sub(b.constant(3.14159265f), b.add(angle, b.constant(0x1.777a5cp-24f))), angle);
  // NaN when one of them is.
  const auto sum = b.add(across, up);
  return b.select(b.eq(sum, sum), b.copysign(angle, y), sum);
}

// The sign of x. While the quotient is below 2^23 its whole part is off by one at most, and
// differences are exact.
template <class B>
WICK_INLINE typename B::V quotientSize(B b, typename B::V x, typename B::V y) {
  return b.div(b.abs(x), b.abs(y));
}
template <class B>
WICK_INLINE typename B::Mask fmodInRange(B b, typename B::V y, typename B::V quotient) {
  const auto usual = b.lt(b.abs(y), b.constant(kInf));
  return b.lt(b.select(usual, quotient, b.constant(kInf)), b.constant(8388608.0f));
}
template <class B>
WICK_INLINE typename B::V fmodOf(B b, typename B::V x, typename B::V y, typename B::V quotient) {
  const auto size = b.abs(y), zero = b.constant(0.0f);
  // Rounded to a whole number, to the nearest; a remainder below zero says that it was rounded up.
  const auto magic = b.constant(8388608.0f);
  const auto whole = b.sub(b.add(quotient, magic), magic);
  const auto rest = b.fma(b.neg(whole), size, b.abs(x));
  return b.copysign(b.select(b.lt(rest, zero), b.add(rest, size), rest), x);
}

}  // namespace wick::floats

namespace wick::math {

inline float sin(float x) {
  const floats::FloatOps ops;
  return floats::sinInRange(ops, x) ? floats::sin(ops, x) : std::sin(x);
}
inline float cos(float x) {
  const floats::FloatOps ops;
  return floats::sinInRange(ops, x) ? floats::cos(ops, x) : std::cos(x);
}
inline float atan2(float y, float x) {
  return floats::atan2(floats::FloatOps(), y, x);
}
inline float fmod(float x, float y) {
  const floats::FloatOps ops;
  const float quotient = floats::quotientSize(ops, x, y);
  return floats::fmodInRange(ops, y, quotient) ? floats::fmodOf(ops, x, y, quotient)
                                               : std::fmod(x, y);
}

}  // namespace wick::math
#undef WICK_INLINE
