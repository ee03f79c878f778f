// Rows of float32 beside each other, reduced by vectors: what reduce.h does with one step an
// element waits for the step before, so that several sums go on at a time here.
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

// What elements are folded by, as doubles: added (NaN counted as zero, or squared) or multiplied.
enum class Fold { Sum, NanSum, Squares, Product };

template <Fold kFold>
inline Doubles joined(Doubles a, Doubles b) {
  return kFold == Fold::Product ? a * b : a + b;
}
template <Fold kFold>
inline Doubles valueOf(Doubles v) {
  if constexpr (kFold == Fold::NanSum) return v == v ? v : Doubles{};
  return kFold == Fold::Squares ? v * v : v;
}
template <Fold kFold>
inline constexpr double kStart = kFold == Fold::Product ? 1 : 0;

// Element i goes to sum i % 32; these are joined four by four at the end.
template <Fold kFold>
Doubles foldBlocks(const float* p, int64_t n) {
  Doubles sums[8];
  for (Doubles& s : sums) s = kStart<kFold> - Doubles{};
  for (int64_t i = 0; i < n; i += 32) {
    for (int k = 0; k < 4; ++k) {
      const Floats v = get(p + i + 8 * k);
      sums[2 * k] = joined<kFold>(sums[2 * k], valueOf<kFold>(low(v)));
      sums[2 * k + 1] = joined<kFold>(sums[2 * k + 1], valueOf<kFold>(high(v)));
    }
  }
  for (int width = 4; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) sums[k] = joined<kFold>(sums[k], sums[k + width]);
  }
  return sums[0];
}

// The same sums in registers of twice the width, joined in the same order.
template <Fold kFold>
__attribute__((target("avx512f"))) Doubles foldWideBlocks(const float* p, int64_t n) {
  __m512d sums[4];
  for (__m512d& s : sums) s = _mm512_set1_pd(kStart<kFold>);
  for (int64_t i = 0; i < n; i += 32) {
    for (int k = 0; k < 4; ++k) {
      // GCC 12 warns of the form without a mask.
      __m512d v = _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p + i + 8 * k));
      if constexpr (kFold == Fold::NanSum) {
        v = _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(v, v, _CMP_ORD_Q), v);
      } else if constexpr (kFold == Fold::Squares) {
        v = _mm512_mul_pd(v, v);
      }
      sums[k] = kFold == Fold::Product ? _mm512_mul_pd(sums[k], v) : _mm512_add_pd(sums[k], v);
    }
  }
  for (int width = 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) {
      sums[k] = kFold == Fold::Product ? _mm512_mul_pd(sums[k], sums[k + width])
                                       : _mm512_add_pd(sums[k], sums[k + width]);
    }
  }
  double lanes[8];
  _mm512_storeu_pd(lanes, sums[0]);
  return joined<kFold>(_mm256_loadu_pd(lanes), _mm256_loadu_pd(lanes + 4));
}

inline bool hasWideRegisters() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

// Folds elements into `result`. Returns how many were folded: a multiple of 32.
template <Fold kFold>
int64_t fold(const float* p, int64_t n, double& result) {
  const int64_t whole = n / 32 * 32;
  const Doubles sum =
      hasWideRegisters() ? foldWideBlocks<kFold>(p, whole) : foldBlocks<kFold>(p, whole);
  for (int lane = 0; lane < 4; ++lane) {
    result = kFold == Fold::Product ? result * sum[lane] : result + sum[lane];
  }
  return whole;
}

}  // namespace rows

inline int64_t sumRow(const float* p, int64_t n, double& sum) {
  return rows::fold<rows::Fold::Sum>(p, n, sum);
}
// NaN counts as zero.
inline int64_t nanSumRow(const float* p, int64_t n, double& sum) {
  return rows::fold<rows::Fold::NanSum>(p, n, sum);
}
inline int64_t squareSumRow(const float* p, int64_t n, double& sum) {
  return rows::fold<rows::Fold::Squares>(p, n, sum);
}
inline int64_t productRow(const float* p, int64_t n, double& product) {
  return rows::fold<rows::Fold::Product>(p, n, product);
}

namespace rows {

// sums[j] += rows[j], and so on for four rows. Returns how many sums are done.
__attribute__((target("avx512f"))) inline int64_t addFourWide(double* sums, const float* row,
                                                              int64_t stride, int64_t n) {
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    __m512d sum = _mm512_loadu_pd(sums + j);
    for (int k = 0; k < 4; ++k) {
      const __m256 v = _mm256_loadu_ps(row + k * stride + j);
      sum = _mm512_add_pd(sum, _mm512_maskz_cvtps_pd(0xff, v));
    }
    _mm512_storeu_pd(sums + j, sum);
  }
  return j;
}

}  // namespace rows

// Adds four rows of n elements to as many sums, one row after the other.
inline void addFourRows(double* sums, const float* row, int64_t stride, int64_t n) {
  int64_t j = rows::hasWideRegisters() ? rows::addFourWide(sums, row, stride, n) : 0;
  for (; j < n; ++j) {
    double sum = sums[j];
    for (int64_t k = 0; k < 4; ++k) sum += static_cast<double>(row[k * stride + j]);
    sums[j] = sum;
  }
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

// best[j] becomes the largest or smallest of itself and of the elements j of four rows, NaN when one
// of them is.
template <bool kMax>
void extremesOfFourRows(float* best, const float* row, int64_t stride, int64_t n) {
  int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    rows::Floats b = rows::get(best + j);
    for (int k = 0; k < 4; ++k) {
      const rows::Floats v = rows::get(row + k * stride + j);
      const auto better = kMax ? v > b : v < b;
      b = (better | (v != v)) ? v : b;
    }
    std::memcpy(best + j, &b, sizeof b);
  }
  for (; j < n; ++j) {
    for (int k = 0; k < 4; ++k) {
      const float v = row[k * stride + j];
      if ((kMax ? v > best[j] : v < best[j]) || v != v) best[j] = v;
    }
  }
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
