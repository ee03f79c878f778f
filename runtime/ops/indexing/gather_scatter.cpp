// gather and scatter: an index tensor of the result's shape (or the source's) that replaces one
// coordinate of each position.
#include "core/budget.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/ops/common.h"
#include "runtime/ops/indexing/row_major.h"
#include "runtime/ops/reduce/into.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

void checkIndexDType(const char* op, const Tensor& index) {
  WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
             "{}: Expected dtype int32/int64 for index", op);
}

// Where in `t` the positions of an index tensor point: their own coordinates, but along `dim` the
// value. The last dimension of the index makes rows.
class IndexedPositions {
 public:
  // `index` has as many dimensions as `t`, and elements.
  IndexedPositions(const Tensor& t, int64_t dim, const Tensor& index)
      : index_(apart(t, index.to(DType::Long).contiguous())),
        dim_(dim),
        size_(t.sizes()[dim]),
        stride_(t.strides()[dim]),
        strides_(t.strides()),
        length_(index.sizes().back()) {
    strides_[dim] = 0;
  }

  int64_t rows() const { return index_.numel() / length_; }
  int64_t length() const { return length_; }

  // Calls visit(i, offset in elements) for position i (row-major) of the rows [begin, end).
  // RuntimeError for values out of bounds, before anything of their row is visited.
  template <class F>
  void visit(int64_t begin, int64_t end, F&& visit) const {
    const size_t last = strides_.size() - 1;
    const int64_t step = strides_[last];
    for (int64_t row = begin; row < end; ++row) {
      const int64_t* at = index_.data<int64_t>() + row * length_;
      checkRow(at);
      int64_t base = 0, rest = row;
      for (size_t d = last; d-- > 0;) {
        base += rest % index_.sizes()[d] * strides_[d];
        rest /= index_.sizes()[d];
      }
      const int64_t first = row * length_;
      if (step == 0) {
        for (int64_t i = 0; i < length_; ++i) visit(first + i, base + at[i] * stride_);
      } else {
        for (int64_t i = 0; i < length_; ++i) visit(first + i, base + i * step + at[i] * stride_);
      }
    }
  }

  // The same for all rows, on all threads.
  template <class F>
  void visitAtOnce(F&& f) const {
    parallelFor(rows(), std::max<int64_t>(1, kGrainSize / 2 / length_),
                [&](int64_t begin, int64_t end) { visit(begin, end, f); });
  }

  // The same where no two rows may point at one element of `t`; otherwise in order.
  template <class F>
  void visitForWriting(const Tensor& t, F&& f) const {
    if (dim_ == static_cast<int64_t>(strides_.size()) - 1 && t.isNonOverlappingAndDense()) {
      return visitAtOnce(f);
    }
    Pace pace;
    for (int64_t row = 0; row < rows(); ++row) {
      pace.step(length_);
      visit(row, row + 1, f);
    }
  }

 private:
  // What is written must not change an index that was checked.
  static Tensor apart(const Tensor& t, const Tensor& index) {
    return index.sharesStorage(t) ? index.clone() : index;
  }
  void checkRow(const int64_t* at) const {
    bool outside = false;
    for (int64_t i = 0; i < length_; ++i) {
      outside |= static_cast<uint64_t>(at[i]) >= static_cast<uint64_t>(size_);
    }
    for (int64_t i = 0; outside && i < length_; ++i) {
      WICK_CHECK(at[i] >= 0 && at[i] < size_,
                 "index {} is out of bounds for dimension {} with size {}", at[i], dim_, size_);
    }
  }

  Tensor index_;
  int64_t dim_, size_, stride_;
  DimVector strides_;
  int64_t length_;
};

// The offsets in elements of all positions.
CountedVector<int64_t> indexedOffsets(const Tensor& t, int64_t dim, const Tensor& index) {
  const IndexedPositions positions(t, dim, index);
  CountedVector<int64_t> out(static_cast<size_t>(index.numel()));
  positions.visitAtOnce([&](int64_t i, int64_t offset) { out[i] = offset; });
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
  const IndexedPositions positions(from, dim, at);
  dispatchItemSize(self.itemSize(), [&]<class Word>() {
    const Word* source = static_cast<const Word*>(from.rawData());
    Word* to = static_cast<Word*>(result.rawData());
    positions.visitAtOnce([=](int64_t i, int64_t offset) { to[i] = source[offset]; });
  });
  return result;
}

// Refuses what scatter cannot write into `self`. `source` may be undefined (a number is written),
// and an index without elements says nothing.
void checkScatter(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& source) {
  if (index.numel() == 0) return;
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
}

// The part of `source` that `index` covers, row-major and apart from what is written to.
Tensor coveredPart(const Tensor& source, const Tensor& index, const Tensor& written) {
  Tensor from = atLeast1d(source);
  Tensor at = atLeast1d(index);
  for (int64_t d = 0; d < at.dim(); ++d) from = from.narrow(d, 0, at.sizes()[d]);
  return from.sharesStorage(written) ? from.clone(MemoryFormat::Contiguous) : from.contiguous();
}

Tensor scatterSource(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor t = startRowMajorFrom(self, out);
  checkWritable("scatter()", t);
  checkScatter("scatter()", t, dim, index, source);
  if (index.numel() == 0) return t;
  const Tensor from = coveredPart(source, index, t), target = atLeast1d(t);
  const IndexedPositions positions(target, dim, atLeast1d(index));
  dispatchItemSize(t.itemSize(), [&]<class Word>() {
    const Word* data = static_cast<const Word*>(from.rawData());
    Word* to = static_cast<Word*>(t.rawData());
    positions.visitForWriting(target, [=](int64_t i, int64_t offset) { to[offset] = data[i]; });
  });
  return t;
}

Tensor scatterValue(const Tensor& self, int64_t dim, const Tensor& index, Scalar value, Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor number = numberTensor(value, self.dtype());
  Tensor t = startRowMajorFrom(self, out);
  checkWritable("scatter()", t);
  checkScatter("scatter()", t, dim, index, Tensor());
  if (index.numel() == 0) return t;
  const Tensor target = atLeast1d(t);
  const IndexedPositions positions(target, dim, atLeast1d(index));
  dispatchItemSize(t.itemSize(), [&]<class Word>() {
    Word v = *static_cast<const Word*>(number.rawData());
    Word* to = static_cast<Word*>(t.rawData());
    positions.visitForWriting(target, [=](int64_t, int64_t offset) { to[offset] = v; });
  });
  return t;
}

Tensor reduceWith(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  const Tensor& source, Reduction reduction, bool include_self, Out out) {
  dim = wrapDim(dim, self.dim());
  Tensor t = startRowMajorFrom(self, out);
  checkWritable(op, t);
  checkScatter(op, t, dim, index, source);
  if (index.numel() == 0) return t;
  const Tensor from = coveredPart(source, index, t), target = atLeast1d(t);
  constexpr unsigned kPlainSums = kFloats | kIntegers | kComplexes;
  if (reduction == Reduction::Sum && include_self && !isReducedFloat(t.dtype()) &&
      t.dtype() != DType::Bool) {
    const IndexedPositions positions(target, dim, atLeast1d(index));
    dispatch<kPlainSums>(op, t.dtype(), [&]<class T>() {
      const T* data = from.data<T>();
      T* to = t.data<T>();
      positions.visitForWriting(
          target, [=](int64_t i, int64_t offset) { to[offset] = wrappedSum(to[offset], data[i]); });
    });
    return t;
  }
  reduceInto(op, t, from, indexedOffsets(target, dim, atLeast1d(index)), reduction, include_self);
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

// Negative indices count from the end; what lies outside stays as it is, for gather to refuse.
Tensor fromStart(const Tensor& indices, int64_t n) {
  Tensor out = indices.to(DType::Long).clone(MemoryFormat::Contiguous);
  for (int64_t& i : out.span<int64_t>()) {
    if (i < 0 && i >= -n) i += n;
  }
  return out;
}

Tensor takeAlongDim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim,
                    Out out) {
  checkIndexDType("torch.take_along_dim()", indices);
  if (!dim)
    return gather(self.flatten(), 0, fromStart(indices.flatten(), self.numel()), false, out);
  int64_t d = wrapDim(*dim, self.dim());
  WICK_CHECK(self.dim() == indices.dim(),
             "torch.take_along_dim(): input and indices should have the same number of dimensions, "
             "but got {} dimensions for input, and {} dimensions for indices",
             self.dim(), indices.dim());
  if (self.dim() == 0) return gather(self, d, fromStart(indices, 1), false, out);
  // All dimensions broadcast but the one that is indexed.
  DimVector a(self.sizes());
  DimVector b(indices.sizes());
  a[d] = b[d] = 1;
  DimVector shape = broadcastShapes(a, b);
  DimVector self_shape = shape;
  DimVector index_shape = shape;
  self_shape[d] = self.sizes()[d];
  index_shape[d] = indices.sizes()[d];
  return gather(self.expand(self_shape), d, fromStart(indices.expand(index_shape), self.sizes()[d]),
                false, out);
}

const OperatorRecord kGatherScatterRecords[] = {
    {"aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
     WICK_KERNEL(gather), kOutForm | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeIndex},
    {"aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
     WICK_KERNEL(takeAlongDim), kOutForm | kOutSame | kRaisesByElements},
    {"aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     WICK_KERNEL(scatterValue), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
    {"aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     WICK_KERNEL(scatterSource), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
    {"aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> "
     "Tensor",
     WICK_KERNEL(scatterReduceMode), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
    {"aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) "
     "-> Tensor",
     WICK_KERNEL(scatterValueReduce), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
    {"aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     WICK_KERNEL(scatterAdd), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
    {"aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
     "include_self=True) -> Tensor",
     WICK_KERNEL(scatterReduce), kBothForms | kRefusesOverlap | kOutSame | kRaisesByElements,
     shapes::likeFirst},
};

const RegisterOperators kGatherScatterRegistered(kGatherScatterRecords);

}  // namespace

}  // namespace wick::ops
