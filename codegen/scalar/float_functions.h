// float32 versions of the functions that networks spend their time in, without branches, so that
// the loops around them vectorize. Within one unit in the last place of the true value (expm1
// within 1.6, log1p within 1.5), denormal results included; infinities, NaN and signed zeros are
// exact.
//
// They are templates over a builder with the types V (float32), I (int32) and Mask: FloatOps runs
// them on plain numbers, ExprBuilder records them. Every engine computes the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Loops vectorize only when all of a function's body is in them.
#define WICK_INLINE inline __attribute__((always_inline))

namespace wick::floats {

struct FloatOps {
  using V = float;
  using I = int32_t;
  using Mask = bool;
  static V constant(float v) { return v; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static V div(V a, V b) { return a / b; }
  static V fma(V a, V b, V c) { return __builtin_fmaf(a, b, c); }
  static V abs(V a) { return std::fabs(a); }
  static V sqrt(V a) { return std::sqrt(a); }
  static V copysign(V a, V b) { return std::copysign(a, b); }
  static Mask eq(V a, V b) { return a == b; }
  static Mask lt(V a, V b) { return a < b; }
  static Mask le(V a, V b) { return a <= b; }
  static V select(Mask m, V a, V b) { return m ? a : b; }
  static I toBits(V a) { return std::bit_cast<int32_t>(a); }
  static V fromBits(I a) { return std::bit_cast<float>(a); }
  static V toFloat(I a) { return static_cast<float>(a); }
  static I intConstant(int32_t v) { return v; }
  // Wrapping.
  static I intAdd(I a, I b) {
    return static_cast<I>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
  static I intSub(I a, I b) {
    return static_cast<I>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
  }
  static I intShiftLeft(I a, int n) { return static_cast<I>(static_cast<uint32_t>(a) << n); }
  static I intShiftRight(I a, int n) { return a >> n; }
};

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kLn2High =
    0x1.62e4p-1f;  // few bits, so that products with integers are exact
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;

// 2^n for -126 <= n <= 127.
template <class B>
WICK_INLINE typename B::V powerOfTwo(B b, typename B::I n) {
  return b.fromBits(b.intShiftLeft(b.intAdd(n, b.intConstant(127)), 23));
}

template <class B>
WICK_INLINE typename B::V limit(B b, typename B::V x, float low, float high) {
  x = b.select(b.lt(b.constant(high), x), b.constant(high), x);
  return b.select(b.lt(x, b.constant(low)), b.constant(low), x);
}

template <class B>
struct Reduced {
  typename B::I n;  // x = n ln 2 + r; arbitrary when x is NaN
  typename B::V r;  // |r| <= ln(2) / 2
};
template <class B>
WICK_INLINE Reduced<B> reduce(B b, typename B::V x) {
  // Adding 1.5 * 2^23 leaves the rounded integer in the low bits: a conversion without a cast that
  // NaN would make undefined.
  auto magic = b.constant(12582912.0f);
  auto shifted = b.fma(x, b.constant(1.44269504088896341f), magic);
  auto n = b.intSub(b.toBits(shifted), b.intConstant(std::bit_cast<int32_t>(12582912.0f)));
  auto whole = b.sub(shifted, magic);
  return {n, b.fma(whole, b.constant(-kLn2Low), b.fma(whole, b.constant(-kLn2High), x))};
}

// Horner's scheme, the highest coefficient first.
template <class B, class... Rest>
WICK_INLINE typename B::V polynomial(B b, typename B::V x, float first, Rest... rest) {
  auto p = b.constant(first);
  ((p = b.fma(x, p, b.constant(rest))), ...);
  return p;
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, so that e^r is off by less than 2^-28 of it. The
// coefficients, as those of erf, minimize the largest error; each is rounded before the next is
// fitted.
template <class B>
WICK_INLINE typename B::V expTail(B b, typename B::V r) {
  return polynomial(b, r, 0.00138630904f, 0.00836743414f, 0.0416672453f, 0.166665345f, 0.5f);
}

// For -104 <= x <= 89.
template <class B>
WICK_INLINE typename B::V expInRange(B b, typename B::V x) {
  auto e = reduce(b, x);
  auto value = b.add(b.constant(1.0f), b.fma(b.mul(e.r, e.r), expTail(b, e.r), e.r));
  // In two steps, for n reaches 128 and denormal results need n below -126. For NaN the halves are
  // arbitrary, but NaN times anything is NaN.
  auto half = b.intShiftRight(e.n, 1);
  return b.mul(b.mul(value, powerOfTwo(b, half)), powerOfTwo(b, b.intSub(e.n, half)));
}

template <class B>
WICK_INLINE typename B::V exp(B b, typename B::V x) {
  return expInRange(b, limit(b, x, -104.0f, 89.0f));
}

template <class B>
WICK_INLINE typename B::V expm1(B b, typename B::V x) {
  auto e = reduce(b, limit(b, x, -20.0f, 89.0f));
  auto q = b.fma(b.mul(e.r, e.r), expTail(b, e.r), e.r);
  // 2 (t q + (t - 1/2)) with t = 2^(n-1): t stays finite for the largest n.
  auto t = powerOfTwo(b, b.intSub(e.n, b.intConstant(1)));
  auto value = b.mul(b.constant(2.0f), b.fma(t, q, b.sub(t, b.constant(0.5f))));
  return b.select(b.eq(x, b.constant(0.0f)), x, value);
}

template <class B>
WICK_INLINE typename B::V log(B b, typename B::V x) {
  auto denormal = b.lt(x, b.constant(std::numeric_limits<float>::min()));
  auto scaled = b.select(denormal, b.mul(x, b.constant(8388608.0f)), x);
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  auto bits = b.toBits(scaled);
  auto e = b.intShiftRight(b.intSub(bits, b.intConstant(0x3f3504f3)), 23);
  auto m = b.fromBits(b.intSub(bits, b.intShiftLeft(e, 23)));
  auto power = b.sub(b.toFloat(e), b.select(denormal, b.constant(23.0f), b.constant(0.0f)));
  // log m = 2 atanh(s) with s = (m - 1) / (m + 1).
  auto one = b.constant(1.0f);
  auto f = b.sub(m, one);
  auto s = b.div(f, b.add(m, one));
  auto z = b.mul(s, s);
  auto p = polynomial(b, z, 2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3);
  // 2s = f - f s exactly enough that the leading term keeps all bits of f.
  auto tail = b.mul(s, b.sub(b.mul(z, p), f));
  auto rest = b.add(f, b.fma(power, b.constant(kLn2Low), tail));
  auto value = b.fma(power, b.constant(kLn2High), rest);
  auto zero = b.constant(0.0f);
  value = b.select(b.eq(x, b.constant(kInf)), b.constant(kInf), value);
  value = b.select(b.eq(x, zero), b.constant(-kInf), value);
  return b.select(b.le(zero, x), value, b.constant(kNan));
}

template <class B>
WICK_INLINE typename B::V log1p(B b, typename B::V x) {
  // The logarithm of the rounded sum, corrected by what the rounding lost.
  auto one = b.constant(1.0f);
  auto u = b.add(one, x);
  auto lost = b.sub(x, b.sub(u, one));
  auto value = b.add(log(b, u), b.div(lost, u));
  value = b.select(b.eq(u, one), x, value);
  value = b.select(b.eq(x, b.constant(kInf)), b.constant(kInf), value);
  value = b.select(b.eq(x, b.constant(-1.0f)), b.constant(-kInf), value);
  // Of two NaN that were added, either may be the result.
  return b.select(b.le(b.constant(-1.0f), x), value, b.constant(kNan));
}

template <class B>
WICK_INLINE typename B::V sigmoid(B b, typename B::V x) {
  // One over d = 1 + e^-x, which is first made 2^30 times smaller: neither it nor its inverse
  // leaves the range of normal numbers then.
  constexpr int kScale = 30;
  auto one = b.constant(1.0f);
  auto scaled_one = b.constant(1.0f / (1 << kScale));
  auto e = reduce(b, limit(b, b.sub(b.constant(0.0f), x), -60.0f, 104.0f));
  auto q = b.fma(b.mul(e.r, e.r), expTail(b, e.r), e.r);
  auto t = powerOfTwo(b, b.intSub(e.n, b.intConstant(kScale)));
  // d = t + 1 + t q as a sum of two numbers.
  auto whole = b.add(t, scaled_one);
  auto lost = b.sub(scaled_one, b.sub(whole, t));
  auto d = b.fma(t, q, whole);
  auto d_low = b.add(b.fma(t, q, b.sub(whole, d)), lost);
  auto inverse = b.div(one, d);
  auto minus = b.sub(b.constant(0.0f), inverse);
  auto rest = b.fma(minus, d_low, b.fma(minus, d, one));
  return b.mul(b.fma(inverse, rest, inverse), scaled_one);
}

template <class B>
WICK_INLINE typename B::V tanh(B b, typename B::V x) {
  auto one = b.constant(1.0f);
  auto a = b.abs(x);
  auto limited = b.select(b.lt(b.constant(10.0f), a), b.constant(10.0f), a);
  // Near zero a polynomial in x^2; beyond 1 one minus 2 / (e^2x + 1), whose errors weigh less the
  // smaller it is.
  auto z = b.mul(limited, limited);
  auto p = polynomial(b, z, -0.000353649321f, 0.00228545931f, -0.00792558305f, 0.021473689f,
                      -0.0538756847f, 0.13332285f, -0.333332926f);
  auto near = b.fma(b.mul(limited, z), p, limited);
  auto e = reduce(b, b.add(limited, limited));
  auto power = b.add(one, b.fma(b.mul(e.r, e.r), expTail(b, e.r), e.r));
  auto d = b.fma(power, powerOfTwo(b, e.n), one);
  auto far = b.sub(one, b.div(b.constant(2.0f), d));
  return b.copysign(b.select(b.lt(a, one), near, far), x);
}

template <class B>
WICK_INLINE typename B::V erf(B b, typename B::V x) {
  auto a = b.abs(x);
  auto four = b.constant(4.0f);
  auto beyond = b.lt(four, a);
  auto limited = b.select(beyond, four, a);
  // Near zero x and a polynomial in x^2 times x; beyond 1 the logarithm of the complement is one
  // in x.
  auto z = b.mul(limited, limited);
  auto p = polynomial(b, z, 7.80690316e-05f, -0.00079978531f, 0.0051871622f, -0.0268533472f,
                      0.112835787f, -0.37612626f, 0.128379166f);
  // The exponent as a sum of two numbers: its rounding would show in the result.
  auto constant = b.constant(0.0003032130189239979f);
  auto slope = polynomial(b, limited, 1.6140617162818671e-06f, -4.559062290354632e-05f,
                          0.0005927695310674608f, -0.004740222357213497f, 0.02636471763253212f,
                          -0.10997824370861053f, -0.6319370865821838f, -1.1301666498184204f);
  auto q = b.fma(limited, slope, constant);
  auto q_low = b.add(b.fma(limited, slope, b.sub(b.constant(0.0f), q)), constant);
  // Without exp's limits: they would run on lanes that are not selected, where they give denormal
  // numbers, which are slow.
  auto one = b.constant(1.0f);
  auto e = expInRange(b, q);
  auto complement = b.sub(one, b.fma(e, q_low, e));
  auto value = b.select(b.lt(a, one), b.fma(limited, p, limited), complement);
  return b.copysign(b.select(beyond, one, value), x);
}

template <class B>
WICK_INLINE typename B::V rsqrt(B b, typename B::V x) {
  // Scaled by a power of four where rests would leave the range of numbers.
  auto tiny = b.lt(x, b.constant(0x1p-100f));
  auto scaled = b.select(tiny, b.mul(x, b.constant(0x1p100f)), x);
  auto one = b.constant(1.0f);
  auto root = b.sqrt(scaled);
  auto inverse = b.div(one, root);
  // What the rounding of the quotient and of the root took, relative to the result.
  auto minus = b.sub(b.constant(0.0f), root);
  auto lost = b.mul(b.mul(b.fma(minus, root, scaled), inverse), b.mul(inverse, b.constant(0.5f)));
  auto rest = b.sub(b.fma(minus, inverse, one), lost);
  auto value = b.fma(inverse, rest, inverse);
  // Of zero and infinity there are no rests.
  value = b.select(b.lt(scaled, b.constant(kInf)), value, inverse);
  value = b.select(b.lt(b.constant(0.0f), scaled), value, inverse);
  return b.select(tiny, b.mul(value, b.constant(0x1p50f)), value);
}

}  // namespace wick::floats

namespace wick::math {

WICK_INLINE float exp(float x) {
  return floats::exp(floats::FloatOps(), x);
}
WICK_INLINE float expm1(float x) {
  return floats::expm1(floats::FloatOps(), x);
}
WICK_INLINE float log(float x) {
  return floats::log(floats::FloatOps(), x);
}
WICK_INLINE float log1p(float x) {
  return floats::log1p(floats::FloatOps(), x);
}
WICK_INLINE float sigmoid(float x) {
  return floats::sigmoid(floats::FloatOps(), x);
}
WICK_INLINE float tanh(float x) {
  return floats::tanh(floats::FloatOps(), x);
}
WICK_INLINE float erf(float x) {
  return floats::erf(floats::FloatOps(), x);
}
WICK_INLINE float rsqrt(float x) {
  return floats::rsqrt(floats::FloatOps(), x);
}

}  // namespace wick::math
#undef WICK_INLINE
