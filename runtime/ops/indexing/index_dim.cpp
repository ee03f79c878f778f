// Operators that index one dimension: index_select, index_add, index_copy, index_fill,
// index_reduce, embedding, take, put, and masked selection.
#include <cmath>

#include "core/budget.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/stride_order.h"
#include "core/wrapped.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/kernels/remap.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/indexing/index_errors.h"
#include "runtime/ops/indexing/row_major.h"
#include "runtime/ops/reduce/into.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

// The offsets along dimension d at which `index` (a vector or a zero-dim tensor) points.
OffsetTable selectedOffsets(const char* op, const Tensor& self, int64_t d, const Tensor& index,
                            bool negative = false) {
  Tensor flat = indexInt64(op, index);
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[d];
  int64_t stride = self.dim() == 0 ? 1 : self.strides()[d];
  const int64_t* data = flat.data<int64_t>();
  OffsetTable table(static_cast<size_t>(flat.numel()));
  for (size_t i = 0; i < table.size(); ++i) {
    if (data[i] >= n || data[i] < (negative ? -n : 0)) [[unlikely]] {
      throwIndexError("{}: index {} is out of bounds for dimension {} with size {}", op, data[i], d,
                      n);
    }
    table[i] = (data[i] < 0 ? data[i] + n : data[i]) * stride;
  }
  return table;
}

Tensor indexSelect(const Tensor& self, int64_t dim, const Tensor& index, Out out) {
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  WICK_CHECK(self.dim() > 0 || index.numel() == 1,
             "index_select(): Index to scalar can have only 1 value, got {} value(s)",
             index.numel());
  Tensor input = atLeast1d(self);
  std::vector<OffsetTable> tables = offsetTables(input);
  tables[dim] = selectedOffsets("index_select()", input, dim, index);
  DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[dim] = index.numel();
  Tensor result = resultTensor(out, sizes, self.dtype(), {&self, &index});
  if (result.numel() > 0) {
    remap(result.rawData(), input.rawData(), tables, input.itemSize());
  }
  return result;
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  WICK_CHECK(weight.dim() == 2, "'weight' must be 2-D");
  WICK_CHECK(indices.dtype() == DType::Long || indices.dtype() == DType::Int,
             "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
             "Long, Int; but got {} instead (while checking arguments for embedding)",
             scalarTypeName(indices.dtype()));
  int64_t rows = weight.sizes()[0];
  Tensor flat = indices.to(DType::Long).contiguous();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    int64_t at = flat.data<int64_t>()[i];
    if (at < 0 || at >= rows) [[unlikely]] {
      throwIndexError("embedding: index out of range in self: {} of {} rows", at, rows);
    }
  }
  DimVector sizes(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  return indexSelect(weight, 0, flat.view(DimVector{-1}), Out{}).view(sizes);
}

// Common checks of index_add, index_copy and index_reduce; `source` comes back row-major with the
// dimensions of `self`.
Tensor checkedSource(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                     const Tensor& source) {
  WICK_CHECK(index.dim() <= 1,
             "{}: Index is supposed to be a vector, but got dim: {} with type: {} and size: {}", op,
             index.dim(), scalarTypeName(index.dtype()), formatInts(index.sizes()));
  WICK_CHECK(self.dtype() == source.dtype(),
             "{}: self ({}) and source ({}) must have the same scalar type", op,
             scalarTypeName(self.dtype()), scalarTypeName(source.dtype()));
  int64_t count = source.dim() == 0 ? 1 : source.size(dim);
  WICK_CHECK(index.numel() == count,
             "{}: Number of indices ({}) should be equal to source.size(dim): ({}), for dim: {}",
             op, index.numel(), count, dim);
  DimVector sizes(atLeast1d(self).sizes());
  sizes[dim] = count;
  Tensor from = atLeast1d(source);
  WICK_CHECK(std::ranges::equal(from.sizes(), sizes),
             "{}: Source/destination tensor must have same slice shapes. Destination slice shape: "
             "{} at dimension {} and source slice shape: {} at dimension {}.",
             op, formatInts(without(sizes, dim)), dim,
             formatInts(without(from.sizes(), std::min(dim, from.dim() - 1))), dim);
  from = from.contiguous();
  return from;
}

std::vector<OffsetTable> targetTables(const char* op, const Tensor& self, int64_t dim,
                                      const Tensor& index, bool negative = false) {
  Tensor t = atLeast1d(self);
  std::vector<OffsetTable> tables = offsetTables(t);
  tables[dim] = selectedOffsets(op, t, dim, index, negative);
  return tables;
}

// Whether the last dimension's elements are neighbours.
bool runsAlong(const OffsetTable& table) {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i] != static_cast<int64_t>(i)) return false;
  }
  return !table.empty();
}

// to[position of the tables] += add * scale, for row-major `add`, in its order.
template <class T>
void addMapped(T* to, const T* add, T scale, const std::vector<OffsetTable>& tables) {
  const auto sum = [&](T& at, const T& v) {
    if constexpr (kIsReducedFloat<T>) {
      at = T(at + T(v * scale));
    } else {
      at = wrappedSum(at, wrappedProduct(v, scale));
    }
  };
  if (tables.empty() || !runsAlong(tables.back())) {
    forEachMapped(tables, [&](int64_t at, int64_t i) { sum(to[at], add[i]); });
    return;
  }
  // Whole rows, some columns of all of them on each thread: positions may repeat.
  const std::vector<OffsetTable> outer(tables.begin(), tables.end() - 1);
  int64_t rows = 1;
  for (const OffsetTable& t : outer) rows *= static_cast<int64_t>(t.size());
  const auto columns = static_cast<int64_t>(tables.back().size());
  parallelFor(columns, std::max<int64_t>(16, kGrainSize / std::max<int64_t>(1, rows)),
              [&](int64_t begin, int64_t end) {
                Pace pace;
                forEachMapped(outer, [&](int64_t at, int64_t row) {
                  pace.step(1 + (end - begin) / 4);
                  T* const into = to + at;
                  const T* const from = add + row * columns;
#pragma GCC ivdep
                  for (int64_t j = begin; j < end; ++j) sum(into[j], from[j]);
                });
              });
}

Tensor indexAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                Scalar alpha, Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor from = checkedSource("index_add_()", self, dim, index, source);
  numberTensor(alpha, self.dtype());  // refuses what the dtype cannot hold
  if (from.sharesStorage(self)) from = from.clone();
  std::vector<OffsetTable> tables = targetTables("index_add_()", self, dim, index);
  Tensor t = startRowMajorFrom(self, out);
  checkWritable("index_add_()", t);
  tables = targetTables("index_add_()", t, dim, index);
  dispatchAll(t.dtype(),
              [&]<class T>() { addMapped<T>(t.data<T>(), from.data<T>(), alpha.to<T>(), tables); });
  return t;
}

Tensor indexCopy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 Out out) {
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(index.dtype() == DType::Long,
             "index_copy_(): Expected a long tensor for index, but got {}",
             scalarTypeName(index.dtype()));
  Tensor from = checkedSource("index_copy_()", self, dim, index, source);
  if (from.sharesStorage(self)) from = from.clone();
  Tensor t = startRowMajorFrom(self, out);
  checkWritable("index_copy_()", t);
  remapInto(t.rawData(), from.rawData(), targetTables("index_copy_()", t, dim, index),
            t.itemSize());
  return t;
}

Tensor indexFillTensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value,
                       Out out) {
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(index.dtype() == DType::Long, "index_fill_(): Expected dtype int64 for index.");
  WICK_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  WICK_CHECK(value.dim() == 0,
             "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
             "dimension(s).",
             value.dim());
  Tensor t = startFrom(self, out);
  Tensor number = value.to(t.dtype());
  std::vector<OffsetTable> tables = targetTables("index_fill_()", t, dim, index, true);
  dispatchItemSize(t.itemSize(), [&]<class Word>() {
    Word v = *static_cast<const Word*>(number.rawData());
    Word* to = static_cast<Word*>(t.rawData());
    forEachMapped(tables, [&](int64_t at, int64_t) { to[at] = v; });
  });
  return t;
}
Tensor indexFill(const Tensor& self, int64_t dim, const Tensor& index, Scalar value, Out out) {
  WICK_CHECK(!value.isComplex() || isComplex(self.dtype()),
             "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  return indexFillTensor(self, dim, index, numberTensor(value, self.dtype()), out);
}

Tensor indexReduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   std::string reduce, bool include_self, Out out) {
  WICK_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
             "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {}.",
             reduce);
  dim = wrapDim(dim, self.dim());
  Tensor from = checkedSource("index_reduce()", self, dim, index, source);
  Tensor t = startRowMajorFrom(self, out);
  checkWritable("index_reduce()", t);
  std::vector<OffsetTable> tables = targetTables("index_reduce()", t, dim, index);
  CountedVector<int64_t> at;
  at.reserve(static_cast<size_t>(from.numel()));
  forEachMapped(tables, [&](int64_t offset, int64_t) { at.push_back(offset); });
  reduceInto("index_reduce()", t, from, at, *reductionNamed(reduce), include_self);
  return t;
}

Tensor take(const Tensor& self, const Tensor& index, Out out) {
  WICK_CHECK(index.dtype() == DType::Long, "take(): Expected a long tensor for index, but got {}",
             scalarTypeName(index.dtype()));
  WICK_CHECK(self.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  Tensor flat = self.contiguous();
  Tensor at = index.contiguous();
  Tensor result = resultTensor(out, index.sizes(), self.dtype(), {&self, &index});
  int64_t n = self.numel();
  dispatchItemSize(self.itemSize(), [&]<class Word>() {
    const Word* from = static_cast<const Word*>(flat.rawData());
    Word* to = static_cast<Word*>(result.rawData());
    const int64_t* const positions = at.data<int64_t>();
    parallelFor(at.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t k = positions[i];
        if (k < -n || k >= n) [[unlikely]] {
          throwIndexError("out of range: tried to access index {} on a tensor of {} elements.", k,
                          n);
        }
        to[i] = from[k < 0 ? k + n : k];
      }
    });
  });
  return result;
}

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate,
           Out out) {
  WICK_CHECK(index.dtype() == DType::Long, "put_(): Expected a long tensor for index, but got {}",
             scalarTypeName(index.dtype()));
  WICK_CHECK(self.dtype() == source.dtype(),
             "put_(): self and source expected to have the same dtype, but got self.dtype = {} and "
             "source.dtype = {}",
             toString(self.dtype()), toString(source.dtype()));
  WICK_CHECK(index.numel() == source.numel(),
             "put_(): Expected source and index to have the same number of elements, but got "
             "source.numel() = {}, index.numel() = {}",
             source.numel(), index.numel());
  int64_t n = self.numel();
  WICK_CHECK(n > 0 || index.numel() == 0, "put_(): tried to put elements into an empty tensor");
  Tensor t = startFrom(self, out);
  checkWritable("put_()", t);
  Tensor dense = t.isContiguous() ? t : t.clone(MemoryFormat::Contiguous);
  Tensor from = source.contiguous();
  if (from.sharesStorage(dense)) from = from.clone();
  Tensor where = index.contiguous();
  CountedVector<int64_t> at(static_cast<size_t>(where.numel()));
  for (size_t i = 0; i < at.size(); ++i) {
    int64_t k = where.data<int64_t>()[i];
    if (k < -n || k >= n) [[unlikely]] {
      throwIndexError("out of range: tried to access index {} on a tensor of {} elements.", k, n);
    }
    at[i] = k < 0 ? k + n : k;
  }
  if (accumulate) {
    reduceInto("put_()", dense, from, at, Reduction::Sum, true);
  } else {
    remapInto(dense.rawData(), from.rawData(), {at}, dense.itemSize());
  }
  return t.copyFrom(dense);
}

Tensor checkedMask(const char* op, const Tensor& mask, IntSpan shape) {
  WICK_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Byte,
             "{}: expected BoolTensor or ByteTensor for mask", op);
  return mask.to(DType::Bool).expand(shape).contiguous();
}

// Of contiguous bools, as bytes: one that is neither 0 nor 1, which only a view of another dtype
// can have written, must be the same to those who count and to those who store.
int64_t countTrue(const Tensor& bools) {
  const auto* bytes = static_cast<const uint8_t*>(bools.rawData());
  return std::count_if(bytes, bytes + bools.numel(), [](uint8_t b) { return b != 0; });
}

Tensor maskedSelect(const Tensor& self, const Tensor& mask) {
  DimVector shape = broadcastShapes(self.sizes(), mask.sizes());
  Tensor keep = checkedMask("masked_select", mask, shape);
  Tensor from = self.expand(shape).contiguous();
  const auto* k = static_cast<const uint8_t*>(keep.rawData());
  int64_t count = countTrue(keep);
  Tensor out = Tensor::empty(DimVector{count}, self.dtype(), self.device());
  dispatchItemSize(self.itemSize(), [&]<class Word>() {
    const Word* source = static_cast<const Word*>(from.rawData());
    Word* to = static_cast<Word*>(out.rawData());
    for (int64_t i = 0; i < keep.numel(); ++i) {
      if (k[i]) *to++ = source[i];
    }
  });
  return out;
}

Tensor maskedScatter(const Tensor& self, const Tensor& mask, const Tensor& source, Out out) {
  WICK_CHECK(self.dtype() == source.dtype(),
             "masked_scatter: expected self and source to have same dtypes but got {} and {}",
             scalarTypeName(self.dtype()), scalarTypeName(source.dtype()));
  bool inplace = out && out.tensor->isSame(self);
  DimVector shape = inplace ? DimVector(self.sizes()) : broadcastShapes(self.sizes(), mask.sizes());
  // In place the elements are taken in the order in which they lie in memory.
  DimVector order(shape.size());
  orderDimensions(std::span<int64_t>(order.data(), order.size()), [&](int64_t a, int64_t b) {
    if (!inplace) return 0;
    const int64_t left = self.strides()[static_cast<size_t>(a)];
    const int64_t right = self.strides()[static_cast<size_t>(b)];
    return left == 0 || right == 0 ? 0 : left < right ? -1 : left > right ? 1 : 0;
  });
  std::reverse(order.begin(), order.end());
  DimVector back(shape.size());
  for (size_t d = 0; d < order.size(); ++d) {
    back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  }
  Tensor keep = checkedMask("masked_scatter", mask, shape).permute(order).contiguous();
  Tensor from = source.contiguous();
  Tensor dense = self.expand(shape).permute(order).clone(MemoryFormat::Contiguous);
  const auto* k = static_cast<const uint8_t*>(keep.rawData());
  WICK_CHECK(countTrue(keep) <= from.numel(),
             "Number of elements of source < number of ones in mask");
  dispatchItemSize(self.itemSize(), [&]<class Word>() {
    const Word* next = static_cast<const Word*>(from.rawData());
    Word* to = static_cast<Word*>(dense.rawData());
    for (int64_t i = 0; i < keep.numel(); ++i) {
      if (k[i]) to[i] = *next++;
    }
  });
  return dense.permute(back);
}

Tensor oneHot(const Tensor& self, int64_t classes) {
  static const OperatorHandle kScatter{"aten::scatter", "value"};
  WICK_CHECK(self.dtype() == DType::Long, "one_hot is only applicable to index tensor.");
  if (self.numel() == 0) {
    WICK_CHECK(classes > 0, "Can not infer total number of classes from empty tensor.");
  } else {
    const auto largest = ops::amax(self).item<int64_t>();
    WICK_CHECK(ops::amin(self).item<int64_t>() >= 0, "Class values must be non-negative.");
    if (classes == -1) {
      WICK_CHECK(largest < INT64_MAX, "one_hot: the class value {} is too large", largest);
      classes = largest + 1;
    }
    WICK_CHECK(classes > 0, "num_classes should be positive");
    WICK_CHECK(largest < classes, "Class values must be smaller than num_classes.");
  }
  DimVector sizes(self.sizes());
  sizes.push_back(classes);
  const Tensor out = Tensor::zeros(sizes, DType::Long, self.device());
  return self.numel() == 0 ? out : kScatter(out, int64_t{-1}, self.unsqueeze(-1), Scalar(1));
}

const OperatorRecord kIndexDimRecords[] = {
    {"aten::index_select(Tensor self, int dim, Tensor index) -> Tensor", WICK_KERNEL(indexSelect),
     kOutForm | kRefusesOverlap | kOutSame | kRaisesByElements, shapes::indexSelected},
    {"aten::embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool "
     "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
     WICK_KERNEL(embedding), kOutForm | kOutAny | kRaisesByElements, shapes::embedded},
    {"aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
     "Tensor",
     WICK_KERNEL(indexAdd), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
    {"aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
     WICK_KERNEL(indexCopy),
     kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements | kEagerCastWidest,
     shapes::likeFirst},
    {"aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     WICK_KERNEL(indexFill), kBothForms | kRefusesOverlap | kOutAny | kRaisesByElements,
     shapes::likeFirst},
    {"aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
     WICK_KERNEL(indexFillTensor), kBothForms | kRefusesOverlap | kOutAny | kRaisesByElements,
     shapes::likeFirst},
    {"aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
     "include_self=True) -> Tensor",
     WICK_KERNEL(indexReduce), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
    {"aten::take(Tensor self, Tensor index) -> Tensor", WICK_KERNEL(take),
     kOutForm | kRefusesOverlap | kOutSame | kRaisesByElements, shapes::likeIndex},
    {"aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
     WICK_KERNEL(put), kBothForms | kRefusesOverlap | kOutAny | kRaisesByElements,
     shapes::likeFirst},
    {"aten::masked_select(Tensor self, Tensor mask) -> Tensor", WICK_KERNEL(maskedSelect),
     kOutForm | kRefusesOverlap | kOutSame, shapes::maskSelected},
    {"aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
     WICK_KERNEL(maskedScatter), kBothForms | kOutAny | kRaisesByElements},
    {"aten::one_hot(Tensor self, int num_classes=-1) -> Tensor", WICK_KERNEL(oneHot),
     kNotDifferentiable | kNeutral | kRaisesByElements},
};

const RegisterOperators kIndexDimRegistered(kIndexDimRecords);

}  // namespace

}  // namespace wick::ops
