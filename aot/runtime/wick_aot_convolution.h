// Convolutions of float32 images whose channels lie innermost, for models that were compiled ahead of
// time. C++17 for processors with AVX2 and FMA.
//
// A result is a chain of fused multiplications and additions over blocks of eight channels, in a block
// over the points of the kernel, at a point over the channels; points in the padding are left out. That
// is the order of oneDNN's kernels for AVX2, so the bits are the same.
//
// A thread computes blocks of pixels times up to 32 channels. Their sums wait in a small array while
// the weights of a few blocks of input channels are used for all pixels of the block, so those are read
// from the nearest cache.
#ifndef WICK_AOT_CONVOLUTION_H
#define WICK_AOT_CONVOLUTION_H

#include <immintrin.h>

#include <cstdint>

#include "wick_aot_loops.h"

#if defined(__clang__)
#define WICK_AOT_UNROLL _Pragma("clang loop unroll(full)")
#define WICK_AOT_UNROLL_SOME _Pragma("clang loop unroll_count(4)")
#else
#define WICK_AOT_UNROLL _Pragma("GCC unroll 16")
#define WICK_AOT_UNROLL_SOME _Pragma("GCC unroll 4")
#endif

namespace wick_aot {

enum class Finish : int32_t { Nothing = 0, Relu = 1, Relu6 = 6 };

// Of one call. Images are [samples, h, w, channels].
struct Convolution {
  int64_t samples, groups;
  int64_t in_h, in_w, in_channels;  // the channels of all groups
  int64_t out_h, out_w, out_channels;
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
  bool residual_first;  // whether sums begin with the residual, or it is added in the end
  Finish finish;

  int64_t points() const { return kernel_h * kernel_w; }
  int64_t pixels() const { return out_h * out_w; }
};

// The packed weight of a group: for each block of up to `kWidest` vectors of output channels, for each
// block of eight input channels, for each point, for each channel of the block: the vectors. Channels
// that a last vector lacks are zeros. All weights are finite.
constexpr int64_t kLanes = 8, kWidest = 4, kChannelBlock = 8, kMostPoints = 64;

namespace convolution {

constexpr int64_t kMostTiles = 24;
constexpr int64_t kWeightsNearby = 20 * 1024, kWeightsNear = 256 * 1024;  // bytes

// Lanes below n.
inline __m256i lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// sums += the element i behind each pixel, times a row of weights.
template <int P, int V>
inline __attribute__((always_inline)) void addOne(__m256 (&sums)[P][V], const float* const (&x)[P],
                                                  int64_t i, const float* w) {
  if (V <= 3) {
    __m256 weights[V];
    WICK_AOT_UNROLL
    for (int v = 0; v < V; ++v) weights[v] = _mm256_loadu_ps(w + kLanes * v);
    WICK_AOT_UNROLL
    for (int p = 0; p < P; ++p) {
      const __m256 element = _mm256_broadcast_ss(x[p] + i);
      WICK_AOT_UNROLL
      for (int v = 0; v < V; ++v) sums[p][v] = _mm256_fmadd_ps(weights[v], element, sums[p][v]);
    }
  } else {
    __m256 elements[P];
    WICK_AOT_UNROLL
    for (int p = 0; p < P; ++p) elements[p] = _mm256_broadcast_ss(x[p] + i);
    WICK_AOT_UNROLL
    for (int v = 0; v < V; ++v) {
      const __m256 weights = _mm256_loadu_ps(w + kLanes * v);
      WICK_AOT_UNROLL
      for (int p = 0; p < P; ++p) sums[p][v] = _mm256_fmadd_ps(weights, elements[p], sums[p][v]);
    }
  }
}
constexpr float kNothing[kChannelBlock] = {};

// What a call computes, of one group.
struct Part {
  const float* image;      // its first channel of the group
  const int64_t* offsets;  // of the points, in elements
  const float* weights;
  const float* bias;      // may be null, like the next one
  const float* residual;  // at the first channel of the block, like `out`
  float* out;
  int64_t channels;    // of the group's input
  int64_t last_lanes;  // channels of the block's last vector
};

// Elements that lie side by side in images and weights: `count` times `length`, the first of each at the
// offset of each `step`th point. Their order is that of the sums.
struct Runs {
  int64_t count, length, step;
};
inline Runs runsOf(const Convolution& c, int64_t channels) {
  if (c.points() == 1) return {1, channels, 1};
  if (channels <= kChannelBlock && c.groups == 1 && c.dilation_w == 1) {
    return {c.kernel_h, c.kernel_w * channels, c.kernel_w};
  }
  return {c.points(), channels < kChannelBlock ? channels : kChannelBlock, 1};
}

// Bit i: whether position first + i * step lies in [0, size).
inline uint64_t inRange(int64_t first, int64_t step, int64_t count, int64_t size) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = first + i * step;
    bits |= static_cast<uint64_t>(at >= 0 && at < size) << i;
  }
  return bits;
}

// P pixels times V vectors.
template <int P, int V>
struct Tile {
  const float* base[P];
  uint64_t points[P];  // bit k: whether point k lies in the image
  bool inside;         // whether all do
  int64_t pixels;      // that are there; the others repeat the last one

  void place(const Convolution& c, const Part& part, int64_t first, int64_t end) {
    pixels = end - first < P ? end - first : P;
    inside = true;
    int64_t h = first / c.out_w, w = first % c.out_w;
    for (int p = 0; p < P; ++p) {
      const int64_t y = h * c.stride_h - c.pad_h, x = w * c.stride_w - c.pad_w;
      base[p] = part.image + (y * c.in_w + x) * c.in_channels;
      if (y < 0 || x < 0 || y + (c.kernel_h - 1) * c.dilation_h >= c.in_h ||
          x + (c.kernel_w - 1) * c.dilation_w >= c.in_w) {
        inside = false;
        const uint64_t down = inRange(y, c.dilation_h, c.kernel_h, c.in_h);
        const uint64_t right = inRange(x, c.dilation_w, c.kernel_w, c.in_w);
        points[p] = 0;
        for (int64_t k = 0; k < c.kernel_h; ++k) {
          points[p] |= (down >> k & 1 ? right : 0) << (k * c.kernel_w);
        }
      } else {
        points[p] = ~uint64_t{0};
      }
      if (p + 1 < pixels && ++w == c.out_w) {
        w = 0;
        ++h;
      }
    }
  }

  // Adds the channels [from, to), whose weights begin at `w`.
  __attribute__((noinline)) void add(const int64_t* offsets, const Runs& runs,
                                     __m256 (&result)[P][V], const float* w, int64_t from,
                                     int64_t to) const {
    __m256 sums[P][V];
    const float* x[P];
    WICK_AOT_UNROLL
    for (int p = 0; p < P; ++p) {
      x[p] = base[p] + from;
      WICK_AOT_UNROLL
      for (int v = 0; v < V; ++v) sums[p][v] = result[p][v];
    }
    if (runs.count == 1) {
      const int64_t length = runs.step == 1 ? to - from : runs.length;
      WICK_AOT_UNROLL_SOME
      for (int64_t i = 0; i < length; ++i, w += kLanes * V) addOne(sums, x, i, w);
      from = to;
    }
    for (; from < to; from += kChannelBlock) {
      const int64_t length = to - from < kChannelBlock && runs.step == 1 ? to - from : runs.length;
      const int64_t* const end = offsets + runs.count * runs.step;
      for (const int64_t* at = offsets; at != end; at += runs.step) {
        const int64_t offset = *at;
        WICK_AOT_UNROLL_SOME
        for (int64_t i = offset; i < offset + length; ++i, w += kLanes * V) addOne(sums, x, i, w);
      }
      WICK_AOT_UNROLL
      for (int p = 0; p < P; ++p) x[p] += kChannelBlock;
    }
    WICK_AOT_UNROLL
    for (int p = 0; p < P; ++p) {
      WICK_AOT_UNROLL
      for (int v = 0; v < V; ++v) result[p][v] = sums[p][v];
    }
  }

  // The same where some of the points lie in the padding. They are zeros, which change no finite sum.
  __attribute__((noinline)) void addInside(const int64_t* offsets, int64_t count,
                                           __m256 (&result)[P][V], const float* w, int64_t from,
                                           int64_t to) const {
    __m256 sums[P][V];
    WICK_AOT_UNROLL
    for (int p = 0; p < P; ++p) {
      WICK_AOT_UNROLL
      for (int v = 0; v < V; ++v) sums[p][v] = result[p][v];
    }
    for (; from < to; from += kChannelBlock) {
      const int64_t length = to - from < kChannelBlock ? to - from : kChannelBlock;
      for (int64_t k = 0; k < count; ++k) {
        const float* x[P];
        WICK_AOT_UNROLL
        for (int p = 0; p < P; ++p) {
          x[p] = points[p] >> k & 1 ? base[p] + from + offsets[k] : kNothing;
        }
        WICK_AOT_UNROLL_SOME
        for (int64_t i = 0; i < length; ++i, w += kLanes * V) addOne(sums, x, i, w);
      }
    }
    WICK_AOT_UNROLL
    for (int p = 0; p < P; ++p) {
      WICK_AOT_UNROLL
      for (int v = 0; v < V; ++v) result[p][v] = sums[p][v];
    }
  }

  // What the sums begin with. kWhole: whether the last vector is full.
  template <bool kWhole>
  void begin(const Convolution& c, const Part& part, __m256 (&sums)[P][V], int64_t first) const {
    const __m256i mask = lanes(part.last_lanes);
    const auto load = [&](const float* from, int v) {
      return kWhole || v + 1 < V ? _mm256_loadu_ps(from + kLanes * v)
                                 : _mm256_maskload_ps(from + kLanes * v, mask);
    };
    __m256 bias[V];
    for (int v = 0; v < V; ++v) bias[v] = part.bias ? load(part.bias, v) : _mm256_setzero_ps();
    const bool residual = part.residual && c.residual_first;
    for (int p = 0; p < P; ++p) {
      const int64_t at = (first + (p < pixels ? p : pixels - 1)) * c.out_channels;
      for (int v = 0; v < V; ++v) {
        sums[p][v] = bias[v];
        if (residual) {
          sums[p][v] = load(part.residual + at, v);
          if (part.bias) sums[p][v] = _mm256_add_ps(sums[p][v], bias[v]);
        }
      }
    }
  }

  template <bool kWhole>
  void end(const Convolution& c, const Part& part, const __m256 (&sums)[P][V],
           int64_t first) const {
    const __m256i mask = lanes(part.last_lanes);
    const bool residual = part.residual && !c.residual_first;
    for (int p = 0; p < pixels; ++p) {
      const int64_t at = (first + p) * c.out_channels;
      for (int v = 0; v < V; ++v) {
        const int64_t offset = at + kLanes * v;
        const bool whole = kWhole || v + 1 < V;
        __m256 sum = sums[p][v];
        if (residual) {
          sum = _mm256_add_ps(sum, whole ? _mm256_loadu_ps(part.residual + offset)
                                         : _mm256_maskload_ps(part.residual + offset, mask));
        }
        if (c.finish != Finish::Nothing) sum = _mm256_max_ps(sum, _mm256_setzero_ps());
        if (c.finish == Finish::Relu6) sum = _mm256_min_ps(sum, _mm256_set1_ps(6));
        if (whole) {
          _mm256_storeu_ps(part.out + offset, sum);
        } else {
          _mm256_maskstore_ps(part.out + offset, mask, sum);
        }
      }
    }
  }
};

// The pixels [begin, end) of an image, at most kMostTiles * P.
template <int P, int V>
__attribute__((noinline)) void pixelBlock(const Convolution& c, const Part& part, int64_t begin,
                                          int64_t end) {
  Tile<P, V> tiles[kMostTiles];
  __m256 sums[kMostTiles][P][V];
  const int64_t count = (end - begin + P - 1) / P;
  const bool whole = part.last_lanes == kLanes;
  for (int64_t t = 0; t < count; ++t) tiles[t].place(c, part, begin + t * P, end);
  const Runs runs = runsOf(c, part.channels);
  const int64_t nearby = kWeightsNearby / (kChannelBlock * c.points() * kLanes * V * 4);
  const int64_t step = kChannelBlock * (nearby > 1 ? nearby : 1);
  for (int64_t from = 0; from < part.channels; from += step) {
    const int64_t to = from + step < part.channels ? from + step : part.channels;
    const float* w = part.weights + from * c.points() * kLanes * V;
    for (int64_t t = 0; t < count; ++t) {
      const Tile<P, V>& tile = tiles[t];
      const int64_t first = begin + t * P;
      if (from == 0) {
        whole ? tile.template begin<true>(c, part, sums[t], first)
              : tile.template begin<false>(c, part, sums[t], first);
      }
      if (tile.inside) {
        tile.add(part.offsets, runs, sums[t], w, from, to);
      } else {
        tile.addInside(part.offsets, c.points(), sums[t], w, from, to);
      }
      if (to == part.channels) {
        whole ? tile.template end<true>(c, part, sums[t], first)
              : tile.template end<false>(c, part, sums[t], first);
      }
    }
  }
}

constexpr int pixelsOfTile(int vectors) {
  return vectors == 4 ? 3 : vectors == 3 ? 4 : vectors == 2 ? 6 : 8;
}

}  // namespace convolution

// `residual` is null or has the shape of the result; `bias` is null or has an element for each channel.
inline void convolve(const Convolution& c, const float* in, const float* weights, const float* bias,
                     const float* residual, float* out) {
  using namespace convolution;
  int64_t offsets[kMostPoints] = {};
  for (int64_t k = 0; k < c.points(); ++k) {
    const int64_t h = k / c.kernel_w * c.dilation_h, w = k % c.kernel_w * c.dilation_w;
    offsets[k] = (h * c.in_w + w) * c.in_channels;
  }
  const int64_t channels = c.in_channels / c.groups, results = c.out_channels / c.groups;
  const int64_t vectors = (results + kLanes - 1) / kLanes;
  const int64_t blocks = (vectors + kWidest - 1) / kWidest;
  const int64_t group_weights = vectors * kLanes * c.points() * channels;
  // Blocks of pixels of about the same size.
  const int widest = vectors < kWidest ? pixelsOfTile(static_cast<int>(vectors)) : 3;
  const int64_t tiles = (c.pixels() + widest - 1) / widest;
  const int64_t parts = (tiles + kMostTiles - 1) / kMostTiles;
  const int64_t part_pixels = (tiles + parts - 1) / parts * 3;  // fits tiles of all widths
  const int64_t pieces = (c.pixels() + part_pixels - 1) / part_pixels;
  const int64_t areas = c.samples * pieces, items = c.groups * blocks * areas;
  // Weights that a near cache holds are gone through for each block of pixels, others once.
  const bool pixels_first = group_weights * 4 <= kWeightsNear;
  WICK_AOT_PARALLEL_IF(c.samples * c.pixels() * c.out_channels * c.points() * channels > 8 * kGrain)
  for (int64_t item = 0; item < items; ++item) {
    const int64_t area = pixels_first ? item / blocks % areas : item % areas;
    const int64_t block = pixels_first ? item % blocks : item / areas % blocks;
    const int64_t piece = area % pieces, sample = area / pieces, group = item / areas / blocks;
    const int64_t first_vector = block * kWidest;
    const int64_t width = vectors - first_vector < kWidest ? vectors - first_vector : kWidest;
    const int64_t channel = group * results + first_vector * kLanes;
    const int64_t last = results - (first_vector + width - 1) * kLanes;
    const int64_t image = sample * c.pixels() * c.out_channels + channel;
    const Part part = {
        in + sample * c.in_h * c.in_w * c.in_channels + group * channels,
        offsets,
        weights + group * group_weights + first_vector * kLanes * c.points() * channels,
        bias ? bias + channel : nullptr,
        residual ? residual + image : nullptr,
        out + image,
        channels,
        last < kLanes ? last : kLanes};
    const int64_t begin = piece * part_pixels;
    const int64_t end = begin + part_pixels < c.pixels() ? begin + part_pixels : c.pixels();
    switch (width) {
      case 1:
        pixelBlock<pixelsOfTile(1), 1>(c, part, begin, end);
        break;
      case 2:
        pixelBlock<pixelsOfTile(2), 2>(c, part, begin, end);
        break;
      case 3:
        pixelBlock<pixelsOfTile(3), 3>(c, part, begin, end);
        break;
      default:
        pixelBlock<pixelsOfTile(4), 4>(c, part, begin, end);
        break;
    }
  }
}

}  // namespace wick_aot

#endif
