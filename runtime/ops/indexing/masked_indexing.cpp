// Indexing as PyTorch's compiler asks for it: indices that may lie outside where a mask says that
// nobody looks, and as many indices of non-zero elements as the caller wants. "Unsafe" says there
// that bounds are not checked; here they are.
#include "core/convert.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

const OperatorHandle kIndexPut{"aten::index_put", ""};

// A list with None for what is undefined, as `Tensor?[]` takes it.
IValue listOf(const std::vector<Tensor>& tensors) {
  return IValue(makeTensorList(tensors));
}

Tensor unsafeIndex(const Tensor& self, std::vector<Tensor> indices) {
  return ops::index(self, listOf(indices));
}
Tensor unsafeIndexPut(const Tensor& self, std::vector<Tensor> indices, const Tensor& values,
                      bool accumulate) {
  return kIndexPut(self, listOf(indices), values, accumulate);
}

std::vector<Tensor> clamped(const char* op, const Tensor& self,
                            const std::vector<Tensor>& indices) {
  WICK_CHECK(static_cast<int64_t>(indices.size()) <= self.dim(),
             "{}: too many indices for tensor of dimension {} (got {})", op, self.dim(),
             indices.size());
  std::vector<Tensor> out;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Tensor& index = indices[d];
    if (!index.defined()) {
      out.emplace_back();
      continue;
    }
    WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
               "{}: expected indices of dtype int32 or int64, got {}", op, toString(index.dtype()));
    const int64_t n = self.sizes()[d];
    out.push_back(ops::clamp(index, Scalar(-n), Scalar(n - 1)));
  }
  return out;
}

Tensor unsafeMaskedIndex(const Tensor& self, const Tensor& mask, std::vector<Tensor> indices,
                         const Scalar& fill) {
  const char* op = "_unsafe_masked_index";
  const std::vector<Tensor> places = clamped(op, self, indices);
  if (self.numel() == 0) {
    DimVector sizes(self.sizes());
    for (int64_t& s : sizes) s = std::max<int64_t>(s, 1);
    const Tensor number = fillWith(Tensor::empty({}, self.dtype(), self.device()), fill);
    const Tensor filled = number.expand(sizes);
    return ops::index(filled, listOf(places));
  }
  return maskedFill(ops::index(self, listOf(places)), ops::logicalNot(mask), fill);
}

Tensor unsafeMaskedPut(const Tensor& self, const Tensor& mask, std::vector<Tensor> indices,
                       const Tensor& values) {
  const char* op = "_unsafe_masked_index_put_accumulate";
  const std::vector<Tensor> places = clamped(op, self, indices);
  if (self.numel() == 0) return self.clone();
  return kIndexPut(self, listOf(places), maskedFill(values, ops::logicalNot(mask), Scalar(0)),
                   true);
}

// The first `size` places, and rows of `fill_value` where there are fewer.
Tensor nonzeroStatic(const Tensor& self, int64_t size, int64_t fill_value) {
  WICK_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer, got {}", size);
  const Tensor places = ops::nonzero(self);
  Tensor out = Tensor::empty(DimVector{size, self.dim()}, DType::Long, self.device());
  const int64_t found = std::min(size, places.size(0));
  out.narrow(0, 0, found).copyFrom(places.narrow(0, 0, found));
  fillWith(out.narrow(0, found, size - found), Scalar(fill_value));
  return out;
}

const OperatorRecord kMaskedIndexingRecords[] = {
    {"aten::_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
     WICK_KERNEL(unsafeIndex), kNoFlags, shapes::indexed},
    {"aten::_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
     "accumulate=False) -> Tensor",
     WICK_KERNEL(unsafeIndexPut), kNoFlags, shapes::likeFirst},
    {"aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> "
     "Tensor",
     WICK_KERNEL(unsafeMaskedIndex), kNeutral},
    {"aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
     "Tensor values) -> Tensor",
     WICK_KERNEL(unsafeMaskedPut), kNeutral, shapes::likeFirst},
    {"aten::nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
     WICK_KERNEL(nonzeroStatic), kNotDifferentiable | kOutForm | kNeutral},
};

const RegisterOperators kMaskedIndexingRegistered(kMaskedIndexingRecords);

}  // namespace

}  // namespace wick::ops
