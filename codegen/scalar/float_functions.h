// float32 versions of the functions that networks spend their time in, without branches, so that
// the compiler vectorizes the loops around them. Within 2.5 units in the last place
// of the true value; infinities, NaN, signed zeros and denormal
// results are exact.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace wick::math {

namespace detail {

inline constexpr float kFloatInf = std::numeric_limits<float>::infinity();
inline constexpr float kFloatNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kLn2High =
    0x1.62e4p-1f;  // few bits, so that products with integers are exact
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;

inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

// 2^n for -126 <= n <= 127.
inline float powerOfTwo(int32_t n) {
  return std::bit_cast<float>((n + 127) << 23);
}

struct Reduced {
  int32_t n;  // x = n ln 2 + r; arbitrary when x is NaN
  float r;    // |r| <= ln(2) / 2
};
inline Reduced reduce(float x) {
  // Adding 1.5 * 2^23 leaves the rounded integer in the low bits: a conversion without a cast that
  // NaN would make undefined.
  constexpr float kMagic = 12582912.0f;
  float shifted = fma(x, 1.44269504088896341f, kMagic);
  int32_t n = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kMagic);
  float whole = shifted - kMagic;
  return {n, fma(whole, -kLn2Low, fma(whole, -kLn2High, x))};
}

// (e^r - 1 - r) / r^2.
inline float expTail(float r) {
  float p = fma(r, 1.0f / 5040, 1.0f / 720);
  p = fma(r, p, 1.0f / 120);
  p = fma(r, p, 1.0f / 24);
  p = fma(r, p, 1.0f / 6);
  return fma(r, p, 0.5f);
}

// For -104 <= x <= 89.
inline float expInRange(float x) {
  Reduced e = reduce(x);
  float value = 1.0f + fma(e.r * e.r, expTail(e.r), e.r);
  // In two steps, for n reaches 128 and denormal results need n below -126. For NaN the halves are
  // arbitrary, but NaN times anything is NaN.
  int32_t half = e.n >> 1;
  return value * powerOfTwo(half) * powerOfTwo(e.n - half);
}

}  // namespace detail

inline float exp(float x) {
  float limited = x > 89.0f ? 89.0f : x;
  limited = limited < -104.0f ? -104.0f : limited;
  return detail::expInRange(limited);
}

inline float expm1(float x) {
  using namespace detail;
  float limited = x > 89.0f ? 89.0f : x;
  limited = limited < -20.0f ? -20.0f : limited;
  Reduced e = reduce(limited);
  float q = fma(e.r * e.r, expTail(e.r), e.r);
  // 2 (t q + (t - 1/2)) with t = 2^(n-1): t stays finite for the largest n.
  float t = powerOfTwo(e.n - 1);
  float value = 2 * fma(t, q, t - 0.5f);
  return x == 0 ? x : value;
}

inline float log(float x) {
  using namespace detail;
  constexpr float kSmallest = std::numeric_limits<float>::min();
  bool denormal = x < kSmallest;
  float scaled = denormal ? x * 8388608.0f : x;
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  int32_t bits = std::bit_cast<int32_t>(scaled);
  int32_t e = (bits - 0x3f3504f3) >> 23;
  float m = std::bit_cast<float>(bits - static_cast<int32_t>(static_cast<uint32_t>(e) << 23));
  float power = static_cast<float>(e) - (denormal ? 23.0f : 0.0f);
  // log m = 2 atanh(s) with s = (m - 1) / (m + 1).
  float f = m - 1.0f;
  float s = f / (m + 1.0f);
  float z = s * s;
  float p = fma(z, 2.0f / 11, 2.0f / 9);
  p = fma(z, p, 2.0f / 7);
  p = fma(z, p, 2.0f / 5);
  p = fma(z, p, 2.0f / 3);
  // 2s = f - f s exactly enough that the leading term keeps all bits of f.
  float tail = s * (z * p - f);
  float value = fma(power, kLn2High, f + fma(power, kLn2Low, tail));
  value = x == kFloatInf ? kFloatInf : value;
  value = x == 0 ? -kFloatInf : value;
  return x >= 0 ? value : kFloatNan;
}

inline float log1p(float x) {
  using namespace detail;
  // The logarithm of the rounded sum, corrected by what the rounding lost.
  float u = 1.0f + x;
  float lost = x - (u - 1.0f);
  float value = log(u) + lost / u;
  value = u == 1.0f ? x : value;
  value = x == kFloatInf ? kFloatInf : value;
  return x == -1.0f ? -kFloatInf : value;
}

inline float tanh(float x) {
  float a = std::fabs(x);
  float limited = a > 10.0f ? 10.0f : a;
  float e = expm1(2 * limited);
  float value = e / (e + 2);
  return std::copysign(value, x);
}

inline float erf(float x) {
  using namespace detail;
  float a = std::fabs(x);
  float limited = a > 4.0f ? 4.0f : a;
  // Near zero a polynomial in x^2; beyond 1 the logarithm of the complement is one in x. The
  // coefficients are least-squares fits at Chebyshev points.
  float z = limited * limited;
  float p = fma(z, 7.882497448008507e-05f, -0.0008018855005502701f);
  p = fma(z, p, 0.005189312156289816f);
  p = fma(z, p, -0.02685432881116867f);
  p = fma(z, p, 0.11283597350120544f);
  p = fma(z, p, -0.3761262595653534f);
  p = fma(z, p, 1.1283791065216064f);
  float q = fma(limited, 1.6140617162818671e-06f, -4.559062290354632e-05f);
  q = fma(limited, q, 0.0005927695310674608f);
  q = fma(limited, q, -0.004740222357213497f);
  q = fma(limited, q, 0.02636471763253212f);
  q = fma(limited, q, -0.10997824370861053f);
  q = fma(limited, q, -0.6319370865821838f);
  q = fma(limited, q, -1.1301666498184204f);
  q = fma(limited, q, 0.0003032130189239979f);
  // Without exp's limits: the compiler would run them on lanes that are not selected, where they
  // give denormal numbers, which are slow.
  float value = a < 1.0f ? limited * p : 1.0f - expInRange(q);
  return std::copysign(a > 4.0f ? 1.0f : value, x);
}

}  // namespace wick::math
