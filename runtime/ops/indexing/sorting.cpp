// Operators that order elements along a dimension: sort, topk, kthvalue, median, mode, quantile.
// NaN counts as larger than every number. Among equal elements the position that is reported is
// PyTorch's, which follows from using the same standard algorithms with the same comparisons.
#include <bit>
#include <cmath>
#include <limits>

#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/paced.h"
#include "core/parallel.h"
#include "runtime/ops/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

using Pair = std::tuple<Tensor, Tensor>;

template <class T>
bool isNan(T v) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return v != v;
  }
}
// Ascending and descending with NaN at the large end. Objects, for what is given a function calls
// it for each element.
template <class T>
struct Less {
  bool operator()(T a, T b) const { return (isNan(b) & !isNan(a)) | (a < b); }
};
template <class T>
inline constexpr Less<T> less;
template <class T>
struct Greater {
  bool operator()(T a, T b) const { return (isNan(a) & !isNan(b)) | (a > b); }
};
template <class T>
inline constexpr Greater<T> greater;

// Whether sorting so many elements should look at the budget.
bool isPaced(int64_t n) {
  return n > kLongSort && currentBudget();
}

// Calls f(slice of `self` along dim as a dense array, its length, index of the slice) for each
// slice; the result tensors have `size` elements along dim and are written through store().
struct Slices {
  Tensor moved;  // the dimension last, row-major
  int64_t dim;
  int64_t length;
  int64_t count;

  Slices(const Tensor& self, int64_t d) {
    Tensor t = self.dim() == 0 ? self.unsqueeze(0) : self;
    dim = d;
    length = t.sizes()[d];
    moved = t.transpose(d, t.dim() - 1).contiguous();
    count = length == 0 ? 0 : moved.numel() / length;
  }
  // Slices below which a second thread does not pay.
  int64_t grain() const {
    return std::max<int64_t>(1, kGrainSize / 4 / std::max<int64_t>(1, length));
  }
  // An uninitialized result with `size` elements in place of the dimension, dimension last.
  Tensor result(int64_t size, DType dtype) const {
    DimVector sizes(moved.sizes());
    sizes.back() = size;
    return Tensor::empty(sizes, dtype);
  }
  // Brings a result() into the shape for the caller.
  Tensor finish(const Tensor& self, const Tensor& t) const {
    Tensor back = t.transpose(dim, t.dim() - 1);
    if (self.dim() == 0) back = back.select(0, 0);
    return back.contiguous();
  }
  Tensor finishReduced(const Tensor& self, const Tensor& t, bool keepdim) const {
    Tensor back = t.transpose(dim, t.dim() - 1);
    if (!keepdim || self.dim() == 0) back = back.select(dim, 0);
    return back.contiguous();
  }
};

template <class T>
struct Ranked {
  T value;
  int64_t index;
};

// A number as whole one, in the order that less() gives: those of four bytes alone.
template <class T>
inline constexpr bool kHasSortKey = std::is_same_v<T, float> || std::is_same_v<T, int32_t>;
template <class T>
uint32_t sortKey(T v) {
  constexpr uint32_t kSign = uint32_t{1} << 31;
  if constexpr (std::is_same_v<T, float>) {
    if (v != v) return ~uint32_t{0};
    const auto bits = std::bit_cast<uint32_t>(v + 0.0f);  // zeros are equal
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  } else {
    return static_cast<uint32_t>(v) ^ kSign;
  }
}
struct Keyed {
  uint32_t key;
  uint32_t index;
};

template <class Iterator, class Before>
void sortRange(Iterator begin, Iterator end, bool stable, Before before) {
  const auto sort = [&](auto order) {
    if (stable) {
      std::stable_sort(begin, end, order);
    } else {
      std::sort(begin, end, order);
    }
  };
  Pace pace;
  if (isPaced(end - begin)) {
    sort(paced(pace, before));
  } else {
    sort(before);
  }
}

// A sort that need not be stable reports the positions of equal elements as PyTorch's does: both
// sort pairs of element and position with the standard library's algorithm, which moves them by
// what comparisons say.
template <class T>
void sortSlice(const T* from, int64_t n, bool stable, bool descending, T* to, int64_t* order) {
  Pace pace;
  if constexpr (kHasSortKey<T>) {
    if (n <= std::numeric_limits<uint32_t>::max()) {
      CountedVector<Keyed> pairs(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) {
        pace.step();
        pairs[i] = {sortKey(from[i]), static_cast<uint32_t>(i)};
      }
      if (descending) {
        sortRange(pairs.begin(), pairs.end(), stable,
                  [](const Keyed& a, const Keyed& b) { return a.key > b.key; });
      } else {
        sortRange(pairs.begin(), pairs.end(), stable,
                  [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
      }
      for (int64_t i = 0; i < n; ++i) {
        pace.step();
        to[i] = from[pairs[i].index];
        order[i] = pairs[i].index;
      }
      return;
    }
  }
  CountedVector<Ranked<T>> pairs(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    pairs[i] = {from[i], i};
  }
  if (descending) {
    sortRange(pairs.begin(), pairs.end(), stable,
              [](const auto& a, const auto& b) { return greater<T>(a.value, b.value); });
  } else {
    sortRange(pairs.begin(), pairs.end(), stable,
              [](const auto& a, const auto& b) { return less<T>(a.value, b.value); });
  }
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    to[i] = pairs[i].value;
    order[i] = pairs[i].index;
  }
}

Pair sortStable(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  dim = wrapDim(dim, self.dim());
  Slices s(self, dim);
  Tensor values = s.result(s.length, self.dtype());
  Tensor indices = s.result(s.length, DType::Long);
  dispatch<kRealNumbers | kBool>("sort", self.dtype(), [&]<class T>() -> void {
    parallelFor(s.count, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, s.length * 8)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    const T* from = s.moved.data<T>() + r * s.length;
                    T* to = values.data<T>() + r * s.length;
                    int64_t* order = indices.data<int64_t>() + r * s.length;
                    sortSlice(from, s.length, stable.value_or(false), descending, to, order);
                  }
                });
  });
  return {s.finish(self, values), s.finish(self, indices)};
}
Pair sort(const Tensor& self, int64_t dim, bool descending) {
  return sortStable(self, false, dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(sort(self, dim, descending));
}
Tensor argsortStable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(sortStable(self, stable, dim, descending));
}
// Values alone take the way that pairs take, for what is exchanged follows from comparisons.
Tensor msort(const Tensor& self) {
  const int64_t dim = wrapDim(0, self.dim());
  Slices s(self, dim);
  Tensor values = s.moved.sharesStorage(self) ? s.moved.clone() : s.moved;
  dispatch<kRealNumbers | kBool>("sort", self.dtype(), [&]<class T>() -> void {
    parallelFor(s.count, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, s.length * 8)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    T* first = values.data<T>() + r * s.length;
                    sortRange(first, first + s.length, false, less<T>);
                  }
                });
  });
  return s.finish(self, values);
}

// The first k of `queue`, by the algorithm that PyTorch chooses for so many.
template <class T, class Before>
void selectTop(CountedVector<Ranked<T>>& queue, int64_t k, bool sorted, Before before) {
  auto compare = [&](const Ranked<T>& a, const Ranked<T>& b) { return before(a.value, b.value); };
  const auto select = [&](auto order) {
    std::nth_element(queue.begin(), queue.begin() + k - 1, queue.end(), order);
    if (sorted) std::sort(queue.begin(), queue.begin() + k - 1, order);
  };
  Pace pace;
  if (isPaced(static_cast<int64_t>(queue.size()))) {
    select(paced(pace, compare));
  } else {
    select(compare);
  }
}

// The first k of n elements where k is small, as std::partial_sort orders them: it keeps a heap of
// k elements, and only those that come before its last one ever enter it. `heap` has k + 1.
template <class T, class Before>
void selectFew(const T* from, int64_t n, int64_t k, Ranked<T>* heap, Before before) {
  auto compare = [&](const Ranked<T>& a, const Ranked<T>& b) { return before(a.value, b.value); };
  for (int64_t i = 0; i < k; ++i) heap[i] = {from[i], i};
  std::make_heap(heap, heap + k, compare);
  // Most blocks have no such element, which a loop without branches says.
  constexpr int64_t kBlock = 64;
  Pace pace;
  for (int64_t begin = k; begin < n; begin += kBlock) {
    pace.step(kBlock);
    const int64_t end = std::min(n, begin + kBlock);
    const T last = heap[0].value;
    int some = 0;
    for (int64_t i = begin; i < end; ++i) some |= before(from[i], last) ? 1 : 0;
    if (some == 0) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (!before(from[i], heap[0].value)) continue;
      heap[k] = {from[i], i};
      std::pop_heap(heap, heap + k + 1, compare);
    }
  }
  std::sort_heap(heap, heap + k, compare);
}

Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrapDim(dim, self.dim());
  Slices s(self, dim);
  WICK_CHECK(k >= 0 && k <= s.length, "topk: selected index k out of range: {} of {}", k, s.length);
  Tensor values = s.result(k, self.dtype());
  Tensor indices = s.result(k, DType::Long);
  const bool few = k <= s.length / 64;
  dispatch<kRealNumbers>("topk", self.dtype(), [&]<class T>() -> void {
    if (k == 0) return;
    parallelFor(s.count, s.grain(), [&](int64_t begin, int64_t end) {
      CountedVector<Ranked<T>> queue(static_cast<size_t>(few ? k + 1 : s.length));
      const auto slice = [&](int64_t r, auto before) {
        const T* from = s.moved.data<T>() + r * s.length;
        if (few) {
          selectFew(from, s.length, k, queue.data(), before);
        } else {
          for (int64_t i = 0; i < s.length; ++i) queue[i] = {from[i], i};
          selectTop(queue, k, sorted, before);
        }
        for (int64_t i = 0; i < k; ++i) {
          values.data<T>()[r * k + i] = queue[i].value;
          indices.data<int64_t>()[r * k + i] = queue[i].index;
        }
      };
      for (int64_t r = begin; r < end; ++r) {
        if (largest) {
          slice(r, greater<T>);
        } else {
          slice(r, less<T>);
        }
      }
    });
  });
  return {s.finish(self, values), s.finish(self, indices)};
}

// Moves the k-th smallest element to position k by partitioning around the median of three.
template <class T>
void quickSelect(CountedVector<Ranked<T>>& a, int64_t k) {
  int64_t low = 0;
  int64_t high = static_cast<int64_t>(a.size()) - 1;
  auto after = [&](int64_t i, int64_t j) { return greater<T>(a[i].value, a[j].value); };
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
    T pivot = a[low].value;
    int64_t i = low + 1;
    int64_t j = high;
    while (true) {
      do ++i;
      while (greater<T>(pivot, a[i].value));
      do --j;
      while (greater<T>(a[j].value, pivot));
      if (j < i) break;
      std::swap(a[i], a[j]);
    }
    std::swap(a[low], a[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
}

void checkNonEmpty(const char* op, const Tensor& self, int64_t dim) {
  WICK_CHECK(self.dim() == 0 || self.sizes()[dim] > 0,
             "{}: Expected reduction dim {} to have non-zero size.", op, dim);
}

// Reduces each slice to one element and its position: pick(data, n) -> position.
template <unsigned kCategories, class F>
Pair pickEach(const char* op, const Tensor& self, int64_t dim, bool keepdim, F&& pick) {
  Slices s(self, dim);
  Tensor values = s.result(1, self.dtype());
  Tensor indices = s.result(1, DType::Long);
  dispatch<kCategories>(op, self.dtype(), [&]<class T>() -> void {
    parallelFor(s.count, s.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* from = s.moved.data<T>() + r * s.length;
        int64_t at = pick(from, s.length);
        values.data<T>()[r] = from[at];
        indices.data<int64_t>()[r] = at;
      }
    });
  });
  return {s.finishReduced(self, values, keepdim), s.finishReduced(self, indices, keepdim)};
}

Pair kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  checkNonEmpty("kthvalue()", self, dim);
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[dim];
  WICK_CHECK(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension {}", dim);
  return pickEach<kRealNumbers>("kthvalue", self, dim, keepdim,
                                [&]<class T>(const T* data, int64_t length) {
                                  CountedVector<Ranked<T>> queue(static_cast<size_t>(length));
                                  for (int64_t i = 0; i < length; ++i) queue[i] = {data[i], i};
                                  quickSelect(queue, k - 1);
                                  return queue[k - 1].index;
                                });
}

template <class T>
int64_t medianPosition(const T* data, int64_t n, bool ignore_nan) {
  int64_t numbers = n;
  if (!std::is_integral_v<T>) {
    for (int64_t i = 0; i < n; ++i) {
      if (!isNan(data[i])) continue;
      if (!ignore_nan) return i;
      --numbers;
    }
  }
  // Of equal elements the earlier one counts as smaller; so the value is found first, and then
  // which of the elements that equal it has the rank.
  CountedVector<T> values(data, data + n);
  const int64_t rank = numbers > 0 ? (numbers - 1) / 2 : 0;
  Pace pace;
  if (isPaced(n)) {
    std::nth_element(values.begin(), values.begin() + rank, values.end(), paced(pace, less<T>));
  } else {
    std::nth_element(values.begin(), values.begin() + rank, values.end(), less<T>);
  }
  const T value = values[static_cast<size_t>(rank)];
  int64_t smaller = 0;
  for (int64_t i = 0; i < n; ++i) smaller += less<T>(data[i], value) ? 1 : 0;
  int64_t equal = rank - smaller;
  int64_t at = 0;
  while (less<T>(data[at], value) || less<T>(value, data[at]) || equal-- > 0) ++at;
  return at;
}
template <bool kIgnoreNan>
Pair medianDim(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  checkNonEmpty("median()", self, dim);
  return pickEach<kRealNumbers>(
      "median", self, dim, keepdim,
      []<class T>(const T* data, int64_t n) { return medianPosition(data, n, kIgnoreNan); });
}
template <bool kIgnoreNan>
Tensor medianAll(const Tensor& self) {
  Tensor flat = self.contiguous();
  Tensor out = Tensor::empty({}, self.dtype());
  dispatch<kRealNumbers>("median", self.dtype(), [&]<class T>() -> void {
    *out.data<T>() = flat.numel() == 0
                         ? convert<T>(std::numeric_limits<double>::quiet_NaN())
                         : flat.data<T>()[medianPosition(flat.data<T>(), flat.numel(), kIgnoreNan)];
  });
  return out;
}

// In PyTorch the elements of mode are sorted by `<`, which says nothing of NaN: so few go where
// insertion takes them; of more there is no telling what its sort would make.
constexpr int64_t kFewElements = 16;

// Insertion, a new smallest element at once to the front. std::sort may not be given such an order.
template <class T>
void sortFew(CountedVector<Ranked<T>>& elements) {
  for (size_t i = 1; i < elements.size(); ++i) {
    const Ranked<T> moved = elements[i];
    size_t to = i;
    if (moved.value < elements[0].value) {
      to = 0;
    } else {
      while (to > 0 && moved.value < elements[to - 1].value) --to;
    }
    std::move_backward(elements.begin() + static_cast<ptrdiff_t>(to),
                       elements.begin() + static_cast<ptrdiff_t>(i),
                       elements.begin() + static_cast<ptrdiff_t>(i) + 1);
    elements[to] = moved;
  }
}

Pair mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  checkNonEmpty("mode()", self, dim);
  return pickEach<kRealNumbers | kBool>(
      "mode", self, dim, keepdim, []<class T>(const T* data, int64_t n) {
        CountedVector<Ranked<T>> sorted(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) sorted[i] = {data[i], i};
        if (n <= kFewElements) {
          sortFew(sorted);
        } else {
          Pace pace;
          std::sort(sorted.begin(), sorted.end(),
                    paced(pace, [](const Ranked<T>& a, const Ranked<T>& b) {
                      return less<T>(a.value, b.value);
                    }));
        }
        // The last of the longest run of equal elements; of several, the smallest element's.
        int64_t best = 0;
        int64_t most = 0;
        int64_t run = 0;
        for (int64_t i = 0; i < n; ++i) {
          ++run;
          if (i + 1 < n && sorted[i].value == sorted[i + 1].value) continue;
          if (run > most) {
            best = sorted[i].index;
            most = run;
          }
          run = 0;
        }
        return best;
      });
}

enum class Interpolation { Linear, Lower, Higher, Midpoint, Nearest };

Interpolation interpolationNamed(const std::string& name) {
  constexpr const char* kNames[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  for (int i = 0; i < 5; ++i) {
    if (name == kNames[i]) return static_cast<Interpolation>(i);
  }
  throwRuntimeError(
      "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
      "{}",
      name);
}

// The value at fraction q of n sorted elements.
template <class T>
T quantileOf(const T* sorted, T q, int64_t n, Interpolation mode) {
  T rank = q * static_cast<T>(n - 1);
  if (mode == Interpolation::Lower) rank = std::floor(rank);
  if (mode == Interpolation::Higher) rank = std::ceil(rank);
  if (mode == Interpolation::Nearest) rank = std::nearbyint(rank);
  int64_t below = std::clamp<int64_t>(truncateTo<int64_t>(rank), 0, n - 1);
  T a = sorted[below];
  if (mode != Interpolation::Linear && mode != Interpolation::Midpoint) return a;
  T b = sorted[std::clamp<int64_t>(truncateTo<int64_t>(std::ceil(rank)), 0, n - 1)];
  T w = mode == Interpolation::Midpoint ? T(0.5) : rank - static_cast<T>(below);
  return std::abs(w) < T(0.5) ? a + w * (b - a) : b - (b - a) * (T(1) - w);
}

template <bool kIgnoreNan>
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string interpolation) {
  Interpolation how = interpolationNamed(interpolation);
  WICK_CHECK(self.numel() > 0, "quantile() input tensor must be non-empty");
  WICK_CHECK(q.dim() <= 1, "quantile() q must be a scalar or 1D tensor");
  WICK_CHECK(self.dtype() == DType::Float || self.dtype() == DType::Double,
             "quantile() input tensor must be either float or double dtype");
  WICK_CHECK(self.dtype() == q.dtype(),
             "quantile() q tensor must be same dtype as the input tensor");
  int64_t d = wrapDim(dim.value_or(0), self.dim());
  Tensor input = dim ? self : self.flatten();
  auto [ordered, positions] = sort(input, d, false);
  Slices s(ordered, d);
  Tensor fractions = q.contiguous();
  int64_t m = fractions.numel();
  Tensor values = s.result(m, self.dtype());
  dispatch<kFloats>("quantile", self.dtype(), [&]<class T>() -> void {
    for (int64_t i = 0; i < m; ++i) {
      T f = fractions.data<T>()[i];
      WICK_CHECK(f >= 0 && f <= 1, "quantile() q values must be in the range [0, 1]");
    }
    for (int64_t r = 0; r < s.count; ++r) {
      const T* sorted = s.moved.data<T>() + r * s.length;
      int64_t n = s.length;
      while (n > 0 && isNan(sorted[n - 1])) --n;
      bool spoiled = n == 0 || (!kIgnoreNan && n < s.length);
      for (int64_t i = 0; i < m; ++i) {
        values.data<T>()[r * m + i] = spoiled ? std::numeric_limits<T>::quiet_NaN()
                                              : quantileOf(sorted, fractions.data<T>()[i], n, how);
      }
    }
  });
  // From [.., the dimension last] to the fractions first.
  Tensor back = values.transpose(d, values.dim() - 1);
  DimVector order{d};
  for (int64_t i = 0; i < back.dim(); ++i) {
    if (i != d) order.push_back(i);
  }
  back = back.permute(order);
  if (keepdim && dim && self.dim() > 0) back = back.unsqueeze(d + 1);
  if (keepdim && !dim) {
    for (int64_t i = 0; i < self.dim(); ++i) back = back.unsqueeze(1);
  }
  return (q.dim() == 0 ? back.select(0, 0) : back).contiguous();
}
template <bool kIgnoreNan>
Tensor quantileNumber(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                      std::string interpolation) {
  WICK_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got {}", q);
  return quantile<kIgnoreNan>(self, Tensor::scalar<double>(q).to(self.dtype()), dim, keepdim,
                              std::move(interpolation));
}

// Forms with `values` and `indices` as destinations.
Pair writePair(const char* op, Pair result, const Tensor& values, const Tensor& indices) {
  return {writeOut(op, values, std::get<0>(result)), writeOut(op, indices, std::get<1>(result))};
}
Pair sortOut(const Tensor& self, int64_t dim, bool descending, const Tensor& values,
             const Tensor& indices) {
  return writePair("sort", sort(self, dim, descending), values, indices);
}
Pair sortStableOut(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending,
                   const Tensor& values, const Tensor& indices) {
  return writePair("sort", sortStable(self, stable, dim, descending), values, indices);
}
Pair topkOut(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted,
             const Tensor& values, const Tensor& indices) {
  return writePair("topk", topk(self, k, dim, largest, sorted), values, indices);
}
Pair kthvalueOut(const Tensor& self, int64_t k, int64_t dim, bool keepdim, const Tensor& values,
                 const Tensor& indices) {
  return writePair("kthvalue", kthvalue(self, k, dim, keepdim), values, indices);
}
template <bool kIgnoreNan>
Pair medianDimOut(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
                  const Tensor& indices) {
  return writePair("median", medianDim<kIgnoreNan>(self, dim, keepdim), values, indices);
}
Pair modeOut(const Tensor& self, int64_t dim, bool keepdim, const Tensor& values,
             const Tensor& indices) {
  return writePair("mode", mode(self, dim, keepdim), values, indices);
}

#define WICK_PAIR "(Tensor values, Tensor indices)"
#define WICK_PAIR_OUT \
  "*, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)"

const OperatorRecord kRecords[] = {
    {"aten::sort(Tensor self, int dim=-1, bool descending=False) -> " WICK_PAIR, WICK_KERNEL(sort),
     kNoFlags, shapes::likeFirstWithIndices},
    {"aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) "
     "-> " WICK_PAIR,
     WICK_KERNEL(sortStable), kNoFlags, shapes::likeFirstWithIndices},
    {"aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, "
     "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
     WICK_KERNEL(sortStableOut)},
    {"aten::sort.values(Tensor self, int dim=-1, bool descending=False, " WICK_PAIR_OUT,
     WICK_KERNEL(sortOut)},
    {"aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
     WICK_KERNEL(argsort), kNotDifferentiable, shapes::likeFirstLong},
    {"aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> "
     "Tensor",
     WICK_KERNEL(argsortStable), kNotDifferentiable | kOutForm, shapes::likeFirstLong},
    {"aten::msort(Tensor self) -> Tensor", WICK_KERNEL(msort), kOutForm, shapes::likeFirst},
    {"aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) "
     "-> " WICK_PAIR,
     WICK_KERNEL(topk), kNoFlags, shapes::topValues},
    {"aten::topk.values(Tensor self, int k, int dim=-1, bool largest=True, bool "
     "sorted=True, " WICK_PAIR_OUT,
     WICK_KERNEL(topkOut)},
    {"aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> " WICK_PAIR,
     WICK_KERNEL(kthvalue), kNoFlags, shapes::reducedWithIndices},
    {"aten::kthvalue.values(Tensor self, int k, int dim=-1, bool keepdim=False, " WICK_PAIR_OUT,
     WICK_KERNEL(kthvalueOut)},
    {"aten::median(Tensor self) -> Tensor", WICK_KERNEL(medianAll<false>), kOutForm,
     shapes::reduced},
    {"aten::median.dim(Tensor self, int dim, bool keepdim=False) -> " WICK_PAIR,
     WICK_KERNEL(medianDim<false>), kNoFlags, shapes::reducedWithIndices},
    {"aten::median.dim_values(Tensor self, int dim, bool keepdim=False, " WICK_PAIR_OUT,
     WICK_KERNEL(medianDimOut<false>)},
    {"aten::nanmedian(Tensor self) -> Tensor", WICK_KERNEL(medianAll<true>), kOutForm,
     shapes::reduced},
    {"aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> " WICK_PAIR,
     WICK_KERNEL(medianDim<true>), kNoFlags, shapes::reducedWithIndices},
    {"aten::nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, " WICK_PAIR_OUT,
     WICK_KERNEL(medianDimOut<true>)},
    {"aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> " WICK_PAIR, WICK_KERNEL(mode),
     kNoFlags, shapes::reducedWithIndices},
    {"aten::mode.values(Tensor self, int dim=-1, bool keepdim=False, " WICK_PAIR_OUT,
     WICK_KERNEL(modeOut)},
    {"aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantile<false>), kOutForm},
    {"aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantileNumber<false>), kOutForm},
    {"aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantile<true>), kOutForm},
    {"aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantileNumber<true>), kOutForm},
};

const RegisterOperators registered(kRecords);

}  // namespace

}  // namespace wick::ops
