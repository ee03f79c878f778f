// float32 products of few rows or little work. oneDNN spends one to two microseconds before its
// first multiplication; a 64-wide layer on one sample needs a tenth of that in all.
#include <immintrin.h>

#include "core/parallel.h"
#include "runtime/kernels/gemm.h"

namespace wick::smallgemm {

namespace {

// Multiplications below which a second thread does not pay.
constexpr int64_t kParallelWork = 1 << 17;

// From here to the next such line models that are compiled ahead of time hold this text (aot/BUILD), as
// C++17 that needs nothing of the engine.
// --- blocks

inline float horizontalSum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// The sums of four vectors' elements, in order.
inline __m128 horizontalSums(__m256 a, __m256 b, __m256 c, __m256 d) {
  __m256 s = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

// R rows of a against four rows of b.
template <int R>
void dotBlock(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
              const float* bias, float* c, int64_t ldc) {
  __m256 acc[R][4];
  for (int r = 0; r < R; ++r) {
    for (int j = 0; j < 4; ++j) acc[r][j] = _mm256_setzero_ps();
  }
  const int64_t whole = k / 8 * 8;
  for (int64_t p = 0; p < whole; p += 8) {
    __m256 bv[4];
    for (int j = 0; j < 4; ++j) bv[j] = _mm256_loadu_ps(b + j * ldb + p);
    for (int r = 0; r < R; ++r) {
      __m256 av = _mm256_loadu_ps(a + r * lda + p);
      for (int j = 0; j < 4; ++j) acc[r][j] = _mm256_fmadd_ps(av, bv[j], acc[r][j]);
    }
  }
  for (int r = 0; r < R; ++r) {
    alignas(16) float sums[4];
    _mm_store_ps(sums, horizontalSums(acc[r][0], acc[r][1], acc[r][2], acc[r][3]));
    for (int j = 0; j < 4; ++j) {
      float s = sums[j];
      for (int64_t q = whole; q < k; ++q) s += a[r * lda + q] * b[j * ldb + q];
      c[r * ldc + j] = bias ? s + bias[j] : s;
    }
  }
}

inline float dot(int64_t k, const float* a, const float* b) {
  __m256 acc = _mm256_setzero_ps();
  const int64_t whole = k / 8 * 8;
  for (int64_t p = 0; p < whole; p += 8) {
    acc = _mm256_fmadd_ps(_mm256_loadu_ps(a + p), _mm256_loadu_ps(b + p), acc);
  }
  float s = horizontalSum(acc);
  for (int64_t p = whole; p < k; ++p) s += a[p] * b[p];
  return s;
}

// R rows of a against V vectors of columns of b.
template <int R, int V>
void outerBlock(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                const float* bias, float* c, int64_t ldc) {
  __m256 acc[R][V];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) {
      acc[r][v] = bias ? _mm256_loadu_ps(bias + 8 * v) : _mm256_setzero_ps();
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    __m256 bv[V];
    for (int v = 0; v < V; ++v) bv[v] = _mm256_loadu_ps(b + p * ldb + 8 * v);
    for (int r = 0; r < R; ++r) {
      __m256 av = _mm256_broadcast_ss(a + r * lda + p);
      for (int v = 0; v < V; ++v) acc[r][v] = _mm256_fmadd_ps(av, bv[v], acc[r][v]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < V; ++v) _mm256_storeu_ps(c + r * ldc + 8 * v, acc[r][v]);
  }
}

inline void outerTail(int64_t n, int64_t k, const float* a, const float* b, int64_t ldb,
                      const float* bias, float* c) {
  for (int64_t j = 0; j < n; ++j) c[j] = bias ? bias[j] : 0.0f;
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < n; ++j) c[j] += a[p] * b[p * ldb + j];
  }
}

// c[m, n] = a[m, k] b[n, k]^T + bias[n], of columns 4 * begin to 4 * end.
inline void blocksNT(int64_t begin, int64_t end, int64_t m, int64_t k, const float* a, int64_t lda,
                     const float* b, int64_t ldb, const float* bias, float* c, int64_t ldc) {
  for (int64_t block = begin; block < end; ++block) {
    const int64_t j = 4 * block;
    const float* bj = b + j * ldb;
    const float* bias_j = bias ? bias + j : nullptr;
    int64_t i = 0;
    for (; i + 2 <= m; i += 2) {
      dotBlock<2>(k, a + i * lda, lda, bj, ldb, bias_j, c + i * ldc + j, ldc);
    }
    if (i < m) dotBlock<1>(k, a + i * lda, lda, bj, ldb, bias_j, c + i * ldc + j, ldc);
  }
}
// The same of the columns behind the last whole block.
inline void restNT(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                   int64_t ldb, const float* bias, float* c, int64_t ldc) {
  for (int64_t j = n / 4 * 4; j < n; ++j) {
    for (int64_t i = 0; i < m; ++i) {
      const float s = dot(k, a + i * lda, b + j * ldb);
      c[i * ldc + j] = bias ? s + bias[j] : s;
    }
  }
}

// c[m, n] = a[m, k] b[k, n] + bias[n], of columns 16 * begin to 16 * end.
inline void blocksNN(int64_t begin, int64_t end, int64_t m, int64_t k, const float* a, int64_t lda,
                     const float* b, int64_t ldb, const float* bias, float* c, int64_t ldc) {
  for (int64_t i = 0; i < m;) {
    const int64_t rows = m - i < 4 ? m - i : 4;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t j = 16 * block;
      const float* ai = a + i * lda;
      const float* bias_j = bias ? bias + j : nullptr;
      float* cij = c + i * ldc + j;
      if (rows == 4) {
        outerBlock<4, 2>(k, ai, lda, b + j, ldb, bias_j, cij, ldc);
      } else {
        for (int64_t r = 0; r < rows; ++r) {
          outerBlock<1, 2>(k, ai + r * lda, lda, b + j, ldb, bias_j, cij + r * ldc, ldc);
        }
      }
    }
    i += rows;
  }
}
inline void restNN(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                   int64_t ldb, const float* bias, float* c, int64_t ldc) {
  const int64_t done = n / 16 * 16;
  for (int64_t i = 0; i < m && done < n; ++i) {
    outerTail(n - done, k, a + i * lda, b + done, ldb, bias ? bias + done : nullptr,
              c + i * ldc + done);
  }
}

// --- end of blocks

}  // namespace

void productNT(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, const float* bias, float* c, int64_t ldc) {
  const int64_t blocks = n / 4;
  parallelFor(blocks, m * k == 0 ? blocks : kParallelWork / (4 * m * k),
              [&](int64_t begin, int64_t end) {
                blocksNT(begin, end, m, k, a, lda, b, ldb, bias, c, ldc);
              });
  restNT(m, n, k, a, lda, b, ldb, bias, c, ldc);
}

void productNN(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, const float* bias, float* c, int64_t ldc) {
  const int64_t blocks = n / 16;
  parallelFor(blocks, m * k == 0 ? blocks : kParallelWork / (16 * m * k),
              [&](int64_t begin, int64_t end) {
                blocksNN(begin, end, m, k, a, lda, b, ldb, bias, c, ldc);
              });
  restNN(m, n, k, a, lda, b, ldb, bias, c, ldc);
}

}  // namespace wick::smallgemm
