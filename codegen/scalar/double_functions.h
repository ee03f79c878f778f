// float64 versions of the functions of float_functions.h, by templates over a builder with the
// types V (float64), I (int64) and Mask, again without branches: DoubleOps runs them on plain
// numbers, DoubleLaneOps on vectors, ExprBuilder records them. Every engine computes the same bits.
// Within one unit in the last place of the true value; infinities, NaN and signed zeros are exact.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Loops vectorize only when all of a function's body is in them.
#define WICK_INLINE inline __attribute__((always_inline))

namespace wick::doubles {

template <class B>
WICK_INLINE typename B::V scaleInSteps(B b, typename B::V a, typename B::V n);

struct DoubleOps {
  using V = double;
  using I = int64_t;
  using Mask = bool;
  static V constant(double v) { return v; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static V div(V a, V b) { return a / b; }
  static V neg(V a) { return -a; }
  static V fma(V a, V b, V c) { return __builtin_fma(a, b, c); }
  static V scale(V a, V n) { return scaleInSteps(DoubleOps(), a, n); }
  static V abs(V a) { return std::fabs(a); }
  static V sqrt(V a) { return std::sqrt(a); }
  static V copysign(V a, V b) { return std::copysign(a, b); }
  static Mask eq(V a, V b) { return a == b; }
  static Mask lt(V a, V b) { return a < b; }
  static Mask le(V a, V b) { return a <= b; }
  static V select(Mask m, V a, V b) { return m ? a : b; }
  static I toBits(V a) { return std::bit_cast<int64_t>(a); }
  static V fromBits(I a) { return std::bit_cast<double>(a); }
  static I intConstant(int64_t v) { return v; }
  // Wrapping.
  static I intAdd(I a, I b) {
    return static_cast<I>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static I intSub(I a, I b) {
    return static_cast<I>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
  static I intShiftLeft(I a, int n) { return static_cast<I>(static_cast<uint64_t>(a) << n); }
  // Of what is not negative.
  static I intShiftRight(I a, int n) { return a >> n; }
};

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLn2High = 0x1.62e42fefp-1;  // products with exponents are exact
inline constexpr double kLn2Low = 0x1.473de6af278edp-34;

// 2^n for -1023 <= n <= 1023; zero for the first.
template <class B>
WICK_INLINE typename B::V powerOfTwo(B b, typename B::I n) {
  return b.fromBits(b.intShiftLeft(b.intAdd(n, b.intConstant(1023)), 52));
}

template <class B>
WICK_INLINE typename B::V limit(B b, typename B::V x, double low, double high) {
  x = b.select(b.lt(b.constant(high), x), b.constant(high), x);
  return b.select(b.lt(x, b.constant(low)), b.constant(low), x);
}

// Adding it leaves a rounded number in the low bits. No vector instruction before AVX-512 converts
// between float64 and int64.
inline constexpr double kMagic = 0x1.8p52;
template <class B>
WICK_INLINE typename B::I lowBits(B b, typename B::V shifted) {
  return b.intSub(b.toBits(shifted), b.intConstant(std::bit_cast<int64_t>(kMagic)));
}
// Back, for |n| < 2^51.
template <class B>
WICK_INLINE typename B::V wholeNumber(B b, typename B::I n) {
  const auto bits = b.intAdd(n, b.intConstant(std::bit_cast<int64_t>(kMagic)));
  return b.sub(b.fromBits(bits), b.constant(kMagic));
}

template <class B>
struct Reduced {
  typename B::I n;       // x = n ln 2 + r; arbitrary when x is NaN
  typename B::V whole;   // n
  typename B::V nearly;  // x - n kLn2High, without loss
  typename B::V r;       // |r| <= ln(2) / 2
};
template <class B>
WICK_INLINE Reduced<B> reduce(B b, typename B::V x) {
  const auto magic = b.constant(kMagic);
  const auto shifted = b.fma(x, b.constant(0x1.71547652b82fep+0), magic);
  const auto whole = b.sub(shifted, magic);
  const auto nearly = b.fma(whole, b.constant(-kLn2High), x);
  return {lowBits(b, shifted), whole, nearly, b.fma(whole, b.constant(-kLn2Low), nearly)};
}

// a * 2^n, rounded once, for a in [0.5, 2] and whole n from -1100 to 1024: in two steps, the first
// without loss. For NaN the powers are arbitrary.
template <class B>
WICK_INLINE typename B::V scaleInSteps(B b, typename B::V a, typename B::V n) {
  constexpr int64_t kAbove = 4096;
  const auto whole = lowBits(b, b.add(n, b.constant(kMagic)));
  const auto raised = b.intShiftRight(b.intAdd(whole, b.intConstant(kAbove)), 1);
  const auto half = b.intSub(raised, b.intConstant(kAbove / 2));
  return b.mul(b.mul(a, powerOfTwo(b, half)), powerOfTwo(b, b.intSub(whole, half)));
}

// Horner's scheme, the highest coefficient first.
template <class B, class... Rest>
WICK_INLINE typename B::V polynomial(B b, typename B::V x, double first, Rest... rest) {
  auto p = b.constant(first);
  ((p = b.fma(x, p, b.constant(rest))), ...);
  return p;
}

// (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2, so that e^r is off by less than 2^-59 of it.
template <class B>
WICK_INLINE typename B::V expTail(B b, typename B::V r) {
  return polynomial(b, r, 0x1.1f66d957d0ef0p-29, 0x1.af389eea54156p-26, 0x1.27e4e1f71bcbbp-22,
                    0x1.71de0db2eb873p-19, 0x1.a01a01a47a5abp-16, 0x1.a01a01a7c2f2cp-13,
                    0x1.6c16c16c167e2p-10, 0x1.11111111109b5p-7, 0x1.5555555555555p-5,
                    0x1.5555555555556p-3, 0.5);
}

template <class B>
WICK_INLINE typename B::V exp(B b, typename B::V x) {
  const auto e = reduce(b, limit(b, x, -746.0, 710.0));
  const auto one = b.constant(1.0);
  return b.scale(b.fma(e.r, b.fma(e.r, expTail(b, e.r), one), one), e.whole);
}

// A number in two parts: the first is their rounded sum.
template <class B>
struct Pair {
  typename B::V high, low;
};

// Half of e^x - 1 for -40 <= x <= 710.
template <class B>
WICK_INLINE Pair<B> halfExpm1(B b, typename B::V x) {
  const auto e = reduce(b, x);
  const auto lost = b.fma(e.whole, b.constant(-kLn2Low), b.sub(e.nearly, e.r));
  const auto rest = b.fma(b.mul(e.r, e.r), expTail(b, e.r), b.fma(lost, e.r, lost));
  // With t = 2^(n-1): (t - 1/2) + t r + t rest. t stays finite for the largest n.
  const auto t = powerOfTwo(b, b.intSub(e.n, b.intConstant(1)));
  const auto half = b.constant(-0.5);
  const auto first = b.add(t, half);
  const auto second = b.sub(first, t);
  const auto first_rest = b.add(b.sub(t, b.sub(first, second)), b.sub(half, second));
  const auto sum = b.fma(t, e.r, first);
  const auto sum_rest = b.fma(t, e.r, b.sub(first, sum));
  const auto low = b.fma(t, rest, b.add(sum_rest, first_rest));
  const auto high = b.add(sum, low);
  return {high, b.add(b.sub(sum, high), low)};
}

template <class B>
WICK_INLINE typename B::V expm1(B b, typename B::V x) {
  const auto value = b.mul(b.constant(2.0), halfExpm1(b, limit(b, x, -40.0, 710.0)).high);
  // The square is below half a unit there, and zero keeps its sign.
  return b.select(b.lt(b.abs(x), b.constant(0x1p-54)), x, value);
}

template <class B>
struct Mantissa {
  typename B::I e;
  typename B::V m;  // x = 2^e m with m in [sqrt(1/2), sqrt(2))
};
// Of a normal number above zero; of others something arbitrary.
template <class B>
WICK_INLINE Mantissa<B> mantissa(B b, typename B::V x) {
  constexpr int64_t kAbove = int64_t{1023} << 52;
  const auto bits = b.toBits(x);
  // What is shifted is not negative.
  const auto raised = b.intSub(bits, b.intConstant(0x3fe6a09e667f3bcd - kAbove));
  const auto e = b.intSub(b.intShiftRight(raised, 52), b.intConstant(1023));
  return {e, b.fromBits(b.intSub(bits, b.intShiftLeft(e, 52)))};
}

// log(2^power m) + extra / m for an extra of less than a unit in the last place of m.
template <class B>
WICK_INLINE typename B::V logOfParts(B b, typename B::V power, typename B::V m,
                                     typename B::V extra) {
  const auto one = b.constant(1.0);
  // log m = 2 atanh(s) with s = (m - 1) / (m + 1).
  const auto f = b.sub(m, one);
  const auto s = b.div(f, b.add(m, one));
  const auto z = b.mul(s, s);
  const auto p =
      polynomial(b, z, 1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
                 2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
                 6.666666666666735130e-01);
  // 2s = f - f s exactly enough that the leading term keeps all bits of f.
  const auto tail = b.mul(s, b.sub(b.mul(z, p), f));
  // 1 / m = (1 - s) / (1 + s).
  const auto corrected = b.fma(extra, b.fma(b.add(s, s), b.sub(s, one), one), tail);
  // The product is exact, and when it is not zero it is larger than f.
  const auto first = b.mul(power, b.constant(kLn2High));
  const auto sum = b.add(first, f);
  const auto lost = b.sub(f, b.sub(sum, first));
  return b.add(sum, b.add(lost, b.fma(power, b.constant(kLn2Low), corrected)));
}

template <class B>
WICK_INLINE typename B::V log(B b, typename B::V x) {
  const auto zero = b.constant(0.0);
  const auto denormal = b.lt(x, b.constant(std::numeric_limits<double>::min()));
  const auto scaled = b.select(denormal, b.mul(x, b.constant(0x1p54)), x);
  const auto parts = mantissa(b, scaled);
  const auto power = b.sub(wholeNumber(b, parts.e), b.select(denormal, b.constant(54.0), zero));
  auto value = logOfParts(b, power, parts.m, zero);
  value = b.select(b.eq(x, b.constant(kInf)), x, value);
  value = b.select(b.eq(x, zero), b.constant(-kInf), value);
  return b.select(b.le(zero, x), value, b.constant(kNan));
}

template <class B>
WICK_INLINE typename B::V log1p(B b, typename B::V x) {
  const auto one = b.constant(1.0);
  const auto u = b.add(one, x);
  // What the rounding of the sum took, for an x of any size.
  const auto second = b.sub(u, one);
  const auto lost = b.add(b.sub(one, b.sub(u, second)), b.sub(x, second));
  const auto parts = mantissa(b, u);
  // Of the largest numbers, whose power has no inverse, one is nothing.
  const auto inverse = powerOfTwo(b, b.intSub(b.intConstant(0), parts.e));
  const auto extra = b.select(b.lt(x, b.constant(0x1p60)), b.mul(lost, inverse), b.constant(0.0));
  auto value = logOfParts(b, wholeNumber(b, parts.e), parts.m, extra);
  value = b.select(b.lt(b.abs(x), b.constant(0x1p-54)), x, value);
  value = b.select(b.eq(x, b.constant(kInf)), x, value);
  value = b.select(b.eq(x, b.constant(-1.0)), b.constant(-kInf), value);
  return b.select(b.le(b.constant(-1.0), x), value, b.constant(kNan));
}

template <class B>
WICK_INLINE typename B::V sigmoid(B b, typename B::V x) {
  // One over d = 1 + e^-x, which is first made 2^60 times smaller: neither it nor its inverse
  // leaves the range of normal numbers then.
  constexpr int kScale = 60;
  const auto one = b.constant(1.0);
  const auto scaled_one = b.constant(0x1p-60);
  const auto e = reduce(b, b.neg(limit(b, x, -746.0, 60.0)));
  const auto q = b.fma(b.mul(e.r, e.r), expTail(b, e.r), e.r);
  const auto t = powerOfTwo(b, b.intSub(e.n, b.intConstant(kScale)));
  // d = t + 1 + t q as a sum of two numbers.
  const auto whole = b.add(t, scaled_one);
  const auto lost = b.sub(scaled_one, b.sub(whole, t));
  const auto d = b.fma(t, q, whole);
  const auto d_low = b.add(b.fma(t, q, b.sub(whole, d)), lost);
  const auto inverse = b.div(one, d);
  const auto minus = b.neg(inverse);
  const auto rest = b.fma(minus, d_low, b.fma(minus, d, one));
  return b.mul(b.fma(inverse, rest, inverse), scaled_one);
}

template <class B>
WICK_INLINE typename B::V tanh(B b, typename B::V x) {
  // -h / (1 + h) with h = (e^-2a - 1) / 2, which is between -1/2 and 0.
  const auto one = b.constant(1.0);
  const auto a = b.abs(x);
  const auto limited = b.select(b.lt(b.constant(20.0), a), b.constant(20.0), a);
  const auto h = halfExpm1(b, b.mul(limited, b.constant(-2.0)));
  const auto d = b.add(one, h.high);
  const auto d_low = b.add(b.add(b.sub(one, d), h.high), h.low);
  const auto inverse = b.div(one, d);
  const auto quotient = b.mul(b.neg(h.high), inverse);
  // -h - d quotient.
  const auto rest = b.sub(b.neg(b.fma(quotient, d, h.high)), b.fma(quotient, d_low, h.low));
  const auto value = b.fma(rest, inverse, quotient);
  return b.copysign(b.select(b.lt(a, b.constant(0x1p-28)), a, value), x);
}

template <class B>
WICK_INLINE typename B::V rsqrt(B b, typename B::V x) {
  return b.div(b.constant(1.0), b.sqrt(x));
}

// Up to here a multiple of pi/2 is taken away without loss; the C library knows the others.
inline constexpr double kLargestAngle = 0x1p32;

template <class B>
WICK_INLINE typename B::Mask sinInRange(B b, typename B::V x) {
  return b.le(b.abs(x), b.constant(kLargestAngle));
}

// sin(x + quarters pi / 2) for x in range.
template <class B>
WICK_INLINE typename B::V sinShifted(B b, typename B::V x, int64_t quarters) {
  const auto magic = b.constant(kMagic), one = b.constant(1.0), zero = b.constant(0.0);
  const auto shifted = b.fma(x, b.constant(0x1.45f306dc9c883p-1), magic);
  const auto whole = b.sub(shifted, magic);
  const auto quarter = b.intAdd(lowBits(b, shifted), b.intConstant(quarters));
  // The rest in two parts. The first difference is exact.
  const auto first = b.fma(whole, b.constant(-0x1.921fb54442d18p+0), x);
  const auto part = b.mul(whole, b.constant(-0x1.1a62633145c07p-54));
  const auto r = b.add(first, part);
  // What the product and the sum lost.
  const auto product_rest = b.fma(whole, b.constant(-0x1.1a62633145c07p-54), b.neg(part));
  const auto taken = b.sub(r, first);
  const auto sum_rest = b.add(b.sub(first, b.sub(r, taken)), b.sub(part, taken));
  const auto low = b.fma(whole, b.constant(0x1.f1976b7ed8fbcp-110), b.add(sum_rest, product_rest));
  const auto z = b.mul(r, r);
  // r + r^3 S, and its slope times what is lacking.
  const auto sine_tail = polynomial(b, z, 1.58969099521155010221e-10, -2.50507602534068634195e-08,
                                    2.75573137070700676789e-06, -1.98412698298579493134e-04,
                                    8.33333333332248946124e-03, -1.66666666666666324348e-01);
  const auto half = b.mul(z, b.constant(0.5));
  const auto slope = b.sub(one, half);
  const auto sine = b.add(r, b.fma(b.mul(r, z), sine_tail, b.mul(low, slope)));
  // 1 - z/2 as two numbers.
  const auto cosine_tail = polynomial(b, z, -1.13596475577881948265e-11, 2.08757232129817482790e-09,
                                      -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                                      -1.38888888888741095749e-03, 4.16666666666666019037e-02);
  const auto rest = b.sub(b.sub(one, slope), half);
  const auto cosine =
      b.add(slope, b.add(rest, b.fma(b.mul(z, z), cosine_tail, b.neg(b.mul(r, low)))));
  // An odd number of quarters exchanges them, two or three change the sign.
  const auto odd = b.fromBits(b.intShiftLeft(quarter, 63));
  const auto value = b.select(b.lt(b.copysign(one, odd), zero), cosine, sine);
  const auto turned = b.fromBits(b.intShiftLeft(quarter, 62));
  return b.select(b.lt(b.copysign(one, turned), zero), b.neg(value), value);
}

template <class B>
WICK_INLINE typename B::V sin(B b, typename B::V x) {
  return b.select(b.eq(x, b.constant(0.0)), x, sinShifted(b, x, 0));
}
template <class B>
WICK_INLINE typename B::V cos(B b, typename B::V x) {
  return sinShifted(b, x, 1);
}

// As floats::fmodOf(), with a quotient below 2^52.
template <class B>
WICK_INLINE typename B::V quotientSize(B b, typename B::V x, typename B::V y) {
  return b.div(b.abs(x), b.abs(y));
}
template <class B>
WICK_INLINE typename B::Mask fmodInRange(B b, typename B::V y, typename B::V quotient) {
  const auto usual = b.lt(b.abs(y), b.constant(kInf));
  return b.lt(b.select(usual, quotient, b.constant(kInf)), b.constant(0x1p52));
}
template <class B>
WICK_INLINE typename B::V fmodOf(B b, typename B::V x, typename B::V y, typename B::V quotient) {
  const auto size = b.abs(y), zero = b.constant(0.0), magic = b.constant(0x1p52);
  const auto whole = b.sub(b.add(quotient, magic), magic);
  const auto rest = b.fma(b.neg(whole), size, b.abs(x));
  return b.copysign(b.select(b.lt(rest, zero), b.add(rest, size), rest), x);
}

}  // namespace wick::doubles

namespace wick::math {

#define WICK_FUNCTION(name)                        \
  WICK_INLINE double name(double x) {              \
    return doubles::name(doubles::DoubleOps(), x); \
  }
WICK_FUNCTION(exp)
WICK_FUNCTION(expm1)
WICK_FUNCTION(log)
WICK_FUNCTION(log1p)
WICK_FUNCTION(sigmoid)
WICK_FUNCTION(tanh)
WICK_FUNCTION(rsqrt)
#undef WICK_FUNCTION

inline double sin(double x) {
  const doubles::DoubleOps ops;
  return doubles::sinInRange(ops, x) ? doubles::sin(ops, x) : std::sin(x);
}
inline double cos(double x) {
  const doubles::DoubleOps ops;
  return doubles::sinInRange(ops, x) ? doubles::cos(ops, x) : std::cos(x);
}
inline double pow(double x, double y) {
  return std::pow(x, y);
}
inline double fmod(double x, double y) {
  const doubles::DoubleOps ops;
  const double quotient = doubles::quotientSize(ops, x, y);
  return doubles::fmodInRange(ops, y, quotient) ? doubles::fmodOf(ops, x, y, quotient)
                                                : std::fmod(x, y);
}

}  // namespace wick::math
#undef WICK_INLINE
