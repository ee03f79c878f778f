// Transposition of a tile of words of 4 or 8 bytes in registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace wick {

inline constexpr int64_t kTransposeTile = 8;

// to[k * to_stride + n] = from[n * from_stride + k] for all n and k below kTransposeTile. Strides
// count elements and may be negative; no alignment is asked for, no overlap allowed.
inline void transposeTile(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 row[8], pair[8];
  for (int n = 0; n < 8; ++n) row[n] = _mm256_loadu_ps(from + n * from_stride);
  for (int n = 0; n < 8; n += 2) {
    pair[n] = _mm256_unpacklo_ps(row[n], row[n + 1]);
    pair[n + 1] = _mm256_unpackhi_ps(row[n], row[n + 1]);
  }
  for (int n = 0; n < 8; n += 4) {
    row[n] = _mm256_shuffle_ps(pair[n], pair[n + 2], 0x44);
    row[n + 1] = _mm256_shuffle_ps(pair[n], pair[n + 2], 0xee);
    row[n + 2] = _mm256_shuffle_ps(pair[n + 1], pair[n + 3], 0x44);
    row[n + 3] = _mm256_shuffle_ps(pair[n + 1], pair[n + 3], 0xee);
  }
  for (int k = 0; k < 4; ++k) {
    _mm256_storeu_ps(to + k * to_stride, _mm256_permute2f128_ps(row[k], row[k + 4], 0x20));
    _mm256_storeu_ps(to + (k + 4) * to_stride, _mm256_permute2f128_ps(row[k], row[k + 4], 0x31));
  }
}

// The same for tiles of kTransposeWideTile words of 8 bytes.
inline constexpr int64_t kTransposeWideTile = 4;

inline void transposeTile(const double* from, int64_t from_stride, double* to, int64_t to_stride) {
  __m256d row[4], pair[4];
  for (int n = 0; n < 4; ++n) row[n] = _mm256_loadu_pd(from + n * from_stride);
  for (int n = 0; n < 4; n += 2) {
    pair[n] = _mm256_unpacklo_pd(row[n], row[n + 1]);
    pair[n + 1] = _mm256_unpackhi_pd(row[n], row[n + 1]);
  }
  for (int k = 0; k < 2; ++k) {
    _mm256_storeu_pd(to + k * to_stride, _mm256_permute2f128_pd(pair[k], pair[k + 2], 0x20));
    _mm256_storeu_pd(to + (k + 2) * to_stride, _mm256_permute2f128_pd(pair[k], pair[k + 2], 0x31));
  }
}

}  // namespace wick
