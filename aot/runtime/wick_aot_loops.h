// Loops that models which were compiled ahead of time have in common: small products, and pooling.
// C++17 for processors with AVX2 and FMA. Sizes are constants where these are called, so that each call
// is compiled for its own.
#ifndef WICK_AOT_LOOPS_H
#define WICK_AOT_LOOPS_H

#include <limits>
#include <type_traits>
#include <utility>

#include "small_gemm_blocks.h"

#if defined(_OPENMP)
#define WICK_AOT_PARALLEL_IF(condition) WICK_AOT_PRAGMA(omp parallel for if (condition))
#define WICK_AOT_PRAGMA(text) _Pragma(#text)
#else
#define WICK_AOT_PARALLEL_IF(condition)
#endif

namespace wick_aot {

constexpr int64_t kGrain = 32768;

// c[m, n] = a[m, k] b + bias[n] for each matrix of a batch; b is [n, k] or [k, n].
template <bool kTransposed>
inline void product(int64_t batches, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
                    int64_t a_step, const float* b, int64_t ldb, int64_t b_step, const float* bias,
                    float* c, int64_t c_step) {
  namespace blocks = wick::smallgemm;
  const int64_t width = kTransposed ? 4 : 16, count = n / width;
  if (batches > 1) {
    WICK_AOT_PARALLEL_IF(batches * m * n * k > 2 * kGrain)
    for (int64_t i = 0; i < batches; ++i) {
      const float* ai = a + i * a_step;
      const float* bi = b + i * b_step;
      float* ci = c + i * c_step;
      if (kTransposed) {
        blocks::blocksNT(0, count, m, k, ai, lda, bi, ldb, bias, ci, n);
        blocks::restNT(m, n, k, ai, lda, bi, ldb, bias, ci, n);
      } else {
        blocks::blocksNN(0, count, m, k, ai, lda, bi, ldb, bias, ci, n);
        blocks::restNN(m, n, k, ai, lda, bi, ldb, bias, ci, n);
      }
    }
    return;
  }
  const int64_t part = kTransposed ? 8 : 2;  // blocks
  WICK_AOT_PARALLEL_IF(m * n * k > 4 * kGrain)
  for (int64_t begin = 0; begin < count; begin += part) {
    const int64_t end = begin + part < count ? begin + part : count;
    if (kTransposed) {
      blocks::blocksNT(begin, end, m, k, a, lda, b, ldb, bias, c, n);
    } else {
      blocks::blocksNN(begin, end, m, k, a, lda, b, ldb, bias, c, n);
    }
  }
  if (kTransposed) {
    blocks::restNT(m, n, k, a, lda, b, ldb, bias, c, n);
  } else {
    blocks::restNN(m, n, k, a, lda, b, ldb, bias, c, n);
  }
}

// The same of any elements, in order. Sums of integers wrap.
struct Strides {
  int64_t batch, row, column;
};
template <class T>
inline void plainProduct(int64_t batches, int64_t m, int64_t n, int64_t k, const T* a,
                         const Strides& as, const T* b, const Strides& bs, const T* bias, T* c) {
  using Sum = typename std::conditional<std::is_integral<T>::value, uint64_t, T>::type;
  WICK_AOT_PARALLEL_IF(batches * m * n * k > 4 * kGrain)
  for (int64_t row = 0; row < batches * m; ++row) {
    const T* const ai = a + row / m * as.batch + row % m * as.row;
    const T* const bi = b + row / m * bs.batch;
    T* const ci = c + row * n;
    for (int64_t j = 0; j < n; ++j) ci[j] = 0;
    for (int64_t p = 0; p < k; ++p) {
      const Sum factor = static_cast<Sum>(ai[p * as.column]);
      const T* const bp = bi + p * bs.row;
      for (int64_t j = 0; j < n; ++j) {
        ci[j] =
            static_cast<T>(static_cast<Sum>(ci[j]) + factor * static_cast<Sum>(bp[j * bs.column]));
      }
    }
    for (int64_t j = 0; bias && j < n; ++j) {
      ci[j] = static_cast<T>(static_cast<Sum>(ci[j]) + static_cast<Sum>(bias[j]));
    }
  }
}

// The windows along one dimension: window i has elements begin[i], begin[i] + step, … below end[i], and
// covers span[i] with the padding.
struct Axis {
  int64_t input, size, step;
  const int32_t* begin;
  const int32_t* end;
  const int32_t* span;
};
struct Axes {
  Axis d, h, w;
  int64_t inPixels() const { return d.input * h.input * w.input; }
  int64_t outPixels() const { return d.size * h.size * w.size; }
};

// Calls visit(pixel) for each pixel of the window of output pixel (d, h, w).
template <class Visit>
inline void forWindow(const Axes& a, int64_t d, int64_t h, int64_t w, Visit visit) {
  for (int64_t i = a.d.begin[d]; i < a.d.end[d]; i += a.d.step) {
    for (int64_t j = a.h.begin[h]; j < a.h.end[h]; j += a.h.step) {
      const int64_t row = (i * a.h.input + j) * a.w.input;
      for (int64_t k = a.w.begin[w]; k < a.w.end[w]; k += a.w.step) visit(row + k);
    }
  }
}
inline int64_t firstOf(const Axes& a, int64_t d, int64_t h, int64_t w) {
  return (int64_t{a.d.begin[d]} * a.h.input + a.h.begin[h]) * a.w.input + a.w.begin[w];
}

template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

// A later element wins only when it is larger; a NaN always. `indices` may be null.
template <class T>
inline void maxPlanes(const Axes& a, int64_t planes, const T* from, T* to, int64_t* indices) {
  WICK_AOT_PARALLEL_IF(planes * a.inPixels() > kGrain)
  for (int64_t plane = 0; plane < planes; ++plane) {
    const T* const p = from + plane * a.inPixels();
    int64_t o = plane * a.outPixels();
    for (int64_t d = 0; d < a.d.size; ++d) {
      for (int64_t h = 0; h < a.h.size; ++h) {
        for (int64_t w = 0; w < a.w.size; ++w, ++o) {
          T best = lowest<T>();
          int64_t where = firstOf(a, d, h, w);
          forWindow(a, d, h, w, [&](int64_t i) {
            if (p[i] > best || p[i] != p[i]) {
              best = p[i];
              where = i;
            }
          });
          to[o] = best;
          if (indices) indices[o] = where;
        }
      }
    }
  }
}

// The same with the channels innermost.
template <class T>
inline void maxPixels(const Axes& a, int64_t samples, int64_t channels, const T* from, T* to,
                      int64_t* indices) {
  const int64_t rows = samples * a.d.size * a.h.size;
  WICK_AOT_PARALLEL_IF(samples * a.inPixels() * channels > kGrain)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t h = row % a.h.size, d = row / a.h.size % a.d.size;
    const T* const sample = from + row / a.h.size / a.d.size * a.inPixels() * channels;
    for (int64_t w = 0; w < a.w.size; ++w) {
      const int64_t o = (row * a.w.size + w) * channels;
      T* const best = to + o;
      for (int64_t c = 0; c < channels; ++c) best[c] = lowest<T>();
      if (!indices) {
        forWindow(a, d, h, w, [&](int64_t i) {
          const T* const p = sample + i * channels;
          for (int64_t c = 0; c < channels; ++c) {
            best[c] = ((p[c] > best[c]) | (p[c] != p[c])) ? p[c] : best[c];
          }
        });
        continue;
      }
      int64_t* const where = indices + o;
      for (int64_t c = 0; c < channels; ++c) where[c] = firstOf(a, d, h, w);
      forWindow(a, d, h, w, [&](int64_t i) {
        const T* const p = sample + i * channels;
        for (int64_t c = 0; c < channels; ++c) {
          const bool later = (p[c] > best[c]) | (p[c] != p[c]);
          best[c] = later ? p[c] : best[c];
          where[c] = later ? i : where[c];
        }
      });
    }
  }
}

// What the sum of a window is divided by: a number above zero, or else what the window covers, or what
// it reads.
struct Divisor {
  int64_t fixed;
  bool padding;
};
inline int64_t lengthOf(const Axis& a, int64_t i, bool padding) {
  const int64_t read = a.end[i] > a.begin[i] ? a.end[i] - a.begin[i] : 0;
  return padding ? a.span[i] : read;
}
template <class T>
inline T divisorOf(const Axes& a, const Divisor& by, int64_t d, int64_t h, int64_t w) {
  if (by.fixed != 0) return static_cast<T>(by.fixed);
  return static_cast<T>(lengthOf(a.d, d, by.padding) * lengthOf(a.h, h, by.padding) *
                        lengthOf(a.w, w, by.padding));
}
inline bool readsNothing(const Axes& a, int64_t d, int64_t h, int64_t w) {
  return a.d.begin[d] >= a.d.end[d] || a.h.begin[h] >= a.h.end[h] || a.w.begin[w] >= a.w.end[w];
}

template <class T>
inline void averagePlanes(const Axes& a, int64_t planes, const Divisor& by, const T* from, T* to) {
  WICK_AOT_PARALLEL_IF(planes * a.inPixels() > kGrain)
  for (int64_t plane = 0; plane < planes; ++plane) {
    const T* const p = from + plane * a.inPixels();
    int64_t o = plane * a.outPixels();
    for (int64_t d = 0; d < a.d.size; ++d) {
      for (int64_t h = 0; h < a.h.size; ++h) {
        for (int64_t w = 0; w < a.w.size; ++w, ++o) {
          T sum = 0;
          forWindow(a, d, h, w, [&](int64_t i) { sum += p[i]; });
          to[o] = readsNothing(a, d, h, w) ? T(0) : sum / divisorOf<T>(a, by, d, h, w);
        }
      }
    }
  }
}

// Long rows are summed in eight parts.
template <class T>
inline T sumOf(const T* p, int64_t n) {
  T parts[8] = {};
  int64_t i = 0;
  if (n >= 16) {
    for (; i + 8 <= n; i += 8) {
      for (int64_t k = 0; k < 8; ++k) parts[k] += p[i + k];
    }
  }
  T sum = 0;
  for (const T part : parts) sum += part;
  for (; i < n; ++i) sum += p[i];
  return sum;
}

// The same where the rows of the windows are added up first, which the windows of a row of results
// share. kWidth: elements of a row of a plane.
template <int64_t kWidth, class T>
inline void averageSharedPlanes(const Axes& a, int64_t planes, const Divisor& by, const T* from,
                                T* to) {
  WICK_AOT_PARALLEL_IF(planes * a.inPixels() > kGrain)
  for (int64_t plane = 0; plane < planes; ++plane) {
    const T* const p = from + plane * a.inPixels();
    int64_t o = plane * a.outPixels();
    for (int64_t d = 0; d < a.d.size; ++d) {
      for (int64_t h = 0; h < a.h.size; ++h) {
        T sums[kWidth < 16 ? 16 : kWidth] = {};
        for (int64_t i = a.d.begin[d]; i < a.d.end[d]; i += a.d.step) {
          for (int64_t j = a.h.begin[h]; j < a.h.end[h]; j += a.h.step) {
            const T* const row = p + (i * a.h.input + j) * a.w.input;
            for (int64_t k = 0; k < kWidth; ++k) sums[k] += row[k];
          }
        }
        for (int64_t w = 0; w < a.w.size; ++w, ++o) {
          to[o] = readsNothing(a, d, h, w) ? T(0)
                                           : sumOf(sums + a.w.begin[w], a.w.end[w] - a.w.begin[w]) /
                                                 divisorOf<T>(a, by, d, h, w);
        }
      }
    }
  }
}

template <class T>
inline void averagePixels(const Axes& a, int64_t samples, int64_t channels, const Divisor& by,
                          const T* from, T* to) {
  const int64_t rows = samples * a.d.size * a.h.size;
  WICK_AOT_PARALLEL_IF(samples * a.inPixels() * channels > kGrain && rows > 1)
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t h = row % a.h.size, d = row / a.h.size % a.d.size;
    const T* const sample = from + row / a.h.size / a.d.size * a.inPixels() * channels;
    for (int64_t w = 0; w < a.w.size; ++w) {
      T* const sum = to + (row * a.w.size + w) * channels;
      for (int64_t c = 0; c < channels; ++c) sum[c] = 0;
      forWindow(a, d, h, w, [&](int64_t i) {
        const T* const p = sample + i * channels;
        for (int64_t c = 0; c < channels; ++c) sum[c] += p[c];
      });
      if (readsNothing(a, d, h, w)) continue;
      const T divisor = divisorOf<T>(a, by, d, h, w);
      for (int64_t c = 0; c < channels; ++c) sum[c] = sum[c] / divisor;
    }
  }
}

}  // namespace wick_aot

#endif
