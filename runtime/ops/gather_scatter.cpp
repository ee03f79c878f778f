// gather and scatter: an index tensor of the result's shape (or the source's) that replaces one
// coordinate of each position.
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/ops/common.h"
#include "runtime/ops/reduce_into.h"
#include "runtime/ops/shape_rules.h"

namespace wick::ops {

namespace {

Tensor atLeast1d(const Tensor& t) {
  return t.dim() == 0 ? t.unsqueeze(0) : t;
}

void checkIndexDType(const char* op, const Tensor& index) {
  WICK_CHECK(index.dtype() == DType::Long, "{}: Expected dtype int64 for index", op);
}

// Where in `t` each position of `index` (row-major) points: its own coordinates, but along `dim`
// the value. The offsets are in elements.
CountedVector<int64_t> indexedOffsets(const Tensor& t, int64_t dim, const Tensor& index) {
  Tensor at = index.contiguous();
  const int64_t* data = at.data<int64_t>();
  int64_t n = t.sizes()[dim];
  int64_t stride = t.strides()[dim];
  DimVector strides(t.strides());
  strides[dim] = 0;
  CountedVector<int64_t> out;
  out.reserve(static_cast<size_t>(at.numel()));
  forEachOffset<1>(at.sizes(), {IntSpan(strides)}, [&](const std::array<int64_t, 1>& base) {
    int64_t i = *data++;
    WICK_CHECK(i >= 0 && i < n, "index {} is out of bounds for dimension {} with size {}", i, dim,
               n);
    out.push_back(base[0] + i * stride);
  });
  return out;
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool, Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor result = resultTensor(out, index.sizes(), self.dtype(), {&self, &index});
  if (index.numel() == 0) return result;
  checkIndexDType("gather()", index);
  Tensor from = atLeast1d(self);
  Tensor at = atLeast1d(index);
  WICK_CHECK(from.dim() == at.dim(),
             "Index tensor must have the same number of dimensions as input tensor");
  for (int64_t d = 0; d < at.dim(); ++d) {
    WICK_CHECK(d == dim || at.sizes()[d] <= from.sizes()[d],
               "Size does not match at dimension {} expected index {} to be smaller than self {} "
               "apart from dimension {}",
               d, formatInts(index.sizes()), formatInts(self.sizes()), dim);
  }
  CountedVector<int64_t> offsets = indexedOffsets(from, dim, at);
  dispatchItemSize(self.itemSize(), [&]<class Word>() {
    const Word* source = static_cast<const Word*>(from.rawData());
    Word* to = static_cast<Word*>(result.rawData());
    for (size_t i = 0; i < offsets.size(); ++i) to[i] = source[offsets[i]];
  });
  return result;
}

// The offsets in `self` that scatter writes. `source` may be undefined (a number is written).
CountedVector<int64_t> scatterOffsets(const char* op, const Tensor& self, int64_t dim,
                                      const Tensor& index, const Tensor& source) {
  if (index.numel() == 0) return {};
  checkIndexDType(op, index);
  Tensor to = atLeast1d(self);
  Tensor at = atLeast1d(index);
  WICK_CHECK(to.dim() == at.dim(),
             "Index tensor must have the same number of dimensions as self tensor");
  Tensor from = source.defined() ? atLeast1d(source) : Tensor();
  if (source.defined()) {
    WICK_CHECK(self.dtype() == source.dtype(), "{}: Expected self.dtype to be equal to src.dtype",
               op);
    WICK_CHECK(from.dim() == at.dim(),
               "Index tensor must have the same number of dimensions as src tensor");
  }
  for (int64_t d = 0; d < at.dim(); ++d) {
    bool fits = (d == dim || at.sizes()[d] <= to.sizes()[d]) &&
                (!from.defined() || at.sizes()[d] <= from.sizes()[d]);
    WICK_CHECK(
        fits, "Expected index {} to be smaller than self {} apart from dimension {}{}",
        formatInts(index.sizes()), formatInts(self.sizes()), dim,
        from.defined() ? " and to be smaller size than src " + formatInts(source.sizes()) : "");
  }
  return indexedOffsets(to, dim, at);
}

// The part of `source` that `index` covers, row-major.
Tensor coveredPart(const Tensor& source, const Tensor& index) {
  Tensor from = atLeast1d(source);
  Tensor at = atLeast1d(index);
  for (int64_t d = 0; d < at.dim(); ++d) from = from.narrow(d, 0, at.sizes()[d]);
  return from.clone(MemoryFormat::Contiguous);
}

Tensor scatterSource(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor t = startFrom(self, out);
  checkWritable("scatter()", t);
  CountedVector<int64_t> offsets = scatterOffsets("scatter()", t, dim, index, source);
  if (offsets.empty()) return t;
  Tensor from = coveredPart(source, index);
  dispatchItemSize(t.itemSize(), [&]<class Word>() {
    const Word* data = static_cast<const Word*>(from.rawData());
    Word* to = static_cast<Word*>(t.rawData());
    for (size_t i = 0; i < offsets.size(); ++i) to[offsets[i]] = data[i];
  });
  return t;
}

Tensor scatterValue(const Tensor& self, int64_t dim, const Tensor& index, Scalar value, Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor number = numberTensor(value, self.dtype());
  Tensor t = startFrom(self, out);
  checkWritable("scatter()", t);
  CountedVector<int64_t> offsets = scatterOffsets("scatter()", t, dim, index, Tensor());
  dispatchItemSize(t.itemSize(), [&]<class Word>() {
    Word v = *static_cast<const Word*>(number.rawData());
    Word* to = static_cast<Word*>(t.rawData());
    for (int64_t at : offsets) to[at] = v;
  });
  return t;
}

Tensor reduceWith(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& source, Reduction reduction, bool include_self, Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor t = startFrom(self, out);
  checkWritable(op, t);
  CountedVector<int64_t> offsets = scatterOffsets(op, t, dim, index, source);
  if (offsets.empty()) return t;
  reduceInto(op, t, coveredPart(source, index), offsets, reduction, include_self);
  return t;
}

Reduction addOrMultiply(const std::string& reduce) {
  WICK_CHECK(reduce == "add" || reduce == "multiply",
             "reduce argument must be either add or multiply.");
  return reduce == "add" ? Reduction::Sum : Reduction::Prod;
}
Tensor scatterReduceMode(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                         std::string reduce, Out out) {
  return reduceWith("scatter()", self, dim, index, source, addOrMultiply(reduce), true, out);
}
Tensor scatterValueReduce(const Tensor& self, int64_t dim, const Tensor& index, Scalar value,
                          std::string reduce, Out out) {
  Tensor source = numberTensor(value, self.dtype()).expand(index.sizes());
  return reduceWith("scatter()", self, dim, index, source, addOrMultiply(reduce), true, out);
}
Tensor scatterAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                  Out out) {
  return reduceWith("scatter()", self, dim, index, source, Reduction::Sum, true, out);
}
Tensor scatterReduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     std::string reduce, bool include_self, Out out) {
  std::optional<Reduction> reduction = reductionNamed(reduce);
  WICK_CHECK(reduction.has_value(),
             "reduce argument must be either sum, prod, mean, amax or amin.");
  return reduceWith("scatter()", self, dim, index, source, *reduction, include_self, out);
}

Tensor takeAlongDim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim,
                    Out out) {
  checkIndexDType("torch.take_along_dim()", indices);
  if (!dim) return gather(self.flatten(), 0, indices.flatten(), false, out);
  int64_t d = wrapDim(*dim, self.dim());
  WICK_CHECK(self.dim() == indices.dim(),
             "torch.take_along_dim(): input and indices should have the same number of dimensions, "
             "but got {} dimensions for input, and {} dimensions for indices",
             self.dim(), indices.dim());
  if (self.dim() == 0) return gather(self, d, indices, false, out);
  // All dimensions broadcast but the one that is indexed.
  DimVector a(self.sizes());
  DimVector b(indices.sizes());
  a[d] = b[d] = 1;
  DimVector shape = broadcastShapes(a, b);
  DimVector self_shape = shape;
  DimVector index_shape = shape;
  self_shape[d] = self.sizes()[d];
  index_shape[d] = indices.sizes()[d];
  return gather(self.expand(self_shape), d, indices.expand(index_shape), false, out);
}

constexpr uint32_t kBoth = kInplaceForm | kOutForm;

const OperatorRecord kRecords[] = {
    {"aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     WICK_KERNEL(gather), kOutForm, shapes::likeIndex},
    {"aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
     WICK_KERNEL(takeAlongDim), kOutForm},
    {"aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     WICK_KERNEL(scatterValue), kBoth, shapes::likeFirst},
    {"aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     WICK_KERNEL(scatterSource), kBoth, shapes::likeFirst},
    {"aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> "
     "Tensor",
     WICK_KERNEL(scatterReduceMode), kBoth, shapes::likeFirst},
    {"aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) "
     "-> Tensor",
     WICK_KERNEL(scatterValueReduce), kBoth, shapes::likeFirst},
    {"aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     WICK_KERNEL(scatterAdd), kBoth, shapes::likeFirst},
    {"aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
     "include_self=True) -> Tensor",
     WICK_KERNEL(scatterReduce), kBoth, shapes::likeFirst},
};

const RegisterOperators registered(kRecords);

}  // namespace

}  // namespace wick::ops
