// Views and copies of nested tensors, parts of them, sums over rows.

#include "runtime/ops/common_calls.h"
#include "runtime/ops/nested/nested.h"

namespace wick::ops::nested {

namespace {

std::vector<Tensor> unbind(const Tensor& self, int64_t d) {
  const int64_t dim = wrapDim(d, self.dim());
  WICK_CHECK(dim == 0,
             "unbind: NestedTensor can only be unbound along dimension 0 got dimension {} instead.",
             dim);
  std::vector<Tensor> parts;
  for (const Tensor& part : nestedFormOf("unbind", self).parts) parts.push_back(part.detach());
  return parts;
}

Tensor select(const Tensor& self, int64_t d, int64_t index) {
  const int64_t dim = wrapDim(d, self.dim());
  WICK_CHECK(
      dim == 0,
      "select: NestedTensor can only be selected along dimension 0 got dimension {} instead.", dim);
  const NestedForm& form = nestedFormOf("select", self);
  const auto count = static_cast<int64_t>(form.parts.size());
  WICK_CHECK(index >= -count && index < count,
             "select: index {} is out of bounds for dimension 0 with size {}", index, count);
  return form.parts[static_cast<size_t>(index < 0 ? index + count : index)].detach();
}

Tensor transpose(const Tensor& self, int64_t first, int64_t second) {
  const int64_t a = wrapDim(first, self.dim()), b = wrapDim(second, self.dim());
  if (a == b) return self.detach();
  WICK_CHECK(a != 0 && b != 0, "transpose: Nested tensor dimension 0 cannot be transposed");
  return mapParts("transpose", self,
                  [&](const Tensor& part) { return part.transpose(a - 1, b - 1); });
}

// -1 is the old size where there is one, behind these what is left.
DimVector sizesOfPart(const char* op, const Tensor& part, const DimVector& wanted) {
  DimVector sizes;
  for (size_t d = 1; d < wanted.size(); ++d) {
    const bool old = wanted[d] == -1 && d <= part.sizes().size();
    sizes.push_back(old ? part.sizes()[d - 1] : wanted[d]);
  }
  try {
    return inferSize(sizes, part.numel());
  } catch (const RuntimeError&) {
    throwRuntimeError("{}: shape '{}' is invalid for input of size {}", op, formatInts(wanted),
                      part.numel());
  }
}

template <bool kMayCopy>
Tensor reshaped(const Tensor& self, const DimVector& sizes) {
  const char* op = kMayCopy ? "reshape" : "view";
  const NestedForm& form = nestedFormOf(op, self);
  WICK_CHECK(!form.parts.empty(), "{}: a nested tensor without parts has no sizes to change", op);
  WICK_CHECK(sizes.size() >= 2, "{}: expected two or more sizes, got {}", op, formatInts(sizes));
  WICK_CHECK(sizes[0] == self.size(0),
             "{}: For now nested {} cannot change or infer the implicit batch dimension", op, op);
  return mapParts(op, self, [&](const Tensor& part) {
    const DimVector own = sizesOfPart(op, part, sizes);
    return kMayCopy ? part.reshape(own) : part.view(own);
  });
}

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  WICK_CHECK(format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve,
             "contiguous: nested tensors have no other memory format");
  return packed("contiguous", self);
}

// A copy whose parts lie one behind the other.
Tensor clone(const Tensor& self, std::optional<MemoryFormat>) {
  const NestedForm& form = nestedFormOf("clone", self);
  if (!form.isPacked()) return packed("clone", self);
  return makePackedNested(form.buffer.clone(), sizesOfParts(form));
}

Tensor detach(const Tensor& self) {
  return self.detach();
}

Tensor copyInto(const Tensor& self, const Tensor& source, bool) {
  WICK_CHECK(isNested(self) && isNested(source) && sameNestedSizes(self, source),
             "copy_: expected nested tensors of the same sizes");
  const NestedForm& to = nestedFormOf("copy_", self);
  const NestedForm& from = nestedFormOf("copy_", source);
  for (size_t i = 0; i < to.parts.size(); ++i) to.parts[i].copyFrom(from.parts[i]);
  return self;
}

// ---- factories ----

Tensor filledLike(const Tensor& self, const TensorOptions& options, double value) {
  const NestedForm& form = nestedFormOf("full_like", self);
  return makePackedNested(
      Tensor::full(DimVector{self.numel()}, value, options.dtypeOr(self.dtype())),
      sizesOfParts(form));
}
Tensor zerosLike(const Tensor& self, const TensorOptions& options, std::optional<MemoryFormat>) {
  return filledLike(self, options, 0);
}
Tensor onesLike(const Tensor& self, const TensorOptions& options, std::optional<MemoryFormat>) {
  return filledLike(self, options, 1);
}

// ---- sums ----

Tensor sum(const Tensor& self, const std::optional<DimVector>& dims, bool keepdim,
           std::optional<DType> dtype) {
  const char* op = "sum";
  WICK_CHECK(keepdim, "{}: NestedTensor always requires keepdim=True for now.", op);
  WICK_CHECK(!dtype || *dtype == self.dtype(), "{}: NestedTensor does not support dtype argument.",
             op);
  WICK_CHECK(dims && dims->size() == 1,
             "{}: NestedTensor only allows reduction of a single "
             "dimension for now.",
             op);
  const int64_t dim = wrapDim((*dims)[0], self.dim());
  WICK_CHECK(dim == self.dim() - 1 && dim > 0,
             "{}: NestedTensor can only be reduced across the last dimension for now got dimension "
             "{} instead.",
             op, dim);
  return packed(op, mapParts(op, self, [](const Tensor& part) {
                  return ops::sumDims(part, DimVector{-1}, true);
                }));
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding, bool scale,
                 bool sparse) {
  static const OperatorHandle kEmbedding{"aten::embedding", ""};
  WICK_CHECK(!isNested(weight), "embedding: expected a dense weight");
  return packed("embedding", mapParts("embedding", indices, [&](const Tensor& part) {
                  return kEmbedding(weight, part, padding, scale, sparse);
                }));
}

constexpr KindKernel kShapesKernels[] = {
    {"aten::unbind.int", WICK_KERNEL(unbind)},
    {"aten::select.int", WICK_KERNEL(select)},
    {"aten::transpose.int", WICK_KERNEL(transpose)},
    {"aten::reshape", WICK_KERNEL(reshaped<true>)},
    {"aten::view", WICK_KERNEL(reshaped<false>)},
    {"aten::contiguous", WICK_KERNEL(contiguous)},
    {"aten::clone", WICK_KERNEL(clone)},
    {"aten::detach", WICK_KERNEL(detach)},
    {"aten::copy_", WICK_KERNEL(copyInto)},
    {"aten::zeros_like", WICK_KERNEL(zerosLike)},
    {"aten::ones_like", WICK_KERNEL(onesLike)},
    {"aten::sum.dim_IntList", WICK_KERNEL(sum)},
    {"aten::embedding", WICK_KERNEL(embedding)},
};
const RegisterKindKernels kShapesKernelsRegistered(TensorKind::Nested, kShapesKernels);

}  // namespace

}  // namespace wick::ops::nested
