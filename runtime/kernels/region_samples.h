// Where samples of a region lie between the elements of a feature map. The text is also part of compiled models (aot/).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace wick::regions {

// Where a sample lies between two rows (or columns): weights of both, or none at all.
template <class T>
struct Sample {
  int64_t low = 0, high = 0;
  T low_weight = 0, high_weight = 0;
  bool inside = false;
};

template <class T>
Sample<T> sampleAt(T at, int64_t size) {
  Sample<T> s;
  // Also false for what is not a number.
  s.inside = at >= T(-1) && at <= static_cast<T>(size);
  if (!s.inside) return s;
  at = std::max(at, T(0));
  s.low = static_cast<int64_t>(at);
  if (s.low >= size - 1) {
    s.low = s.high = size - 1;
    at = static_cast<T>(s.low);
  } else {
    s.high = s.low + 1;
  }
  s.high_weight = at - static_cast<T>(s.low);
  s.low_weight = T(1) - s.high_weight;
  return s;
}

constexpr int64_t kMostSamples = 1 << 20;
// How many samples a cell takes along one dimension of a finite region; -1 for too many.
template <class T>
int64_t samplesOfCell(int64_t ratio, T extent, int64_t cells) {
  if (ratio > 0) return ratio <= kMostSamples ? ratio : -1;
  using std::ceil;
  const T count = ceil(extent / static_cast<T>(cells));
  if (static_cast<double>(count) > static_cast<double>(kMostSamples)) return -1;
  return static_cast<int64_t>(std::max(count, T(0)));
}

}  // namespace wick::regions
