// Layers and searches of models that were compiled ahead of time: patches of images, regions of feature maps,
// distances, quantiles, counts. C++17. What is given memory to work in allocates none.
#ifndef WICK_AOT_LAYERS_H
#define WICK_AOT_LAYERS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "wick_aot_elements.h"

namespace wick_aot {

// ---- patches: what convolutions read, as columns ----

// Calls visit(pixel of the image, element of the columns) for the elements of patches that lie within the image. Images
// are of so many channels of d x h x w, columns [channels, kernel, steps].
template <class Visit>
inline void forPatches(int64_t channels, const int64_t (&image)[3], const int64_t (&steps)[3],
                       const int64_t (&kernel)[3], const int64_t (&stride)[3],
                       const int64_t (&padding)[3], const int64_t (&dilation)[3], Visit visit) {
  int64_t column = 0;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t k = 0; k < kernel[0] * kernel[1] * kernel[2]; ++k) {
      const int64_t kd = k / (kernel[1] * kernel[2]), kh = k / kernel[2] % kernel[1];
      const int64_t kw = k % kernel[2];
      for (int64_t od = 0; od < steps[0]; ++od) {
        const int64_t d = od * stride[0] - padding[0] + kd * dilation[0];
        for (int64_t oh = 0; oh < steps[1]; ++oh, column += steps[2]) {
          const int64_t h = oh * stride[1] - padding[1] + kh * dilation[1];
          if (d < 0 || d >= image[0] || h < 0 || h >= image[1]) continue;
          const int64_t base = ((c * image[0] + d) * image[1] + h) * image[2];
          for (int64_t ow = 0; ow < steps[2]; ++ow) {
            const int64_t w = ow * stride[2] - padding[2] + kw * dilation[2];
            if (w >= 0 && w < image[2]) visit(base + w, column + ow);
          }
        }
      }
    }
  }
}

// to[samples, channels, kernel, steps] from images [samples, channels, pixels], zeros outside of the image; with kBack patches
// are added into images.
template <class T, bool kBack>
inline void movePatches(const T* from, T* to, int64_t samples, int64_t channels, int64_t id,
                        int64_t ih, int64_t iw, int64_t sd, int64_t sh, int64_t sw, int64_t kd,
                        int64_t kh, int64_t kw, int64_t td, int64_t th, int64_t tw, int64_t pd,
                        int64_t ph, int64_t pw, int64_t ld, int64_t lh, int64_t lw) {
  const int64_t pixels = channels * id * ih * iw;
  const int64_t columns = channels * kd * kh * kw * sd * sh * sw;
  std::memset(static_cast<void*>(to), 0,
              static_cast<size_t>(samples * (kBack ? pixels : columns)) * sizeof(T));
  WICK_AOT_PARALLEL_IF(samples > 1 && samples * columns > kGrain)
  for (int64_t n = 0; n < samples; ++n) {
    forPatches(channels, {id, ih, iw}, {sd, sh, sw}, {kd, kh, kw}, {td, th, tw}, {pd, ph, pw},
               {ld, lh, lw}, [&](int64_t pixel, int64_t column) {
                 const int64_t p = n * pixels + pixel, c = n * columns + column;
                 if (kBack) {
                   to[p] = sum(to[p], from[c]);
                 } else {
                   to[c] = from[p];
                 }
               });
  }
}

// ---- deformable convolution ----

// Columns [channels, taps, places] of one image [channels, h, w]; offsets [groups, taps, 2, places], masks
// [groups, taps, places] or null.
template <class T>
inline void deformedPatches(const T* image, const T* offsets, const T* masks, T* columns,
                            int64_t channels, int64_t h, int64_t w, int64_t groups, int64_t kh,
                            int64_t kw, int64_t oh, int64_t ow, int64_t th, int64_t tw, int64_t ph,
                            int64_t pw, int64_t lh, int64_t lw) {
  const int64_t taps = kh * kw, places = oh * ow, each = channels / groups;
  WICK_AOT_PARALLEL_IF(channels * taps * places > kGrain / 8)
  for (int64_t c = 0; c < channels; ++c) {
    const T* const plane = image + c * h * w;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t mask_at = (c / each * taps + tap) * places;
      for (int64_t p = 0; p < places; ++p) {
        const T y = static_cast<T>(p / ow * th - ph + tap / kw * lh) + offsets[2 * mask_at + p];
        const T x =
            static_cast<T>(p % ow * tw - pw + tap % kw * lw) + offsets[2 * mask_at + places + p];
        T value = 0;
        // False for what is not a number, too.
        if (y > T(-1) && y < static_cast<T>(h) && x > T(-1) && x < static_cast<T>(w)) {
          const T top = std::floor(y), left = std::floor(x), dy = y - top, dx = x - left;
          const int64_t row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
          const auto read = [&](int64_t i, int64_t j) {
            return i >= 0 && i < h && j >= 0 && j < w ? plane[i * w + j] : T(0);
          };
          const T mask = masks ? masks[mask_at + p] : T(1);
          value = mask *
                  ((1 - dy) * (1 - dx) * read(row, column) + (1 - dy) * dx * read(row, column + 1) +
                   dy * (1 - dx) * read(row + 1, column) + dy * dx * read(row + 1, column + 1));
        }
        columns[(c * taps + tap) * places + p] = value;
      }
    }
  }
}

// ---- regions of feature maps ----

using wick::regions::samplesOfCell;

// Means of samples in the cells of regions [count, 5] of a map [images, channels, h, w]. `numbers`: the scale, and what is
// taken off coordinates. `own_channels`: each cell reads a channel of its own. False when a region names no image, is not
// finite, or is too large.
template <class T>
inline bool alignedRegions(const T* map, const T* regions, const double* numbers, T* to,
                           int64_t count, int64_t images, int64_t channels, int64_t h, int64_t w,
                           int64_t ph, int64_t pw, int64_t ratio, int64_t least_size,
                           int64_t own_channels) {
  const T scale = static_cast<T>(numbers[0]), offset = static_cast<T>(numbers[1]);
  const int64_t cells = ph * pw, made = own_channels != 0 ? channels / cells : channels;
  bool good = true;
  for (int64_t n = 0; n < count; ++n) {
    const T* const roi = regions + 5 * n;
    const T x0 = roi[1] * scale - offset, y0 = roi[2] * scale - offset;
    const T width = roi[3] * scale - offset - x0, height = roi[4] * scale - offset - y0;
    good = good && roi[0] > T(-1) && roi[0] < static_cast<T>(images) && std::isfinite(width) &&
           std::isfinite(height) && samplesOfCell(ratio, std::max(height, T(1)), ph) >= 0 &&
           samplesOfCell(ratio, std::max(width, T(1)), pw) >= 0;
  }
  if (!good) return false;
  WICK_AOT_PARALLEL_IF(count * made * cells > kGrain / 16)
  for (int64_t n = 0; n < count; ++n) {
    const T* const roi = regions + 5 * n;
    const T x0 = roi[1] * scale - offset, y0 = roi[2] * scale - offset;
    T width = roi[3] * scale - offset - x0, height = roi[4] * scale - offset - y0;
    if (least_size != 0) {
      width = std::max(width, T(1));
      height = std::max(height, T(1));
    }
    const int64_t rows = samplesOfCell(ratio, height, ph),
                  columns = samplesOfCell(ratio, width, pw);
    const T cell_h = height / static_cast<T>(ph), cell_w = width / static_cast<T>(pw);
    T share_of = static_cast<T>(rows * columns);
    if (own_channels == 0) share_of = std::max(share_of, T(1));
    const T* const image = map + static_cast<int64_t>(roi[0]) * channels * h * w;
    for (int64_t c = 0; c < made; ++c) {
      for (int64_t i = 0; i < cells; ++i) {
        const T* const plane = image + (own_channels != 0 ? c * cells + i : c) * h * w;
        T all = 0;
        for (int64_t iy = 0; iy < rows; ++iy) {
          const wick::regions::Sample<T> y = wick::regions::sampleAt(
              y0 + static_cast<T>(i / pw) * cell_h +
                  (static_cast<T>(iy) + T(.5)) * cell_h / static_cast<T>(rows),
              h);
          if (!y.inside) continue;
          const T* const low = plane + y.low * w;
          const T* const high = plane + y.high * w;
          for (int64_t ix = 0; ix < columns; ++ix) {
            const wick::regions::Sample<T> x = wick::regions::sampleAt(
                x0 + static_cast<T>(i % pw) * cell_w +
                    (static_cast<T>(ix) + T(.5)) * cell_w / static_cast<T>(columns),
                w);
            if (!x.inside) continue;
            all += y.low_weight * x.low_weight * low[x.low] +
                   y.low_weight * x.high_weight * low[x.high] +
                   y.high_weight * x.low_weight * high[x.low] +
                   y.high_weight * x.high_weight * high[x.high];
          }
        }
        to[(n * made + c) * cells + i] = all / share_of;
      }
    }
  }
  return true;
}

// The greatest elements of the cells of regions, and where they lie (-1: nowhere).
template <class T>
inline bool greatestOfRegions(const T* map, const T* regions, const double* numbers, T* to,
                              int32_t* places, int64_t count, int64_t images, int64_t channels,
                              int64_t h, int64_t w, int64_t ph, int64_t pw) {
  const T scale = static_cast<T>(numbers[0]);
  for (int64_t n = 0; n < count; ++n) {
    if (!(regions[5 * n] > T(-1) && regions[5 * n] < static_cast<T>(images))) return false;
  }
  const auto whole = [](T v) -> int64_t {
    constexpr double kLimit = 1 << 30;
    const double d = static_cast<double>(v);
    return d != d ? 0 : static_cast<int64_t>(std::min(std::max(d, -kLimit), kLimit));
  };
  const auto limited = [](int64_t v, int64_t most) {
    return std::min(std::max<int64_t>(v, 0), most);
  };
  WICK_AOT_PARALLEL_IF(count * channels * ph * pw > kGrain / 16)
  for (int64_t n = 0; n < count; ++n) {
    const T* const roi = regions + 5 * n;
    const int64_t left = whole(std::round(roi[1] * scale)), top = whole(std::round(roi[2] * scale));
    const int64_t width = std::max<int64_t>(whole(std::round(roi[3] * scale)) - left + 1, 1);
    const int64_t height = std::max<int64_t>(whole(std::round(roi[4] * scale)) - top + 1, 1);
    const T cell_h = static_cast<T>(height) / static_cast<T>(ph);
    const T cell_w = static_cast<T>(width) / static_cast<T>(pw);
    for (int64_t i = 0; i < ph * pw; ++i) {
      const auto from = [&](int64_t k, T cell) {
        return static_cast<int64_t>(std::floor(static_cast<T>(k) * cell));
      };
      const auto upto = [&](int64_t k, T cell) {
        return static_cast<int64_t>(std::ceil(static_cast<T>(k + 1) * cell));
      };
      const int64_t y0 = limited(from(i / pw, cell_h) + top, h);
      const int64_t y1 = limited(upto(i / pw, cell_h) + top, h);
      const int64_t x0 = limited(from(i % pw, cell_w) + left, w);
      const int64_t x1 = limited(upto(i % pw, cell_w) + left, w);
      const bool empty = y1 <= y0 || x1 <= x0;
      for (int64_t c = 0; c < channels; ++c) {
        const T* const plane = map + (static_cast<int64_t>(roi[0]) * channels + c) * h * w;
        T greatest = empty ? T(0) : -std::numeric_limits<T>::max();
        int64_t place = -1;
        for (int64_t y = y0; y < y1; ++y) {
          for (int64_t x = x0; x < x1; ++x) {
            if (!(plane[y * w + x] > greatest)) continue;
            greatest = plane[y * w + x];
            place = y * w + x;
          }
        }
        const int64_t at = (n * channels + c) * ph * pw + i;
        to[at] = greatest;
        places[at] = static_cast<int32_t>(place);
      }
    }
  }
  return true;
}

// ---- distances ----

template <class T>
inline T rowDistance(const T* a, const T* b, int64_t n, double p) {
  double all = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (p == 0) {
      all += d != 0 ? 1 : 0;
    } else if (p == 1) {
      all += d;
    } else if (p == 2) {
      all += d * d;
    } else if (std::isinf(p)) {
      all = d > all || d != d ? d : all;
    } else {
      all += std::pow(d, p);
    }
  }
  if (p == 2) return static_cast<T>(std::sqrt(all));
  return static_cast<T>(p == 0 || p == 1 || std::isinf(p) ? all : std::pow(all, 1 / p));
}
// to[batches, r, s] of rows of a [batches, r, n] and b [batches, s, n].
template <class T>
inline void rowDistances(const T* a, const T* b, const double* p, T* to, int64_t batches, int64_t r,
                         int64_t s, int64_t n) {
  WICK_AOT_PARALLEL_IF(batches * r * s * n > kGrain)
  for (int64_t row = 0; row < batches * r; ++row) {
    for (int64_t j = 0; j < s; ++j) {
      to[row * s + j] = rowDistance(a + row * n, b + (row / r * s + j) * n, n, *p);
    }
  }
}
// The sums of rows of squares, added up in float64.
template <class T>
inline void squareSums(const T* from, T* to, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r) {
    double all = 0;
    for (int64_t i = 0; i < n; ++i) all += static_cast<double>(from[r * n + i] * from[r * n + i]);
    to[r] = static_cast<T>(all);
  }
}
// Of all pairs of rows i < j.
template <class T>
inline void pairDistances(const T* x, const double* p, T* to, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i + 1; j < rows; ++j) *to++ = rowDistance(x + i * n, x + j * n, n, *p);
  }
}

// ---- searches and counts ----

using wick::order::Between;
// The values at fractions of sorted rows, [rows, fractions]. False when a fraction is not from 0 to 1.
template <class T, Between kHow>
inline bool quantilesOfRows(const T* sorted_rows, const T* fractions, T* to, int64_t rows,
                            int64_t length, int64_t count, int64_t ignore_nan) {
  for (int64_t i = 0; i < count; ++i) {
    if (!(fractions[i] >= 0 && fractions[i] <= 1)) return false;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = sorted_rows + r * length;
    int64_t n = length;
    while (n > 0 && row[n - 1] != row[n - 1]) --n;
    const bool spoiled = n == 0 || (ignore_nan == 0 && n < length);
    for (int64_t i = 0; i < count; ++i) {
      to[r * count + i] = spoiled ? std::numeric_limits<T>::quiet_NaN()
                                  : wick::order::quantileOf(row, n, fractions[i], kHow);
    }
  }
  return true;
}

// Whether values are among `tests`, which are put in order. NaN is nowhere.
template <class T>
inline void membersOf(const T* values, T* tests, uint8_t* to, int64_t count, int64_t of,
                      int64_t invert) {
  T* end = tests;
  for (int64_t i = 0; i < of; ++i) {
    if (tests[i] == tests[i]) *end++ = tests[i];
  }
  std::sort(tests, end);
  for (int64_t i = 0; i < count; ++i) {
    const bool found = values[i] == values[i] && std::binary_search(tests, end, values[i]);
    to[i] = static_cast<uint8_t>(found != (invert != 0));
  }
}

// Each position as often as its count says, `most` times together at most, and how often together. False when a count
// is negative or all together are too many for a number.
inline bool repeatedPlaces(const int64_t* counts, int64_t* to, int64_t* found, int64_t size,
                           int64_t most) {
  int64_t total = 0;
  for (int64_t i = 0; i < size; ++i) {
    if (counts[i] < 0 || counts[i] > INT64_MAX - total) return false;
    for (int64_t k = total; k < std::min(most, total + counts[i]); ++k) to[k] = i;
    total += counts[i];
  }
  *found = total;
  return true;
}

// How many more than `least` places there must be so that all positions are among them. False when one is negative.
inline bool placesBeyond(const int64_t* at, int64_t* found, int64_t count, int64_t least) {
  int64_t largest = least - 1;
  for (int64_t i = 0; i < count; ++i) {
    if (at[i] < 0 || at[i] == INT64_MAX) return false;
    largest = std::max(largest, at[i]);
  }
  *found = largest + 1 - least;
  return true;
}

// The distinct rows of [rows, width] in order, or with kNeighbours those that differ from the one in front of them, as
// positions of the first one of each; for each row the place of its like, and how many there are of each.
template <class T, bool kNeighbours>
inline void distinctRows(const T* from, int64_t* firsts, int64_t* places, int64_t* occurrences,
                         int64_t* memory, int64_t* found, int64_t rows, int64_t width) {
  int64_t* const order = memory;
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  if (!kNeighbours) {
    std::sort(order, order + rows, [from, width](int64_t i, int64_t j) {
      const T* const a = from + i * width;
      const T* const b = from + j * width;
      if (std::lexicographical_compare(a, a + width, b, b + width)) return true;
      return !std::lexicographical_compare(b, b + width, a, a + width) && i < j;
    });
  }
  int64_t size = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const T* const row = from + order[i] * width;
    if (i == 0 || !std::equal(row, row + width, from + order[i - 1] * width)) {
      firsts[size] = order[i];
      occurrences[size++] = 0;
    }
    places[order[i]] = size - 1;
    ++occurrences[size - 1];
  }
  *found = size;
}

// The distinct values in the order in which a std::unordered_set has them: one chain goes through all buckets, and a new
// value stands first in its bucket, or first of all when that was empty. `growth` tells how many values make it take how many
// buckets. NaN as in distinctValues. `memory` holds six times as many numbers as there are elements, and one a bucket.
template <class T>
inline void distinctAsSet(const T* from, const int64_t* growth, T* values, int64_t* places,
                          int64_t* occurrences, int64_t* memory, int64_t* found, int64_t count) {
  int64_t* const order = memory;
  int64_t* const leader = order + count;  // of each element, the first one like it
  int64_t* const id_of = leader + count;  // of a leader
  int64_t* const firsts = id_of + count;  // of a value
  int64_t* const next = firsts + count;   // in the chain
  int64_t* const rank = next + count;     // in the result
  int64_t* const before = rank + count;   // of a bucket, what stands in front of its first value
  constexpr int64_t kNone = -1, kHead = -2;
  placesInOrder(from, order, count);
  for (int64_t i = 0; i < count; ++i) {
    const bool same = i > 0 && from[order[i]] == from[order[i - 1]];
    leader[order[i]] = same ? leader[order[i - 1]] : order[i];
  }
  int64_t size = 0, head = kNone, buckets = 0;
  const auto bucketOf = [&](int64_t id) {
    return static_cast<int64_t>(std::hash<T>()(from[firsts[id]]) % static_cast<uint64_t>(buckets));
  };
  const auto link = [&](int64_t id) {
    const int64_t bucket = bucketOf(id), at = before[bucket];
    if (at == kNone) {
      next[id] = head;
      if (head != kNone) before[bucketOf(head)] = id;
      head = id;
      before[bucket] = kHead;
    } else {
      int64_t& place = at == kHead ? head : next[at];
      next[id] = place;
      place = id;
    }
  };
  for (int64_t i = 0; i < count; ++i) {
    if (leader[i] != i) continue;
    const int64_t id = size++;
    id_of[i] = id;
    firsts[id] = i;
    if (*growth == size) {
      buckets = growth[1];
      growth += 2;
      std::fill(before, before + buckets, kNone);
      int64_t rest = head;
      head = kNone;
      while (rest != kNone) {
        const int64_t now = rest;
        rest = next[rest];
        link(now);
      }
    }
    link(id);
  }
  int64_t made = 0;
  for (int64_t id = head; id != kNone; id = next[id]) {
    values[made] = from[firsts[id]];
    occurrences[made] = 0;
    rank[id] = made++;
  }
  for (int64_t i = 0; i < count; ++i) {
    const bool is_number = from[i] == from[i];
    places[i] = is_number ? rank[id_of[leader[i]]] : 0;
    occurrences[places[i]] += is_number ? 1 : 0;
  }
  *found = size;
}

// ---- normalization ----

// Sums of elements and of their squares, in float64, over sixteen lanes.
template <class T>
inline void momentSums(const T* x, int64_t n, double& sum_of, double& squares_of) {
  double sums[16] = {}, squares[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int l = 0; l < 16; ++l) {
      const double v = static_cast<double>(x[i + l]);
      sums[l] += v;
      squares[l] += v * v;
    }
  }
  const auto joined = [](const double* of) {
    double lanes[4];
    for (int l = 0; l < 4; ++l) lanes[l] = (of[l] + of[4 + l]) + (of[8 + l] + of[12 + l]);
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  };
  sum_of = joined(sums);
  squares_of = joined(squares);
  for (; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    sum_of += v;
    squares_of += v * v;
  }
}
inline void finishMoments(double sum_of, double squares_of, double count, double& mean,
                          double& variance) {
  mean = sum_of / count;
  variance = squares_of / count - mean * mean;
  variance = variance < 0 ? 0 : variance;  // keeps NaN
}

// Means and variances of planes that lie one behind the other; every `outputs`-th of them belongs together.
template <class T>
inline void planeMoments(const T* x, double* mean, double* variance, int64_t planes,
                         int64_t outputs, int64_t length) {
  for (int64_t o = 0; o < outputs; ++o) mean[o] = variance[o] = 0;
  for (int64_t p = 0; p < planes; ++p) {
    double sum_of, squares_of;
    momentSums(x + p * length, length, sum_of, squares_of);
    mean[p % outputs] += sum_of;
    variance[p % outputs] += squares_of;
  }
  const double count = static_cast<double>(planes / outputs * length);
  for (int64_t o = 0; o < outputs; ++o) {
    finishMoments(mean[o], variance[o], count, mean[o], variance[o]);
  }
}

// Rows less their mean, by their deviation, times `weight` and plus `bias`, which may be null.
template <class T>
inline void normalizedRows(const T* x, const T* weight, const T* bias, const double* eps, T* to,
                           T* means, T* inverse_deviations, int64_t rows, int64_t width) {
  WICK_AOT_PARALLEL_IF(rows > 1 && rows * width > kGrain)
  for (int64_t row = 0; row < rows; ++row) {
    const T* const from = x + row * width;
    T* const out = to + row * width;
    double mean, variance;
    momentSums(from, width, mean, variance);
    finishMoments(mean, variance, static_cast<double>(width), mean, variance);
    const T r = T(1) / std::sqrt(static_cast<T>(variance) + static_cast<T>(*eps));
    const T m = static_cast<T>(mean);
    for (int64_t i = 0; i < width; ++i) {
      const T v = (from[i] - m) * r;
      out[i] = weight && bias ? std::fma(v, weight[i], bias[i])
               : weight       ? v * weight[i]
               : bias         ? v + bias[i]
                              : v;
    }
    means[row] = m;
    inverse_deviations[row] = r;
  }
}

// ---- elements ----

template <class T>
inline void fractionsAndPowers(const T* from, T* fractions, int32_t* powers, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    int power = 0;
    fractions[i] = std::frexp(from[i], &power);
    powers[i] = power;
  }
}

// In float64, one after the other.
template <class T>
inline void sumInOrder(const T* from, T* to, int64_t count) {
  double all = 0;
  for (int64_t i = 0; i < count; ++i) all += static_cast<double>(from[i]);
  *to = static_cast<T>(all);
}

// Powers of each element, [count, columns].
template <class T>
inline void powersOf(const T* from, T* to, int64_t count, int64_t columns, int64_t increasing) {
  for (int64_t r = 0; r < count; ++r) {
    T power = 1;
    for (int64_t c = 0; c < columns; ++c) {
      to[r * columns + (increasing != 0 ? c : columns - 1 - c)] = power;
      power = productOf(power, from[r]);
    }
  }
}

}  // namespace wick_aot

#endif
