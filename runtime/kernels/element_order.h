// Elements by their order: selected, counted and searched, in memory of the caller's. The text is also part of compiled models
// (aot/), so it is C++17 and uses nothing of the engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace wick::order {

// Sort key and position of an element. Keys are whole numbers without sign; the largest one is also that of NaN.
template <class K>
struct Keyed {
  K key, index;
};
// An object, for what is given a function calls it for each element.
struct Before {
  template <class K>
  bool operator()(const Keyed<K>& a, const Keyed<K>& b) const {
    return a.key < b.key;
  }
};
template <class K>
bool isNanKey(K key, bool floats) {
  return floats && key == static_cast<K>(~K{0});
}

// Moves the k-th smallest element to position k by partitioning around the median of three.
template <class K>
void quickSelect(Keyed<K>* a, int64_t size, int64_t k) {
  int64_t low = 0, high = size - 1;
  const auto after = [&](int64_t i, int64_t j) { return a[i].key > a[j].key; };
  while (low < high) {
    if (high == low + 1) {
      if (after(low, high)) std::swap(a[low], a[high]);
      return;
    }
    std::swap(a[low + (high - low) / 2], a[low + 1]);
    if (after(low + 1, high)) std::swap(a[low + 1], a[high]);
    if (after(low, high)) std::swap(a[low], a[high]);
    if (after(low + 1, low)) std::swap(a[low + 1], a[low]);
    // Now a[low + 1] <= a[low] <= a[high]; a[low] is the pivot, the others stop the scans.
    const K pivot = a[low].key;
    int64_t i = low + 1, j = high;
    while (true) {
      do ++i;
      while (pivot > a[i].key);
      do --j;
      while (a[j].key > pivot);
      if (j < i) break;
      std::swap(a[i], a[j]);
    }
    std::swap(a[low], a[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
}

// Where the element of this rank stands, of equal ones the earlier first: `value` is its key, keyAt(i) that of each element.
template <class K, class F>
int64_t placeOfRank(K value, int64_t rank, int64_t size, const F& keyAt) {
  int64_t equal = rank;
  for (int64_t i = 0; i < size; ++i) equal -= keyAt(i) < value ? 1 : 0;
  int64_t at = 0;
  while (keyAt(at) != value || equal-- > 0) ++at;
  return at;
}

// In PyTorch the elements of mode are sorted by `<`, which says nothing of NaN: so few go where
// insertion takes them; of more there is no telling what its sort would make.
constexpr int64_t kFewElements = 16;

// Insertion, a new smallest element at once to the front. std::sort may not be given such an order.
template <class K>
void sortFew(Keyed<K>* elements, int64_t size, bool floats) {
  const auto before = [&](const Keyed<K>& a, const Keyed<K>& b) {
    return a.key < b.key && !isNanKey(b.key, floats);
  };
  for (int64_t i = 1; i < size; ++i) {
    const Keyed<K> moved = elements[i];
    int64_t to = before(moved, elements[0]) ? 0 : i;
    while (to > 0 && before(moved, elements[to - 1])) --to;
    std::move_backward(elements + to, elements + i, elements + i + 1);
    elements[to] = moved;
  }
}

// The last position of the longest run of equal elements; of several runs, the smallest element's.
template <class K>
int64_t lastOfLongestRun(const Keyed<K>* sorted, int64_t size, bool floats) {
  int64_t best = 0, most = 0, run = 0;
  for (int64_t i = 0; i < size; ++i) {
    ++run;
    const bool goes_on = i + 1 < size && sorted[i].key == sorted[i + 1].key;
    if (goes_on && !isNanKey(sorted[i].key, floats)) continue;  // NaN equals nothing
    if (run > most) {
      best = static_cast<int64_t>(sorted[i].index);
      most = run;
    }
    run = 0;
  }
  return best;
}

enum class Between { Linear, Lower, Higher, Midpoint, Nearest };
// The value at fraction q of sorted elements, which are numbers.
template <class T>
T quantileOf(const T* sorted, int64_t size, T q, Between how) {
  const auto inside = [&](T at) {
    return std::min(std::max<int64_t>(static_cast<int64_t>(at), 0), size - 1);
  };
  T rank = q * static_cast<T>(size - 1);
  if (how == Between::Lower) rank = std::floor(rank);
  if (how == Between::Higher) rank = std::ceil(rank);
  if (how == Between::Nearest) rank = std::nearbyint(rank);
  const int64_t below = inside(rank);
  const T a = sorted[below];
  if (how != Between::Linear && how != Between::Midpoint) return a;
  const T b = sorted[inside(std::ceil(rank))];
  const T w = how == Between::Midpoint ? T(0.5) : rank - static_cast<T>(below);
  return std::abs(w) < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
}

// The first of `size` positions whose element is not below v (or, with `right`, is above v). The
// comparisons are written so that a NaN in v goes to the end. `order`, which may be null, says which element stands where.
template <class T>
int64_t boundPosition(const T* data, const int64_t* order, int64_t size, T v, bool right) {
  int64_t low = 0, high = size;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const T m = data[order ? order[middle] : middle];
    if (right ? !(m > v) : !(m >= v)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The first of rising sums that is at least this share of the total.
template <class T>
int64_t placeOfShare(const T* sums, int64_t size, T total, double share) {
  int64_t low = 0, high = size;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (static_cast<double>(sums[middle] / total) < share) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace wick::order
