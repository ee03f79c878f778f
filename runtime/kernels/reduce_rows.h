// Rows of float32 beside each other, reduced by vectors: what reduce.h does with one step an element
// waits for the step before, so that several sums go on at a time here.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <limits>

namespace wick::reduce {

namespace rows {

using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(32)));

inline Floats get(const float* p) {
  Floats v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Doubles low(Floats v) {
  return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}
inline Doubles high(Floats v) {
  return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}

// Folds what `value` makes of vectors of doubles: with `join` from `start` on. Returns how many
// elements were folded: a multiple of 32.
template <class Value, class Join>
int64_t fold(const float* p, int64_t n, double start, double& result, Value&& value, Join&& join) {
  Doubles sums[8];
  for (Doubles& s : sums) s = start - Doubles{};
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int k = 0; k < 4; ++k) {
      const Floats v = get(p + i + 8 * k);
      sums[2 * k] = join(sums[2 * k], value(low(v)));
      sums[2 * k + 1] = join(sums[2 * k + 1], value(high(v)));
    }
  }
  for (int width = 4; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) sums[k] = join(sums[k], sums[k + width]);
  }
  for (int lane = 0; lane < 4; ++lane) {
    result = join(result - Doubles{}, sums[0][lane] - Doubles{})[0];
  }
  return i;
}

}  // namespace rows

inline int64_t sumRow(const float* p, int64_t n, double& sum) {
  return rows::fold(
      p, n, 0, sum, [](rows::Doubles v) { return v; },
      [](rows::Doubles a, rows::Doubles b) { return a + b; });
}
// NaN counts as zero.
inline int64_t nanSumRow(const float* p, int64_t n, double& sum) {
  return rows::fold(
      p, n, 0, sum, [](rows::Doubles v) { return v == v ? v : rows::Doubles{}; },
      [](rows::Doubles a, rows::Doubles b) { return a + b; });
}
inline int64_t squareSumRow(const float* p, int64_t n, double& sum) {
  return rows::fold(
      p, n, 0, sum, [](rows::Doubles v) { return v * v; },
      [](rows::Doubles a, rows::Doubles b) { return a + b; });
}
inline int64_t productRow(const float* p, int64_t n, double& product) {
  return rows::fold(
      p, n, 1, product, [](rows::Doubles v) { return v; },
      [](rows::Doubles a, rows::Doubles b) { return a * b; });
}

// The largest or smallest element of n >= 8, and whether one of them is NaN.
template <bool kMax>
float extremeOfRow(const float* p, int64_t n, bool& nan) {
  using rows::Floats;
  const auto better = [](Floats a, Floats b) {
    return kMax ? Floats(_mm256_max_ps(a, b)) : Floats(_mm256_min_ps(a, b));
  };
  Floats best[4];
  Floats wrong[4] = {};
  const Floats worst =
      (kMax ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity()) -
      Floats{};
  for (Floats& b : best) b = worst;
  const auto step = [&](int k, const float* at) {
    const Floats v = rows::get(at);
    // Of an unordered pair the second.
    best[k] = better(v, best[k]);
    wrong[k] = _mm256_or_ps(wrong[k], _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  };
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    for (int k = 0; k < 4; ++k) step(k, p + i + 8 * k);
  }
  for (; i + 8 <= n; i += 8) step(0, p + i);
  if (i < n) step(1, p + n - 8);
  const Floats both = better(better(best[0], best[1]), better(best[2], best[3]));
  nan = _mm256_movemask_ps(
            _mm256_or_ps(_mm256_or_ps(wrong[0], wrong[1]), _mm256_or_ps(wrong[2], wrong[3]))) != 0;
  float result = both[0];
  for (int lane = 1; lane < 8; ++lane) {
    result = (kMax ? both[lane] > result : both[lane] < result) ? both[lane] : result;
  }
  return result;
}

// Where the first element of n >= 8 lies that is `value`, or NaN when `nan`; there is one.
inline int64_t findInRow(const float* p, int64_t n, float value, bool nan) {
  const rows::Floats wanted = value - rows::Floats{};
  const auto look = [&](const float* at) {
    const rows::Floats v = rows::get(at);
    return static_cast<unsigned>(_mm256_movemask_ps(nan ? _mm256_cmp_ps(v, v, _CMP_UNORD_Q)
                                                        : _mm256_cmp_ps(v, wanted, _CMP_EQ_OQ)));
  };
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    if (const unsigned found = look(p + i)) return i + __builtin_ctz(found);
  }
  return n - 8 + __builtin_ctz(look(p + n - 8) | 0x100);
}

}  // namespace wick::reduce
