// float32 versions of the functions that networks spend their time in, without branches, so that
// the loops around them vectorize. Within one unit in the last place of the true value (expm1
// within 1.6, log1p within 1.5), denormal results included; infinities, NaN and signed zeros are
// exact.
//
// They are templates over a builder with the types V (float32), I (int32) and Mask: FloatOps runs
// them on plain numbers, LaneOps on vectors, ExprBuilder records them. Every engine computes the
// same bits.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Loops vectorize only when all of a function's body is in them.
#define WICK_INLINE inline __attribute__((always_inline))

namespace wick::floats {

// Tables for lookup(): where those of a function begin.
enum class FloatTable : uint8_t { Erf = 0, Tanh = 7 };
constexpr size_t kFloatTableSize = 16;
// As many as an AVX-512 register holds, so that a lookup is one instruction there.
using FloatTableValues = std::array<float, kFloatTableSize>;
// For byPieces(): the centres, the values there, and the coefficients of the slopes, the lowest
// first. Each begins with the ninth piece, for the bits of 2 end in zeros.
inline constexpr FloatTableValues kFloatTables[] = {
    // erf
    {{0.345616579f, 0.477964401f, 0.609706163f, 0.739904165f, 0.954760313f, 1.21882844f, 1.412637f,
      1.74433184f, 2.17390871f, 2.69920659f, 3.22583485f, 3.8325069f, 0.0f, 0.107338905f,
      0.156189919f, 0.221405506f}},
    {{0.374999464f, 0.500923634f, 0.611452639f, 0.704615533f, 0.82305938f, 0.915235043f,
      0.954258442f, 0.98636955f, 0.997890532f, 0.999865055f, 0.999994934f, 0.99999994f, 0.0f,
      0.120655425f, 0.174818724f, 0.245806456f}},
    {{1.00133228f, 0.897925913f, 0.778053999f, 0.652675033f, 0.453488678f, 0.255441695f,
      0.153391778f, 0.0538306199f, 0.0100010373f, 0.000773756823f, 3.42275416e-05f, 4.67943295e-07f,
      0.128379166f, 1.115453f, 1.10118508f, 1.07439947f}},
    {{-0.346077025f, -0.429176509f, -0.474384278f, -0.482916951f, -0.432973236f, -0.311339974f,
      -0.216686845f, -0.0938986316f, -0.0217393953f, -0.00208716677f, -0.000110193942f,
      -1.88692047e-06f, 0.0f, -0.119731255f, -0.171994016f, -0.237877056f}},
    {{-0.254034787f, -0.162571654f, -0.066546008f, 0.0206401553f, 0.124417126f, 0.167884737f,
      0.152877852f, 0.091279f, 0.0281445254f, 0.00344995153f, 0.000216725108f, 4.71012254e-06f,
      -0.376124054f, -0.363267899f, -0.349155635f, -0.323128492f}},
    {{0.159192011f, 0.181782395f, 0.178303644f, 0.153269336f, 0.084958449f, 0.00167785434f,
      -0.0356075913f, -0.0482140295f, -0.0234888867f, -0.00408014143f, -0.000332981785f,
      -1.91564209e-06f, 0.0f, 0.0588553883f, 0.0846098438f, 0.113889799f}},
    {{0.0573207773f, 0.0190699287f, -0.0187903438f, -0.0486059636f, -0.068729721f, -0.0549467914f,
      -0.021362355f, 0.00411362853f, 0.0124085601f, 0.00421749754f, 0.000524911506f,
      3.01807431e-05f, 0.112148836f, 0.105413981f, 0.0994946957f, 0.152918935f}},
    // tanh
    {{0.797020912f, 1.02100229f, 1.40288544f, 1.62810016f, 2.20044637f, 2.80609179f, 3.4112618f,
      4.01748085f, 5.0053792f, 6.05965233f, 7.11683273f, 8.31776619f, 0.0f, 0.24663496f,
      0.398941278f, 0.55029273f}},
    {{0.662368f, 0.77027446f, 0.885973752f, 0.925790548f, 0.975764513f, 0.992720425f, 0.99782443f,
      0.999352336f, 0.999910176f, 0.999989092f, 0.999998689f, 0.999999881f, 0.0f, 0.241752878f,
      0.379042715f, 0.500739574f}},
    {{0.561268628f, 0.406677544f, 0.21505034f, 0.142911911f, 0.047883857f, 0.0145064294f,
      0.00434650714f, 0.00129494059f, 0.000179809591f, 2.18150653e-05f, 2.63303741e-06f,
      2.382926e-07f, 4.39005143e-09f, 0.94155556f, 0.85632664f, 0.749259889f}},
    {{-0.371766895f, -0.313253313f, -0.190529093f, -0.132306606f, -0.0467226729f, -0.0144005725f,
      -0.00433696015f, -0.00129407528f, -0.000179703129f, -2.17390789e-05f, -2.79752589e-06f,
      -2.38349472e-07f, 0.0f, -0.227623984f, -0.324584365f, -0.375184298f}},
    {{0.0591579564f, 0.105651982f, 0.0971674621f, 0.0748370215f, 0.0296122581f, 0.00944163464f,
      0.00287176738f, 0.000859399966f, 0.00011676627f, 1.44981159e-05f, 1.85014926e-06f,
      1.61136768e-07f, -0.333356708f, -0.25885269f, -0.16244176f, -0.0619040988f}},
    {{0.0848477706f, 0.0231848657f, -0.0224381816f, -0.0251382478f, -0.0133752944f, -0.00461093243f,
      -0.00143376074f, -0.000431804277f, -6.06320536e-05f, -7.81367544e-06f, -2.15632866e-07f,
      -8.15622556e-08f, 0.000591575401f, 0.138357624f, 0.16960232f, 0.156037971f}},
    {{-0.0632400885f, -0.0393524729f, -0.01034794f, 0.00228385301f, 0.00444205338f, 0.00199666107f,
      0.000660859805f, 0.000202725671f, 3.4918281e-05f, 3.11000417e-06f, -3.82523751e-07f,
      2.43943834e-08f, 0.12922436f, 0.0819880366f, 0.01686945f, -0.0350772589f}},
};
constexpr const FloatTableValues& valuesOf(FloatTable table) {
  return kFloatTables[static_cast<size_t>(table)];
}
constexpr FloatTable following(FloatTable table, int n) {
  return static_cast<FloatTable>(static_cast<int>(table) + n);
}

// a * 2^n, rounded once, for a in [0.5, 2] and whole n of at most 252. In two steps, the first of
// which is exact: n reaches 128, and denormal results need n below -126. For NaN the powers are
// arbitrary, but NaN times anything is NaN.
template <class B>
WICK_INLINE typename B::V scaleInSteps(B b, typename B::V a, typename B::V n);

struct FloatOps {
  using V = float;
  using I = int32_t;
  using Mask = bool;
  static V constant(float v) { return v; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static V div(V a, V b) { return a / b; }
  static V neg(V a) { return -a; }
  static V fma(V a, V b, V c) { return __builtin_fmaf(a, b, c); }
  static V scale(V a, V n) { return scaleInSteps(FloatOps(), a, n); }
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
  // The entry that the low four bits of i number.
  static V lookup(FloatTable t, I i) {
    return valuesOf(t)[static_cast<uint32_t>(i) % kFloatTableSize];
  }
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

// Adding it leaves a rounded number in the low bits: a conversion without a cast that NaN would
// make undefined.
inline constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
template <class B>
WICK_INLINE typename B::I lowBits(B b, typename B::V shifted) {
  return b.intSub(b.toBits(shifted), b.intConstant(std::bit_cast<int32_t>(kMagic)));
}

template <class B>
struct Reduced {
  typename B::I n;      // x = n ln 2 + r; arbitrary when x is NaN
  typename B::V whole;  // n
  typename B::V r;      // |r| <= ln(2) / 2
};
template <class B>
WICK_INLINE Reduced<B> reduce(B b, typename B::V x) {
  auto magic = b.constant(kMagic);
  auto shifted = b.fma(x, b.constant(1.44269504088896341f), magic);
  auto whole = b.sub(shifted, magic);
  auto r = b.fma(whole, b.constant(-kLn2Low), b.fma(whole, b.constant(-kLn2High), x));
  return {lowBits(b, shifted), whole, r};
}

template <class B>
WICK_INLINE typename B::V scaleInSteps(B b, typename B::V a, typename B::V n) {
  auto whole = lowBits(b, b.add(n, b.constant(kMagic)));
  auto half = b.intShiftRight(whole, 1);
  return b.mul(b.mul(a, powerOfTwo(b, half)), powerOfTwo(b, b.intSub(whole, half)));
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
  auto one = b.constant(1.0f);
  return b.scale(b.fma(e.r, b.fma(e.r, expTail(b, e.r), one), one), e.whole);
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
  auto e = reduce(b, b.neg(limit(b, x, -104.0f, 60.0f)));
  auto q = b.fma(b.mul(e.r, e.r), expTail(b, e.r), e.r);
  auto t = powerOfTwo(b, b.intSub(e.n, b.intConstant(kScale)));
  // d = t + 1 + t q as a sum of two numbers.
  auto whole = b.add(t, scaled_one);
  auto lost = b.sub(scaled_one, b.sub(whole, t));
  auto d = b.fma(t, q, whole);
  auto d_low = b.add(b.fma(t, q, b.sub(whole, d)), lost);
  auto inverse = b.div(one, d);
  auto minus = b.neg(inverse);
  auto rest = b.fma(minus, d_low, b.fma(minus, d, one));
  return b.mul(b.fma(inverse, rest, inverse), scaled_one);
}

// An odd function that is 1 from `last` on, by sixteen pieces, each with a polynomial around a
// centre c: f(c + d) = f(c) + d slope(d). Centres are floats at which f is nearly a float too
// (within 2^-27), and differences from them are exact. The slopes minimize the largest error in
// units of the result, each coefficient rounded before the next is fitted. Of `factor`: last *
// factor is just below 15.
template <class B>
WICK_INLINE typename B::V byPieces(B b, typename B::V x, FloatTable centres, float last,
                                   float factor) {
  auto a = b.abs(x);
  auto limited = b.select(b.lt(b.constant(last), a), b.constant(last), a);
  // In [1, 16), where the exponent and the two highest bits of the fraction number the pieces: they
  // become longer where functions become flatter.
  auto y = b.fma(limited, b.constant(factor), b.constant(1.0f));
  auto piece = b.intShiftRight(b.toBits(y), 21);
  auto d = b.sub(limited, b.lookup(centres, piece));
  auto slope = b.lookup(following(centres, 6), piece);
  for (int i = 5; i > 1; --i) slope = b.fma(d, slope, b.lookup(following(centres, i), piece));
  // The first piece has the centre zero and the slope less one, so that small results keep all
  // bits.
  auto value = b.lookup(following(centres, 1), piece);
  value = b.select(b.lt(y, b.constant(1.25f)), limited, value);
  return b.copysign(b.fma(d, slope, value), x);
}

template <class B>
WICK_INLINE typename B::V tanh(B b, typename B::V x) {
  return byPieces(b, x, FloatTable::Tanh, 9.09f, 1.65f);
}

template <class B>
WICK_INLINE typename B::V erf(B b, typename B::V x) {
  return byPieces(b, x, FloatTable::Erf, 3.947f, 3.8f);
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
  auto minus = b.neg(root);
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
