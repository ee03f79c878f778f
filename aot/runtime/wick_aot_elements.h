// Operators that move, order and add up elements, of models that were compiled ahead of time. C++17. What is given
// memory to work in allocates none.
#ifndef WICK_AOT_ELEMENTS_H
#define WICK_AOT_ELEMENTS_H

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine_parts.h"
#include "wick_aot_loops.h"

namespace wick_aot {

// In which sums and products of elements are made: integers wrap.
template <class T>
using Wrapping = typename std::conditional<std::is_integral<T>::value, uint64_t, T>::type;
template <class T>
inline T sum(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}
template <class T>
inline T productOf(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

// ---- resampling ----

// to[outer, rows, inner]: row r is the sum of the rows place[e] of from[outer, source_rows, inner] times weight[e], for e from
// start[r] up to start[r + 1]. Without weights, copies of one each. `empty` tells whether sums begin with a zero.
template <class T>
inline void weightedRows(const T* from, const int64_t* start, const int64_t* place, const T* weight,
                         T* to, int64_t outer, int64_t source_rows, int64_t rows, int64_t inner,
                         int64_t empty) {
  WICK_AOT_PARALLEL_IF(outer * rows * inner > kGrain)
  for (int64_t row = 0; row < outer * rows; ++row) {
    const T* const source = from + row / rows * source_rows * inner;
    T* const sum_of = to + row * inner;
    int64_t e = start[row % rows];
    const int64_t end = start[row % rows + 1];
    if (!weight) {
      std::memcpy(sum_of, source + place[e] * inner, static_cast<size_t>(inner) * sizeof(T));
      continue;
    }
    if (empty != 0 || e == end) {
      for (int64_t i = 0; i < inner; ++i) sum_of[i] = 0;
    } else {
      const T* const first = source + place[e] * inner;
      for (int64_t i = 0; i < inner; ++i) sum_of[i] = productOf(first[i], weight[e]);
      ++e;
    }
    for (; e < end; ++e) {
      const T* const next = source + place[e] * inner;
      for (int64_t i = 0; i < inner; ++i) sum_of[i] = sum(sum_of[i], productOf(next[i], weight[e]));
    }
  }
}

// Samples of planes [samples, channels, d, h, w] at the points of a grid, [samples, points, spatial].
template <class T>
inline void sampleGrid(const T* from, const T* grid, T* to, int64_t samples, int64_t channels,
                       int64_t points, int64_t d, int64_t h, int64_t w, int64_t spatial,
                       int64_t interpolation, int64_t padding, int64_t align) {
  const int64_t pixels = d * h * w;
  WICK_AOT_PARALLEL_IF(samples * points * channels > kGrain / 8)
  for (int64_t i = 0; i < samples * points; ++i) {
    const wick::grid::Sample<T> sample = wick::grid::sampleAt<T>(
        grid + i * spatial, spatial, {d, h, w}, interpolation, padding, align != 0);
    const int64_t first = i / points * channels, point = i % points;
    for (int64_t c = 0; c < channels; ++c) {
      to[(first + c) * points + point] = sample.valueOf(from + (first + c) * pixels);
    }
  }
}

// ---- what goes along a dimension, of [outer, size, inner] ----

template <class T, bool kProduct>
inline void cumulative(const T* from, T* to, int64_t outer, int64_t size, int64_t inner) {
  using Sum = typename std::conditional<std::is_integral<T>::value, uint64_t, double>::type;
  WICK_AOT_PARALLEL_IF(outer * inner > 1 && outer * size * inner > kGrain)
  for (int64_t lane = 0; lane < outer * inner; ++lane) {
    int64_t i = lane / inner * size * inner + lane % inner;
    Sum all = kProduct ? 1 : 0;
    for (int64_t k = 0; k < size; ++k, i += inner) {
      all = kProduct ? all * static_cast<Sum>(from[i]) : all + static_cast<Sum>(from[i]);
      to[i] = static_cast<T>(all);
    }
  }
}

template <class T>
inline void cumulativeLogSum(const T* from, T* to, int64_t outer, int64_t size, int64_t inner) {
  WICK_AOT_PARALLEL_IF(outer * inner > 1 && outer * size * inner > kGrain / 16)
  for (int64_t lane = 0; lane < outer * inner; ++lane) {
    int64_t i = lane / inner * size * inner + lane % inner;
    double all = -HUGE_VAL;
    for (int64_t k = 0; k < size; ++k, i += inner) {
      const double v = from[i];
      const bool below = v < all || v != v;
      const double low = below ? v : all, high = below ? all : v;
      // Equal infinities subtract to NaN; the larger term alone decides then.
      all = low != high || std::isfinite(low) ? std::log1p(std::exp(low - high)) + high : v;
      to[i] = static_cast<T>(all);
    }
  }
}

// The latest of equal elements; a NaN stays.
template <class T, bool kLargest>
inline void cumulativeExtremes(const T* from, T* to, int64_t* indices, int64_t outer, int64_t size,
                               int64_t inner) {
  WICK_AOT_PARALLEL_IF(outer * inner > 1 && outer * size * inner > kGrain)
  for (int64_t lane = 0; lane < outer * inner; ++lane) {
    int64_t i = lane / inner * size * inner + lane % inner;
    T best = from[i];
    int64_t where = 0;
    for (int64_t k = 0; k < size; ++k, i += inner) {
      const T v = from[i];
      if (v != v || (kLargest ? v >= best : v <= best)) {
        best = v;
        where = k;
      }
      to[i] = best;
      indices[i] = where;
    }
  }
}

// ---- writing at positions, in order ----

// An element of 16 bytes, whatever it means.
struct TwoWords {
  uint64_t first, second;
};
template <class T>
inline void putAt(T* to, const int64_t* at, const T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[at[i]] = values[i];
}
// The same for 16-bit floats by their bits, each sum rounded: float16, or with kBrain bfloat16.
template <bool kBrain>
inline float widened(uint16_t bits) {
  if (!kBrain) return _cvtsh_ss(bits);
  const uint32_t all = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &all, sizeof value);
  return value;
}
template <bool kBrain>
inline uint16_t narrowed(float value) {
  if (!kBrain) {
    return static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>(value != value ? 0x7fc0u : rounded);
}
template <bool kBrain>
inline void addReducedAt(uint16_t* to, const int64_t* at, const uint16_t* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[at[i]] = narrowed<kBrain>(widened<kBrain>(to[at[i]]) + widened<kBrain>(values[i]));
  }
}
template <class T>
inline void addAt(T* to, const int64_t* at, const T* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[at[i]] = sum(to[at[i]], values[i]);
}

enum class Reduction { Sum, Prod, Mean, Max, Min };
template <class T, Reduction kHow>
inline T reduced(T a, T b) {
  if (kHow == Reduction::Prod) return productOf(a, b);
  if (kHow == Reduction::Sum || kHow == Reduction::Mean) return sum(a, b);
  if (a != a || b != b) return b != b ? b : a;
  return (kHow == Reduction::Max ? a < b : b < a) ? b : a;
}
template <class T, Reduction kHow>
inline T identityOf() {
  using Limits = std::numeric_limits<T>;
  if (kHow == Reduction::Prod) return 1;
  if (kHow == Reduction::Sum || kHow == Reduction::Mean) return 0;
  if (Limits::has_infinity)
    return kHow == Reduction::Max ? -Limits::infinity() : Limits::infinity();
  return kHow == Reduction::Max ? Limits::lowest() : Limits::max();
}
// v / n, toward negative infinity for integers.
template <class T>
inline T share(T v, int64_t n) {
  if (!std::is_integral<T>::value) return v / static_cast<T>(n);
  const int64_t wide = static_cast<int64_t>(v);
  return static_cast<T>(wide / n - (wide % n != 0 && wide < 0 ? 1 : 0));
}
// `places`: memory for as many positions. `own`: whether what was there before counts.
template <class T, Reduction kHow>
inline void reduceAt(T* to, const int64_t* at, const T* values, int64_t* places, int64_t count,
                     int64_t own) {
  for (int64_t i = 0; own == 0 && i < count; ++i) to[at[i]] = identityOf<T, kHow>();
  for (int64_t i = 0; i < count; ++i) to[at[i]] = reduced<T, kHow>(to[at[i]], values[i]);
  if (kHow != Reduction::Mean) return;
  std::copy(at, at + count, places);
  std::sort(places, places + count);
  for (int64_t i = 0, next; i < count; i = next) {
    for (next = i + 1; next < count && places[next] == places[i];) ++next;
    to[places[i]] = share(to[places[i]], next - i + own);
  }
}

// Elements where the mask is true become the next ones of `values`; false when there are too few of those.
template <class T>
inline bool putWhere(T* to, const uint8_t* mask, const T* values, int64_t count, int64_t most) {
  int64_t wanted = 0;
  for (int64_t i = 0; i < count; ++i) wanted += mask[i] != 0 ? 1 : 0;
  if (wanted > most) return false;
  for (int64_t i = 0; i < count; ++i) {
    if (mask[i] != 0) to[i] = *values++;
  }
  return true;
}

// ---- what elements select ----

// The positions of flags that are set, and how many there are.
inline void positionsWhere(const uint8_t* flags, int64_t* to, int64_t* found, int64_t count) {
  int64_t set = 0;
  for (int64_t i = 0; i < count; ++i) {
    to[set] = i;
    set += flags[i] != 0 ? 1 : 0;
  }
  *found = set;
}

// to[count, dimensions]: the coordinates of positions in a tensor of these sizes.
template <class... Sizes>
inline void coordinatesOf(const int64_t* from, int64_t* to, int64_t count, Sizes... of) {
  const int64_t sizes[] = {static_cast<int64_t>(of)...};
  constexpr int64_t kDims = sizeof...(Sizes);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = from[i];
    for (int64_t d = kDims; d-- > 0;) {
      to[i * kDims + d] = rest % sizes[d];
      rest /= sizes[d];
    }
  }
}

// The positions of elements by their order, of equal ones the earlier first; every NaN behind all others.
template <class T>
inline void placesInOrder(const T* from, int64_t* order, int64_t count) {
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order, order + count, [from](int64_t i, int64_t j) {
    const T a = from[i], b = from[j];
    const bool last_a = a != a, last_b = b != b;
    if (last_a != last_b) return last_b;
    return a < b || (!(b < a) && i < j);
  });
}

// The distinct values in order, for each element the place of its value, and how often each value occurs. Every NaN is a
// value of its own, behind all others; it reports the first place and counts for none. `memory` holds twice as many numbers as
// there are elements.
template <class T>
inline void distinctValues(const T* from, T* values, int64_t* places, int64_t* occurrences,
                           int64_t* memory, int64_t* found, int64_t count) {
  int64_t* const order = memory;
  placesInOrder(from, order, count);
  int64_t size = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T value = from[order[i]];
    if (size == 0 || !(values[size - 1] == value)) {
      values[size] = value;
      occurrences[size++] = 0;
    }
    const bool number = value == value;
    places[order[i]] = number ? size - 1 : 0;
    occurrences[size - 1] += number ? 1 : 0;
  }
  *found = size;
}

// The same of values that are equal to the one in front of them.
template <class T>
inline void distinctNeighbours(const T* from, T* values, int64_t* places, int64_t* occurrences,
                               int64_t*, int64_t* found, int64_t count) {
  int64_t size = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || !(from[i - 1] == from[i])) {
      values[size] = from[i];
      occurrences[size++] = 0;
    }
    places[i] = size - 1;
    ++occurrences[size - 1];
  }
  *found = size;
}

// Of boxes [count, 4] of two corners those that no better one overlaps by more than `most`; `order` lists the best first.
template <class T>
inline void bestBoxes(const T* boxes, const int64_t* order, const double* most, uint8_t* gone,
                      int64_t* kept, int64_t* found, int64_t count) {
  std::memset(gone, 0, static_cast<size_t>(count));
  int64_t size = 0;
  const auto areaOf = [](const T* box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  for (int64_t i = 0; i < count; ++i) {
    if (gone[i] != 0) continue;
    kept[size++] = order[i];
    const T* const a = boxes + 4 * order[i];
    const T area = areaOf(a);
    for (int64_t j = i + 1; j < count; ++j) {
      const T* const b = boxes + 4 * order[j];
      const T width = std::max(T(0), std::min(a[2], b[2]) - std::max(a[0], b[0]));
      const T height = std::max(T(0), std::min(a[3], b[3]) - std::max(a[1], b[1]));
      const T shared = width * height;
      const T overlap = shared / (area + areaOf(b) - shared);
      gone[j] = static_cast<uint8_t>(gone[j] | (static_cast<double>(overlap) > *most ? 1 : 0));
    }
  }
  *found = size;
}

// ---- bags of rows ----

// Sums, means and maxima (mode 0, 1 and 2) of rows of a table, [rows, width]: those that `index` lists from start[bag] up to the next
// start, or to the end. The index `padding` takes no part. `scales` and `best`, which row each maximum is from, may be null;
// what is written beside `to` is zero before. False when an index or a start is out of range.
template <class T>
inline bool bagsOfRows(const T* table, const int64_t* index, const int64_t* start, const T* scales,
                       T* to, int64_t* best, int64_t* bag_of, int64_t* bag_size, int64_t rows,
                       int64_t width, int64_t count, int64_t bags, int64_t has_last, int64_t mode,
                       int64_t padding) {
  const auto endOf = [&](int64_t bag) {
    return bag + 1 < bags || has_last != 0 ? start[bag + 1] : count;
  };
  if (start[0] != 0) return false;
  for (int64_t bag = 0; bag < bags; ++bag) {
    if (start[bag] > endOf(bag) || endOf(bag) > count) return false;
    for (int64_t i = start[bag]; i < endOf(bag); ++i) {
      if (index[i] < 0 || index[i] >= rows) return false;
      bag_of[i] = bag;
      bag_size[bag] += index[i] != padding ? 1 : 0;
    }
  }
  WICK_AOT_PARALLEL_IF(count * width > kGrain)
  for (int64_t bag = 0; bag < bags; ++bag) {
    T* const row = to + bag * width;
    for (int64_t j = 0; j < width; ++j) row[j] = 0;
    bool first = true;
    for (int64_t i = start[bag]; i < endOf(bag); ++i) {
      if (index[i] == padding) continue;
      const T* const from = table + index[i] * width;
      if (mode == 2) {
        for (int64_t j = 0; j < width; ++j) {
          if (!first && !(from[j] > row[j])) continue;
          row[j] = from[j];
          best[bag * width + j] = index[i];
        }
      } else {
        const T scale = scales ? scales[i] : T(1);
        for (int64_t j = 0; j < width; ++j) row[j] += from[j] * scale;
      }
      first = false;
    }
    for (int64_t j = 0; mode == 1 && bag_size[bag] > 0 && j < width; ++j) {
      row[j] /= static_cast<T>(bag_size[bag]);
    }
  }
  return true;
}

// ---- order ----

// Elements as whole numbers without sign: NaN is larger than every number, and zeros of both signs are equal.
template <class T>
using KeyOf = typename std::conditional<sizeof(T) <= 4, uint32_t, uint64_t>::type;
template <class T>
inline KeyOf<T> keyOf(T v, int64_t descending) {
  using K = KeyOf<T>;
  constexpr K kSign = K{1} << (8 * sizeof(K) - 1);
  K key;
  if constexpr (!std::is_integral<T>::value) {
    if (v != v) {
      key = static_cast<K>(~K{0});
    } else {
      const T plain = v + T(0);
      std::memcpy(&key, &plain, sizeof key);
      key = (key & kSign) != 0 ? static_cast<K>(~key) : key | kSign;
    }
  } else if constexpr (std::is_signed<T>::value) {
    key = static_cast<K>(v) ^ kSign;
  } else {
    key = static_cast<K>(v);
  }
  return descending != 0 ? static_cast<K>(~key) : key;
}
using wick::order::Before;
using wick::order::Keyed;
template <class T>
constexpr bool kFloats = !std::is_integral<T>::value;
template <class T>
inline Keyed<KeyOf<T>>* keyed(const T* row, int64_t size, int64_t descending, void* memory) {
  using K = KeyOf<T>;
  auto* const pairs = static_cast<Keyed<K>*>(memory);
  for (int64_t i = 0; i < size; ++i) pairs[i] = {keyOf(row[i], descending), static_cast<K>(i)};
  return pairs;
}
// Equal elements as they stand.
struct BeforeOrFirst {
  template <class K>
  bool operator()(const Keyed<K>& a, const Keyed<K>& b) const {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};
template <class T>
inline void store(const T* row, const Keyed<KeyOf<T>>* pairs, int64_t count, T* values,
                  int64_t* indices) {
  for (int64_t i = 0; i < count; ++i) {
    values[i] = row[pairs[i].index];
    indices[i] = static_cast<int64_t>(pairs[i].index);
  }
}

// Rows of `size` elements. `memory` holds the pairs of a row.
template <class T>
inline void sortRows(const T* from, T* values, int64_t* indices, uint64_t* memory, int64_t rows,
                     int64_t size, int64_t descending, int64_t stable) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = from + r * size;
    auto* const pairs = keyed(row, size, descending, memory);
    if (stable != 0) {
      std::sort(pairs, pairs + size, BeforeOrFirst());
    } else {
      std::sort(pairs, pairs + size, Before());
    }
    store(row, pairs, size, values + r * size, indices + r * size);
  }
}

// The first k elements of each row, by the algorithm that the engine chooses for so many.
template <class T>
inline void topOfRows(const T* from, T* values, int64_t* indices, uint64_t* memory, int64_t rows,
                      int64_t size, int64_t k, int64_t largest, int64_t sorted) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = from + r * size;
    auto* const pairs = keyed(row, size, largest, memory);
    if (k <= size / 64) {
      std::partial_sort(pairs, pairs + k, pairs + size, Before());
    } else {
      std::nth_element(pairs, pairs + k - 1, pairs + size, Before());
      if (sorted != 0) std::sort(pairs, pairs + k - 1, Before());
    }
    store(row, pairs, k, values + r * k, indices + r * k);
  }
}

template <class T>
inline void kthOfRows(const T* from, T* values, int64_t* indices, uint64_t* memory, int64_t rows,
                      int64_t size, int64_t k) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = from + r * size;
    auto* const pairs = keyed(row, size, 0, memory);
    wick::order::quickSelect(pairs, size, k - 1);
    store(row, pairs + k - 1, 1, values + r, indices + r);
  }
}

// Of equal elements the earlier one counts as smaller. A NaN is the median, unless `ignore_nan`.
template <class T>
inline int64_t medianOf(const T* row, uint64_t* memory, int64_t size, int64_t ignore_nan) {
  using K = KeyOf<T>;
  auto* const keys = reinterpret_cast<K*>(memory);
  int64_t numbers = size;
  for (int64_t i = 0; i < size; ++i) {
    keys[i] = keyOf(row[i], 0);
    if (!wick::order::isNanKey(keys[i], kFloats<T>)) continue;
    if (ignore_nan == 0) return i;
    --numbers;
  }
  const int64_t rank = numbers > 0 ? (numbers - 1) / 2 : 0;
  std::nth_element(keys, keys + rank, keys + size);
  const K value = keys[rank];
  return wick::order::placeOfRank(value, rank, size, [&](int64_t i) { return keyOf(row[i], 0); });
}
template <class T>
inline void medianOfRows(const T* from, T* values, int64_t* indices, uint64_t* memory, int64_t rows,
                         int64_t size, int64_t ignore_nan) {
  for (int64_t r = 0; r < rows; ++r) {
    indices[r] = medianOf(from + r * size, memory, size, ignore_nan);
    values[r] = from[r * size + indices[r]];
  }
}

template <class T>
inline int64_t modeOf(const T* row, uint64_t* memory, int64_t size) {
  auto* const pairs = keyed(row, size, 0, memory);
  if (size <= wick::order::kFewElements) {
    wick::order::sortFew(pairs, size, kFloats<T>);
  } else {
    std::sort(pairs, pairs + size, Before());
  }
  return wick::order::lastOfLongestRun(pairs, size, kFloats<T>);
}
template <class T>
inline void modeOfRows(const T* from, T* values, int64_t* indices, uint64_t* memory, int64_t rows,
                       int64_t size) {
  for (int64_t r = 0; r < rows; ++r) {
    indices[r] = modeOf(from + r * size, memory, size);
    values[r] = from[r * size + indices[r]];
  }
}

// Where each value belongs in a sequence of `size` elements, or in that of its row of `width` values when there is one sequence
// a row (`width` is not 0). `order`, which may be null, says which element of a sequence stands where; false when it says
// something else.
template <class T>
inline bool sortedPositions(const T* sequence, const T* values, const int64_t* order, int64_t* to,
                            int64_t count, int64_t size, int64_t width, int64_t ordered,
                            int64_t right) {
  for (int64_t i = 0; i < ordered; ++i) {
    if (order[i] < 0 || order[i] >= size) return false;
  }
  WICK_AOT_PARALLEL_IF(count > kGrain / 16)
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = width == 0 ? 0 : i / width * size;
    to[i] = wick::order::boundPosition(sequence + begin, order ? order + begin : nullptr, size,
                                       values[i], right != 0);
  }
  return true;
}

// How many elements fall into each of `bins` equal parts of a range; those of all elements when its ends are equal. NaN counts in
// the first part. False when the range is not finite.
template <class T>
inline bool binCounts(const T* from, const T* range, T* to, int64_t* counts, int64_t count,
                      int64_t bins) {
  T low = range[0], high = range[1];
  if (low == high && count > 0) {
    low = high = from[0];
    bool nan = false;
    for (int64_t i = 0; i < count; ++i) {
      low = from[i] < low ? from[i] : low;
      high = from[i] > high ? from[i] : high;
      nan = nan || from[i] != from[i];
    }
    if (nan) return false;
  }
  if (!std::isfinite(low) || !std::isfinite(high)) return false;
  if (low == high) {
    low -= 1;
    high += 1;
  }
  const T span = high - low, parts = static_cast<T>(bins);
  const bool overflows = !std::isfinite(span * parts);
  for (int64_t b = 0; b < bins; ++b) counts[b] = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T v = from[i];
    if (v < low || v > high) continue;
    const T at = overflows ? (v - low) / span * parts : (v - low) * parts / span;
    const int64_t bin = at > 0 ? static_cast<int64_t>(at) : 0;
    ++counts[bin < bins ? bin : bins - 1];
  }
  for (int64_t b = 0; b < bins; ++b) to[b] = static_cast<T>(counts[b]);
  return true;
}

}  // namespace wick_aot

#endif
