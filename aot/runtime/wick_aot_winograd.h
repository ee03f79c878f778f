// Convolutions of float32 images by kernels of 3 x 3 points and stride one, for models that were compiled ahead of time
// with --winograd. Images are [samples, h, w, channels]; channels are multiples of 16. C++17 for processors with AVX2 and
// FMA; AVX-512 is used where the processor has it, with the same bits.
//
// Winograd's method F(2 x 2, 3 x 3): a tile of 2 x 2 results is computed from 4 x 4 elements of the image by 16
// multiplications for each pair of channels, where the definition has 36. Elements, weights and products are transformed
// by sums and differences (A. Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2015), so results differ
// from those of the definition in the last bits, and an infinite element makes all results of its tiles NaN.
//
// For some tiles at a time: their elements are transformed, [16, tiles, channels]; each of the 16 matrices is multiplied by
// its own of the weights, [16, tiles, results]; those products are transformed back.
#ifndef WICK_AOT_WINOGRAD_H
#define WICK_AOT_WINOGRAD_H

#include <immintrin.h>

#include <cstdint>

#include "wick_aot_convolution.h"

namespace wick_aot {

namespace winograd {

// Result channels are packed in blocks of up to 64. A row of results is computed in registers for six tiles.
constexpr int64_t kPoints = 16, kVector = 16, kBlock = 64;
constexpr int kRows = 6;

inline int64_t tilesDown(const Convolution& c) {
  return (c.out_h + 1) / 2;
}
inline int64_t tilesAcross(const Convolution& c) {
  return (c.out_w + 1) / 2;
}
inline int64_t tilesOf(const Convolution& c) {
  return c.samples * tilesDown(c) * tilesAcross(c);
}

// Where the tile `index` begins: its sample, and its first row and column in units of tiles.
struct At {
  int64_t sample, down, across;
};
inline At placeOf(const Convolution& c, int64_t index) {
  const int64_t across = tilesAcross(c), down = tilesDown(c);
  return {index / (down * across), index / across % down, index % across};
}

// to[point] of one tile, point by point `step` elements apart.
inline void transformImage(const Convolution& c, const float* image, const At& at, float* to,
                           int64_t step) {
  static const float nothing[kLanes] = {};
  const float* from[kPoints];
  int64_t next[kPoints];  // 1, or 0 for what lies in the padding
  const int64_t top = 2 * at.down - c.pad_h, left = 2 * at.across - c.pad_w;
  for (int64_t i = 0; i < kPoints; ++i) {
    const int64_t y = top + i / 4, x = left + i % 4;
    const bool inside = y >= 0 && y < c.in_h && x >= 0 && x < c.in_w;
    from[i] = inside ? image + ((at.sample * c.in_h + y) * c.in_w + x) * c.in_channels : nothing;
    next[i] = inside ? 1 : 0;
  }
  for (int64_t channel = 0; channel < c.in_channels; channel += kLanes) {
    __m256 rows[kPoints];  // each row of four transformed
    WICK_AOT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const auto load = [&](int k) {
        return _mm256_loadu_ps(from[4 * i + k] + next[4 * i + k] * channel);
      };
      const __m256 d0 = load(0), d1 = load(1), d2 = load(2), d3 = load(3);
      rows[4 * i] = _mm256_sub_ps(d0, d2);
      rows[4 * i + 1] = _mm256_add_ps(d1, d2);
      rows[4 * i + 2] = _mm256_sub_ps(d2, d1);
      rows[4 * i + 3] = _mm256_sub_ps(d1, d3);
    }
    WICK_AOT_UNROLL
    for (int k = 0; k < 4; ++k) {
      const __m256 d0 = rows[k], d1 = rows[4 + k], d2 = rows[8 + k], d3 = rows[12 + k];
      _mm256_storeu_ps(to + k * step + channel, _mm256_sub_ps(d0, d2));
      _mm256_storeu_ps(to + (4 + k) * step + channel, _mm256_add_ps(d1, d2));
      _mm256_storeu_ps(to + (8 + k) * step + channel, _mm256_sub_ps(d2, d1));
      _mm256_storeu_ps(to + (12 + k) * step + channel, _mm256_sub_ps(d1, d3));
    }
  }
}

// The results of one tile.
inline void transformProducts(const Convolution& c, const float* from, int64_t step, const At& at,
                              const float* bias, const float* residual, float* out) {
  for (int64_t channel = 0; channel < c.out_channels; channel += kLanes) {
    __m256 rows[8];  // two results of each row of four
    WICK_AOT_UNROLL
    for (int i = 0; i < 4; ++i) {
      const auto load = [&](int k) { return _mm256_loadu_ps(from + (4 * i + k) * step + channel); };
      const __m256 m0 = load(0), m1 = load(1), m2 = load(2), m3 = load(3);
      rows[2 * i] = _mm256_add_ps(m0, _mm256_add_ps(m1, m2));
      rows[2 * i + 1] = _mm256_sub_ps(_mm256_sub_ps(m1, m2), m3);
    }
    const __m256 first = bias ? _mm256_loadu_ps(bias + channel) : _mm256_setzero_ps();
    WICK_AOT_UNROLL
    for (int k = 0; k < 2; ++k) {
      const __m256 m0 = rows[k], m1 = rows[2 + k], m2 = rows[4 + k], m3 = rows[6 + k];
      __m256 sums[2] = {_mm256_add_ps(m0, _mm256_add_ps(m1, m2)),
                        _mm256_sub_ps(_mm256_sub_ps(m1, m2), m3)};
      WICK_AOT_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int64_t y = 2 * at.down + i, x = 2 * at.across + k;
        if (y >= c.out_h || x >= c.out_w) continue;
        const int64_t to = ((at.sample * c.out_h + y) * c.out_w + x) * c.out_channels + channel;
        __m256 sum = _mm256_add_ps(sums[i], first);
        if (residual) sum = _mm256_add_ps(sum, _mm256_loadu_ps(residual + to));
        if (c.finish != Finish::Nothing) sum = _mm256_max_ps(sum, _mm256_setzero_ps());
        if (c.finish == Finish::Relu6) sum = _mm256_min_ps(sum, _mm256_set1_ps(6));
        _mm256_storeu_ps(out + to, sum);
      }
    }
  }
}

// R rows of 16 V results: `elements` are rows of `channels`, `weights` [channels, 16 V]. Meanwhile the lines from `next` on
// are fetched, one a channel: weights come from far memory in a large network, and nothing else would wait for them.
template <int R, int V>
__attribute__((target("avx512f"), noinline)) void multiplyWide(int64_t channels,
                                                               const float* elements,
                                                               const float* weights,
                                                               const float* next, float* to,
                                                               int64_t to_step) {
  __m512 sums[R][V];
  WICK_AOT_UNROLL
  for (int r = 0; r < R; ++r) {
    WICK_AOT_UNROLL
    for (int v = 0; v < V; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  for (int64_t channel = 0; channel < channels; ++channel, weights += kVector * V) {
    _mm_prefetch(reinterpret_cast<const char*>(next + kVector * channel), _MM_HINT_T1);
    __m512 row[V];
    WICK_AOT_UNROLL
    for (int v = 0; v < V; ++v) row[v] = _mm512_loadu_ps(weights + kVector * v);
    WICK_AOT_UNROLL
    for (int r = 0; r < R; ++r) {
      const __m512 element = _mm512_set1_ps(elements[r * channels + channel]);
      WICK_AOT_UNROLL
      for (int v = 0; v < V; ++v) sums[r][v] = _mm512_fmadd_ps(row[v], element, sums[r][v]);
    }
  }
  WICK_AOT_UNROLL
  for (int r = 0; r < R; ++r) {
    WICK_AOT_UNROLL
    for (int v = 0; v < V; ++v) _mm512_storeu_ps(to + r * to_step + kVector * v, sums[r][v]);
  }
}

// The same, 16 results at a time.
template <int R, int V>
__attribute__((noinline)) void multiplyNarrow(int64_t channels, const float* elements,
                                              const float* weights, const float* next, float* to,
                                              int64_t to_step) {
  for (int64_t part = 0; part < V; ++part) {
    __m256 sums[R][2];
    WICK_AOT_UNROLL
    for (int r = 0; r < R; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_ps();
    const float* row = weights + kVector * part;
    for (int64_t channel = 0; channel < channels; ++channel, row += kVector * V) {
      if (part == 0) {
        _mm_prefetch(reinterpret_cast<const char*>(next + kVector * channel), _MM_HINT_T1);
      }
      const __m256 low = _mm256_loadu_ps(row), high = _mm256_loadu_ps(row + kLanes);
      WICK_AOT_UNROLL
      for (int r = 0; r < R; ++r) {
        const __m256 element = _mm256_broadcast_ss(elements + r * channels + channel);
        sums[r][0] = _mm256_fmadd_ps(low, element, sums[r][0]);
        sums[r][1] = _mm256_fmadd_ps(high, element, sums[r][1]);
      }
    }
    WICK_AOT_UNROLL
    for (int r = 0; r < R; ++r) {
      _mm256_storeu_ps(to + r * to_step + kVector * part, sums[r][0]);
      _mm256_storeu_ps(to + r * to_step + kVector * part + kLanes, sums[r][1]);
    }
  }
}

using Multiply = void (*)(int64_t channels, const float* elements, const float* weights,
                          const float* next, float* to, int64_t to_step);
// By rows - 1 and vectors - 1.
#define WICK_AOT_ROWS(function, rows) \
  { function<rows, 1>, function<rows, 2>, function<rows, 3>, function<rows, 4> }
#define WICK_AOT_ALL_ROWS(function)                                                             \
  {                                                                                             \
    WICK_AOT_ROWS(function, 1), WICK_AOT_ROWS(function, 2), WICK_AOT_ROWS(function, 3),         \
        WICK_AOT_ROWS(function, 4), WICK_AOT_ROWS(function, 5), WICK_AOT_ROWS(function, kRows), \
  }
constexpr Multiply kWide[kRows][4] = WICK_AOT_ALL_ROWS(multiplyWide);
constexpr Multiply kNarrow[kRows][4] = WICK_AOT_ALL_ROWS(multiplyNarrow);
#undef WICK_AOT_ALL_ROWS
#undef WICK_AOT_ROWS

}  // namespace winograd

// `at_once` tiles at a time, for which `scratch` has 16 * at_once * (in_channels + out_channels) elements. `weights` are
// transformed, [16 points, blocks of up to 64 result channels, channels, results of the block]. `bias` is null or has an
// element for each channel, `residual` is null or has the shape of the result. `wide`: whether AVX-512 is used; the
// processor has it then.
inline void convolveByWinograd(const Convolution& c, int64_t at_once, const float* in,
                               const float* weights, const float* bias, const float* residual,
                               float* out, float* scratch, bool wide) {
  using namespace winograd;
  const int64_t tiles = tilesOf(c);
  const int64_t blocks = (c.out_channels + kBlock - 1) / kBlock;
  const auto& multiply = wide ? kWide : kNarrow;
  float* const products = scratch + kPoints * at_once * c.in_channels;
  for (int64_t begin = 0; begin < tiles; begin += at_once) {
    const int64_t count = at_once < tiles - begin ? at_once : tiles - begin;
    const int64_t step = count * c.in_channels, product_step = count * c.out_channels;
    WICK_AOT_PARALLEL_IF(step > kGrain / 16)
    for (int64_t tile = 0; tile < count; ++tile) {
      transformImage(c, in, placeOf(c, begin + tile), scratch + tile * c.in_channels, step);
    }
    WICK_AOT_PARALLEL_IF(step * c.out_channels > kGrain / 2)
    for (int64_t item = 0; item < kPoints * blocks; ++item) {
      const int64_t point = item / blocks, first = item % blocks * kBlock;
      const int64_t width = c.out_channels - first < kBlock ? c.out_channels - first : kBlock;
      const float* const w = weights + (point * c.out_channels + first) * c.in_channels;
      const float* const elements = scratch + point * step;
      float* const to = products + point * product_step + first;
      for (int64_t tile = 0; tile < count; tile += kRows) {
        const int64_t rows = kRows < count - tile ? kRows : count - tile;
        // The block behind this one; behind the last there may be nothing, which only is not fetched then.
        const float* const next =
            w + (width + tile / kRows % (width / kVector) * kVector) * c.in_channels;
        multiply[rows - 1][width / kVector - 1](c.in_channels, elements + tile * c.in_channels, w,
                                                next, to + tile * c.out_channels, c.out_channels);
      }
    }
    WICK_AOT_PARALLEL_IF(product_step > kGrain / 16)
    for (int64_t tile = 0; tile < count; ++tile) {
      transformProducts(c, products + tile * c.out_channels, product_step, placeOf(c, begin + tile),
                        bias, residual, out);
    }
  }
}
inline void convolveByWinograd(const Convolution& c, int64_t at_once, const float* in,
                               const float* weights, const float* bias, const float* residual,
                               float* out, float* scratch) {
  convolveByWinograd(c, at_once, in, weights, bias, residual, out, scratch,
                     __builtin_cpu_supports("avx512f"));
}

}  // namespace wick_aot

#endif
