// Operators that order elements along a dimension: sort, topk, kthvalue, median, mode. NaN counts as
// larger than every number. Among equal elements the position that is reported is PyTorch's, which
// follows from using the same standard algorithms with the same comparisons.
#include <functional>
#include <limits>

#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/paced.h"
#include "core/parallel.h"
#include "runtime/kernels/element_order.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/indexing/sort_keys.h"
#include "runtime/ops/shapes/shape_rules.h"
#include "runtime/ops/tensors/out_forms.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

using order::Before, order::Keyed;

// Whether sorting so many elements should look at the budget.
bool isPaced(int64_t n) {
  return n > kLongSort && currentBudget();
}

// The slices of `self` along a dimension; results have `size` elements along it.
struct Slices {
  Tensor moved;  // the dimension last, row-major
  int64_t dim;
  int64_t length;
  int64_t count;
  bool is_float;

  Slices(const Tensor& self, int64_t d) {
    Tensor t = self.dim() == 0 ? self.unsqueeze(0) : self;
    dim = d;
    length = t.sizes()[d];
    moved = t.transpose(d, t.dim() - 1).contiguous();
    count = length == 0 ? 0 : moved.numel() / length;
    is_float = isFloating(self.dtype());
  }
  // Slices below which a second thread does not pay.
  int64_t grain() const {
    return std::max<int64_t>(1, kGrainSize / 4 / std::max<int64_t>(1, length));
  }
  const char* at(int64_t slice, int64_t index) const {
    return static_cast<const char*>(moved.rawData()) +
           static_cast<size_t>(slice * length + index) * itemSize(moved.dtype());
  }
  template <class K>
  void fillKeys(int64_t slice, int64_t begin, int64_t n, bool descending, K* to) const {
    fillSortKeys(moved.dtype(), at(slice, begin), n, descending, to);
  }
  template <class K>
  bool isNan(K key) const {
    return order::isNanKey(key, is_float);
  }
  // Calls f(K{}, first slice, slice after the last) on all threads, K wide enough for the keys and
  // positions of a slice.
  template <class F>
  void forEach(int64_t grain_size, F&& f) const {
    const bool narrow =
        itemSize(moved.dtype()) <= 4 && length <= std::numeric_limits<uint32_t>::max();
    parallelFor(count, grain_size, [&](int64_t begin, int64_t end) {
      if (narrow) {
        f(uint32_t{}, begin, end);
      } else {
        f(uint64_t{}, begin, end);
      }
    });
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

template <unsigned kCategories>
void checkDType(const char* op, const Tensor& t) {
  dispatch<kCategories>(op, t.dtype(), []<class T>() -> void {});
}

template <class K>
void loadPairs(const Slices& s, int64_t slice, bool descending, Keyed<K>* to) {
  constexpr int64_t kBlock = 512;
  K keys[kBlock];
  Pace pace;
  for (int64_t begin = 0; begin < s.length; begin += kBlock) {
    const int64_t n = std::min(kBlock, s.length - begin);
    pace.step(n);
    s.fillKeys(slice, begin, n, descending, keys);
    for (int64_t i = 0; i < n; ++i) to[begin + i] = {keys[i], static_cast<K>(begin + i)};
  }
}

template <class E, class K>
void gather(const void* from, const Keyed<K>* pairs, int64_t n, void* to) {
  Pace pace;
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    static_cast<E*>(to)[i] = static_cast<const E*>(from)[pairs[i].index];
  }
}

// Writes the elements and positions that the first n pairs name to row `slice` of two result()s.
template <class K>
void storePairs(const Slices& s, int64_t slice, const Keyed<K>* pairs, int64_t n,
                const Tensor& values, const Tensor& indices) {
  const void* const from = s.at(slice, 0);
  const size_t bytes = itemSize(values.dtype());
  void* const to = static_cast<char*>(values.rawData()) + static_cast<size_t>(slice * n) * bytes;
  if (bytes == 1) gather<uint8_t>(from, pairs, n, to);
  if (bytes == 2) gather<uint16_t>(from, pairs, n, to);
  if (bytes == 4) gather<uint32_t>(from, pairs, n, to);
  if (bytes == 8) gather<uint64_t>(from, pairs, n, to);
  int64_t* const positions = indices.data<int64_t>() + slice * n;
  for (int64_t i = 0; i < n; ++i) positions[i] = static_cast<int64_t>(pairs[i].index);
}

// A sort that need not be stable reports the positions of equal elements as PyTorch's does: both
// sort pairs of element and position with the standard library's algorithm, which moves them by
// what comparisons say.
template <class K>
void sortPairs(CountedVector<Keyed<K>>& pairs, bool stable) {
  const auto sort = [&](auto before) {
    if (stable) {
      std::stable_sort(pairs.begin(), pairs.end(), before);
    } else {
      std::sort(pairs.begin(), pairs.end(), before);
    }
  };
  Pace pace;
  if (isPaced(static_cast<int64_t>(pairs.size()))) {
    sort(paced(pace, Before{}));
  } else {
    sort(Before{});
  }
}

// Returns the result with the dimensions in memory in the order of those of the argument.
Tensor laidOutLike(const Tensor& self, Tensor result) {
  if (self.isContiguous()) return result;
  Tensor made = Tensor::emptyLike(self, result.dtype());
  if (made.isContiguous()) return result;
  made.copyFrom(result);
  return made;
}

Pair sortStable(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  if (!self.device().isCpu()) {
    const std::vector<IValue> both =
        ops::sortStable.all(self, stable ? IValue(*stable) : IValue(), dim, descending);
    return {both[0].toTensor(), both[1].toTensor()};
  }
  dim = wrapDim(dim, self.dim());
  checkDType<kRealNumbers | kBool>("sort", self);
  Slices s(self, dim);
  Tensor values = s.result(s.length, self.dtype());
  Tensor indices = s.result(s.length, DType::Long);
  const int64_t grain = std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, s.length * 8));
  s.forEach(grain, [&]<class K>(K, int64_t begin, int64_t end) {
    CountedVector<Keyed<K>> pairs(static_cast<size_t>(s.length));
    for (int64_t r = begin; r < end; ++r) {
      loadPairs(s, r, descending, pairs.data());
      sortPairs(pairs, stable.value_or(false));
      storePairs(s, r, pairs.data(), s.length, values, indices);
    }
  });
  return {laidOutLike(self, s.finish(self, values)), laidOutLike(self, s.finish(self, indices))};
}
Pair sort(const Tensor& self, int64_t dim, bool descending) {
  return sortStable(self, false, dim, descending);
}
Tensor argsortStable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(sortStable(self, stable, dim, descending));
}
Tensor msort(const Tensor& self) {
  return std::get<0>(sort(self, 0, false));
}

// The first k of `queue`, by the algorithm that PyTorch chooses for so many.
template <class K>
void selectTop(CountedVector<Keyed<K>>& queue, int64_t k, bool sorted) {
  const auto select = [&](auto before) {
    std::nth_element(queue.begin(), queue.begin() + k - 1, queue.end(), before);
    if (sorted) std::sort(queue.begin(), queue.begin() + k - 1, before);
  };
  Pace pace;
  if (isPaced(static_cast<int64_t>(queue.size()))) {
    select(paced(pace, Before{}));
  } else {
    select(Before{});
  }
}

// The first k elements of a slice where k is small, as std::partial_sort orders them: it keeps a
// heap of k elements, and only those that come before its last one ever enter it. `heap` has k + 1.
template <class K>
void selectFew(const Slices& s, int64_t slice, int64_t k, bool descending, Keyed<K>* heap) {
  constexpr int64_t kBlock = 256;
  K keys[kBlock];
  for (int64_t i = 0; i < k; ++i) {
    s.fillKeys(slice, i, 1, descending, keys);
    heap[i] = {keys[0], static_cast<K>(i)};
  }
  std::make_heap(heap, heap + k, Before{});
  // Most blocks have no such element, which a loop without branches says.
  Pace pace;
  for (int64_t begin = k; begin < s.length; begin += kBlock) {
    pace.step(kBlock);
    const int64_t n = std::min(kBlock, s.length - begin);
    s.fillKeys(slice, begin, n, descending, keys);
    const K last = heap[0].key;
    K some = 0;
    for (int64_t i = 0; i < n; ++i) some |= keys[i] < last ? K{1} : K{0};
    if (some == 0) continue;
    for (int64_t i = 0; i < n; ++i) {
      if (keys[i] >= heap[0].key) continue;
      heap[k] = {keys[i], static_cast<K>(begin + i)};
      std::pop_heap(heap, heap + k + 1, Before{});
    }
  }
  std::sort_heap(heap, heap + k, Before{});
}

Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrapDim(dim, self.dim());
  checkDType<kRealNumbers>("topk", self);
  Slices s(self, dim);
  WICK_CHECK(k >= 0 && k <= s.length, "topk: selected index k out of range: {} of {}", k, s.length);
  Tensor values = s.result(k, self.dtype());
  Tensor indices = s.result(k, DType::Long);
  const bool few = k <= s.length / 64;
  s.forEach(s.grain(), [&]<class K>(K, int64_t begin, int64_t end) {
    if (k == 0) return;
    CountedVector<Keyed<K>> queue(static_cast<size_t>(few ? k + 1 : s.length));
    for (int64_t r = begin; r < end; ++r) {
      if (few) {
        selectFew(s, r, k, largest, queue.data());
      } else {
        loadPairs(s, r, largest, queue.data());
        selectTop(queue, k, sorted);
      }
      storePairs(s, r, queue.data(), k, values, indices);
    }
  });
  return {s.finish(self, values), s.finish(self, indices)};
}

void checkNonEmpty(const char* op, const Tensor& self, int64_t dim) {
  WICK_CHECK(self.dim() == 0 || self.sizes()[dim] > 0,
             "{}: Expected reduction dim {} to have non-zero size.", op, dim);
}

// Reduces each slice to one element and its position: pick(K{}, slices, slice) -> position.
template <class F>
Pair pickEach(const Tensor& self, int64_t dim, bool keepdim, F&& pick) {
  Slices s(self, dim);
  Tensor values = s.result(1, self.dtype());
  Tensor indices = s.result(1, DType::Long);
  s.forEach(s.grain(), [&]<class K>(K key, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Keyed<K> picked[] = {{K{}, static_cast<K>(pick(key, s, r))}};
      storePairs(s, r, picked, 1, values, indices);
    }
  });
  return {s.finishReduced(self, values, keepdim), s.finishReduced(self, indices, keepdim)};
}

Pair kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  checkNonEmpty("kthvalue()", self, dim);
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[dim];
  WICK_CHECK(k >= 1 && k <= n, "kthvalue(): selected number k out of range for dimension {}", dim);
  checkDType<kRealNumbers>("kthvalue", self);
  return pickEach(self, dim, keepdim, [&]<class K>(K, const Slices& s, int64_t slice) {
    CountedVector<Keyed<K>> queue(static_cast<size_t>(s.length));
    loadPairs(s, slice, false, queue.data());
    order::quickSelect(queue.data(), s.length, k - 1);
    return queue[k - 1].index;
  });
}

template <class K>
int64_t medianPosition(const Slices& s, int64_t slice, bool ignore_nan) {
  CountedVector<K> keys(static_cast<size_t>(s.length));
  s.fillKeys(slice, 0, s.length, false, keys.data());
  int64_t numbers = s.length;
  for (int64_t i = 0; s.is_float && i < s.length; ++i) {
    if (!s.isNan(keys[i])) continue;
    if (!ignore_nan) return i;
    --numbers;
  }
  // Of equal elements the earlier one counts as smaller; so the value is found first, and then
  // which of the elements that equal it has the rank.
  CountedVector<K> ordered(keys);
  const int64_t rank = numbers > 0 ? (numbers - 1) / 2 : 0;
  Pace pace;
  if (isPaced(s.length)) {
    std::nth_element(ordered.begin(), ordered.begin() + rank, ordered.end(),
                     paced(pace, std::less<K>()));
  } else {
    std::nth_element(ordered.begin(), ordered.begin() + rank, ordered.end());
  }
  const K value = ordered[static_cast<size_t>(rank)];
  return order::placeOfRank(value, rank, s.length, [&](int64_t i) { return keys[i]; });
}
template <bool kIgnoreNan>
Pair medianDim(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  checkNonEmpty("median()", self, dim);
  checkDType<kRealNumbers>("median", self);
  return pickEach(self, dim, keepdim, []<class K>(K, const Slices& s, int64_t slice) {
    return medianPosition<K>(s, slice, kIgnoreNan);
  });
}
template <bool kIgnoreNan>
Tensor medianAll(const Tensor& self) {
  if (self.numel() > 0) return std::get<0>(medianDim<kIgnoreNan>(self.flatten(), 0, false));
  Tensor out = Tensor::empty({}, self.dtype());
  dispatch<kRealNumbers>("median", self.dtype(), [&]<class T>() -> void {
    *out.data<T>() = convert<T>(std::numeric_limits<double>::quiet_NaN());
  });
  return out;
}

template <class K>
int64_t modePosition(const Slices& s, int64_t slice) {
  CountedVector<Keyed<K>> sorted(static_cast<size_t>(s.length));
  loadPairs(s, slice, false, sorted.data());
  if (s.length <= order::kFewElements) {
    order::sortFew(sorted.data(), s.length, s.is_float);
  } else {
    sortPairs(sorted, false);
  }
  return order::lastOfLongestRun(sorted.data(), s.length, s.is_float);
}
Pair mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  checkNonEmpty("mode()", self, dim);
  checkDType<kRealNumbers | kBool>("mode", self);
  return pickEach(self, dim, keepdim, []<class K>(K, const Slices& s, int64_t slice) {
    return modePosition<K>(s, slice);
  });
}

#define WICK_PAIR "(Tensor values, Tensor indices)"
#define WICK_PAIR_OUT \
  "*, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)"

const OperatorRecord kSortingRecords[] = {
    {"aten::sort(Tensor self, int dim=-1, bool descending=False) -> " WICK_PAIR, WICK_KERNEL(sort),
     kNeutral, shapes::likeFirstWithIndices},
    {"aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) "
     "-> " WICK_PAIR,
     WICK_KERNEL(sortStable), kNoFlags, shapes::likeFirstWithIndices},
    {"aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, "
     "Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)",
     &outForm, kOutSame | kNeutral},
    {"aten::sort.values(Tensor self, int dim=-1, bool descending=False, " WICK_PAIR_OUT, &outForm,
     kOutSame | kNeutral},
    {"aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
     WICK_LAMBDA([](const Tensor& self, int64_t dim, bool descending) {
       return std::get<1>(sort(self, dim, descending));
     }),
     kNotDifferentiable | kNeutral, shapes::likeFirstLong},
    {"aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> "
     "Tensor",
     WICK_KERNEL(argsortStable), kNotDifferentiable | kOutForm | kNeutral, shapes::likeFirstLong},
    {"aten::msort(Tensor self) -> Tensor", WICK_KERNEL(msort), kOutForm | kOutSame | kNeutral,
     shapes::likeFirst},
    {"aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) "
     "-> " WICK_PAIR,
     WICK_KERNEL(topk), kNoFlags, shapes::topValues},
    {"aten::topk.values(Tensor self, int k, int dim=-1, bool largest=True, bool "
     "sorted=True, " WICK_PAIR_OUT,
     &outForm, kOutSame | kNeutral},
    {"aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> " WICK_PAIR,
     WICK_KERNEL(kthvalue), kNoFlags, shapes::reducedWithIndices},
    {"aten::kthvalue.values(Tensor self, int k, int dim=-1, bool keepdim=False, " WICK_PAIR_OUT,
     &outForm, kOutSame | kNeutral},
    {"aten::median(Tensor self) -> Tensor", WICK_KERNEL(medianAll<false>), kOutForm | kOutAny,
     shapes::reduced},
    {"aten::median.dim(Tensor self, int dim, bool keepdim=False) -> " WICK_PAIR,
     WICK_KERNEL(medianDim<false>), kNoFlags, shapes::reducedWithIndices},
    {"aten::median.dim_values(Tensor self, int dim, bool keepdim=False, " WICK_PAIR_OUT, &outForm,
     kOutSame | kNeutral},
    {"aten::nanmedian(Tensor self) -> Tensor", WICK_KERNEL(medianAll<true>), kOutForm | kOutAny,
     shapes::reduced},
    {"aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> " WICK_PAIR,
     WICK_KERNEL(medianDim<true>), kNoFlags, shapes::reducedWithIndices},
    {"aten::nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, " WICK_PAIR_OUT,
     &outForm, kOutSame | kNeutral},
    {"aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> " WICK_PAIR, WICK_KERNEL(mode),
     kNoFlags, shapes::reducedWithIndices},
    {"aten::mode.values(Tensor self, int dim=-1, bool keepdim=False, " WICK_PAIR_OUT, &outForm,
     kOutSame | kNeutral},
};

const RegisterOperators kSortingRegistered(kSortingRecords);

}  // namespace

}  // namespace wick::ops
