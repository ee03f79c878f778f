// Operators that order elements along a dimension: sort, topk, kthvalue, median, mode, quantile.
// NaN counts as larger than every number. Among equal elements the position that is reported is
// PyTorch's, which follows from using the same standard algorithms with the same comparisons.
#include <cmath>
#include <limits>
#include <numeric>

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
// Ascending and descending with NaN at the large end.
template <class T>
bool less(T a, T b) {
  return (isNan(b) && !isNan(a)) || a < b;
}
template <class T>
bool greater(T a, T b) {
  return (isNan(a) && !isNan(b)) || a > b;
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

// A sort that need not be stable reports the positions of equal elements as PyTorch's does: both
// sort pairs of element and position with the standard library's algorithm.
template <class T, class Before>
void sortSlice(const T* from, int64_t n, bool stable, T* to, int64_t* order, Before before) {
  CountedVector<Ranked<T>> pairs;
  pairs.reserve(static_cast<size_t>(n));
  Pace pace;
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    pairs.push_back({from[i], i});
  }
  auto compare = [&](const Ranked<T>& a, const Ranked<T>& b) { return before(a.value, b.value); };
  if (n > kLongSort) {
    if (stable) {
      std::stable_sort(pairs.begin(), pairs.end(), paced(pace, compare));
    } else {
      std::sort(pairs.begin(), pairs.end(), paced(pace, compare));
    }
  } else if (stable) {
    std::stable_sort(pairs.begin(), pairs.end(), compare);
  } else {
    std::sort(pairs.begin(), pairs.end(), compare);
  }
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    to[i] = pairs[static_cast<size_t>(i)].value;
    order[i] = pairs[static_cast<size_t>(i)].index;
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
                    if (descending) {
                      sortSlice(from, s.length, stable.value_or(false), to, order, greater<T>);
                    } else {
                      sortSlice(from, s.length, stable.value_or(false), to, order, less<T>);
                    }
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
                  Pace pace;
                  for (int64_t r = begin; r < end; ++r) {
                    T* first = values.data<T>() + r * s.length;
                    if (s.length > kLongSort) {
                      std::sort(first, first + s.length, paced(pace, less<T>));
                    } else {
                      std::sort(first, first + s.length, less<T>);
                    }
                  }
                });
  });
  return s.finish(self, values);
}

template <class T, class Before>
void selectTop(CountedVector<Ranked<T>>& queue, int64_t k, bool sorted, Before before) {
  auto compare = [&](const Ranked<T>& a, const Ranked<T>& b) { return before(a.value, b.value); };
  int64_t n = static_cast<int64_t>(queue.size());
  if (n > kLongSort) {
    Pace pace;
    const auto before_paced = paced(pace, compare);
    if (k * 64 <= n) {
      std::partial_sort(queue.begin(), queue.begin() + k, queue.end(), before_paced);
      return;
    }
    std::nth_element(queue.begin(), queue.begin() + k - 1, queue.end(), before_paced);
    if (sorted) std::sort(queue.begin(), queue.begin() + k - 1, before_paced);
    return;
  }
  if (k * 64 <= n) {
    std::partial_sort(queue.begin(), queue.begin() + k, queue.end(), compare);
    return;
  }
  std::nth_element(queue.begin(), queue.begin() + k - 1, queue.end(), compare);
  if (sorted) std::sort(queue.begin(), queue.begin() + k - 1, compare);
}

Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrapDim(dim, self.dim());
  Slices s(self, dim);
  WICK_CHECK(k >= 0 && k <= s.length, "topk: selected index k out of range: {} of {}", k, s.length);
  Tensor values = s.result(k, self.dtype());
  Tensor indices = s.result(k, DType::Long);
  dispatch<kRealNumbers>("topk", self.dtype(), [&]<class T>() -> void {
    if (k == 0) return;
    CountedVector<Ranked<T>> queue(static_cast<size_t>(s.length));
    for (int64_t r = 0; r < s.count; ++r) {
      const T* from = s.moved.data<T>() + r * s.length;
      for (int64_t i = 0; i < s.length; ++i) queue[i] = {from[i], i};
      if (largest) {
        selectTop(queue, k, sorted, greater<T>);
      } else {
        selectTop(queue, k, sorted, less<T>);
      }
      for (int64_t i = 0; i < k; ++i) {
        values.data<T>()[r * k + i] = queue[i].value;
        indices.data<int64_t>()[r * k + i] = queue[i].index;
      }
    }
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
    for (int64_t r = 0; r < s.count; ++r) {
      const T* from = s.moved.data<T>() + r * s.length;
      int64_t at = pick(from, s.length);
      values.data<T>()[r] = from[at];
      indices.data<int64_t>()[r] = at;
    }
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
  CountedVector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  auto middle = order.begin() + (numbers > 0 ? (numbers - 1) / 2 : 0);
  // Of equal elements the earlier one counts as smaller.
  Pace pace;
  std::nth_element(order.begin(), middle, order.end(), paced(pace, [&](int64_t a, int64_t b) {
                     return less<T>(data[a], data[b]) || (!less<T>(data[b], data[a]) && a < b);
                   }));
  return *middle;
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
