// From dense tensors to sparse ones and back, from one layout to another, copies, dtypes.
#include "core/sparse_form.h"
#include "ir/operator.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/sparse/coordinates.h"

namespace wick::ops::sparse {

namespace {

using OptionalDType = std::optional<DType>;

// The entries of a dense tensor that are not zero; of hybrid ones those with any such element.
Coordinates fromDense(const Tensor& self, int64_t sparse_dim) {
  WICK_CHECK(self.kind() == TensorKind::Dense, "to_sparse: expected a dense tensor, got a {} one",
             toString(self.kind()));
  WICK_CHECK(self.device().isCpu(),
             "to_sparse: sparse tensors exist on the CPU only, got a tensor on {}",
             self.device().str());
  WICK_CHECK(sparse_dim <= self.dim(), "sparse_dim must be less than or equal to self.dim()");
  WICK_CHECK(sparse_dim > 0 || self.dim() == 0, "sparse_dim must be >0 if dimensionality > 0");
  WICK_CHECK(sparse_dim >= 0, "sparse_dim must not be negative, got {}", sparse_dim);
  const auto leading = static_cast<size_t>(sparse_dim);
  DimVector value_sizes{0};
  for (const int64_t s : self.sizes().subspan(leading)) value_sizes.push_back(s);
  if (self.dim() == 0) {
    const Tensor value = self.detach().clone().view(DimVector{1});
    return {Tensor::empty(DimVector{0, 1}, DType::Long), value, DimVector{}, true};
  }
  const int64_t outer = checkedNumel(self.sizes().subspan(0, leading));
  const int64_t inner = checkedNumel(self.sizes().subspan(leading));
  const Tensor rows = self.detach().contiguous().view(DimVector{outer, inner});
  Tensor mask = ops::neScalar(rows, Scalar(int64_t{0}));
  mask = inner == 1 ? mask.view(DimVector{outer}) : ops::anyDim(mask, int64_t{1}, false);
  const Tensor indices =
      nonzeroPositions(mask.contiguous().view(self.sizes().subspan(0, leading))).transpose(0, 1);
  const Tensor at = nonzeroPositions(mask.contiguous()).contiguous().view(DimVector{-1});
  value_sizes[0] = at.numel();
  const Tensor values = ops::indexSelect(rows, int64_t{0}, at).contiguous().view(value_sizes);
  return {indices.contiguous(), values, DimVector(self.sizes()), true};
}

Tensor toSparseDim(const Tensor& self, int64_t sparse_dim) {
  if (self.kind() != TensorKind::Sparse) return toTensor(fromDense(self, sparse_dim));
  const SparseForm& form = sparseFormOf("to_sparse", self);
  if (form.isCoo()) {
    WICK_CHECK(sparse_dim == form.sparse_dim,
               "to_sparse: the tensor has {} sparse dimensions, which cannot become {}",
               form.sparse_dim, sparse_dim);
    return self;
  }
  WICK_CHECK(sparse_dim == 2 && form.batchDim() == 0,
             "sparse dim {} is not supported by sparse_csr_to_dense", sparse_dim);
  return toTensor(coalesce(expandedOf("to_sparse", self)));
}
Tensor toSparse(const Tensor& self) {
  if (self.kind() != TensorKind::Sparse) return toSparseDim(self, self.dim());
  if (isSparseCoo(self)) return self;
  return toTensor(coalesce(expandedOf("to_sparse", self)));
}
// 2.x: the layout by number, and the size of blocks.
Tensor toLayout(const char* op, const Tensor& self, SparseLayout layout, IntSpan block,
                std::optional<int64_t> dense_dim = std::nullopt) {
  WICK_CHECK(dense_dim.value_or(0) == 0,
             "{}: dense dimensions ({}) of compressed layouts are not supported", op,
             dense_dim.value_or(0));
  if (self.kind() != TensorKind::Sparse) {
    WICK_CHECK(self.dim() >= 2, "{}: expected a matrix or a batch of them, got {} dimensions", op,
               self.dim());
    return compress(op, fromDense(self, self.dim()), layout, block);
  }
  const SparseForm& form = sparseFormOf(op, self);
  if (form.layout == layout && !isBlocked(layout)) return self;
  WICK_CHECK(!form.isCoo() || !isBlocked(layout),
             "Conversion from Sparse to {} is currently not supported.", toString(layout));
  return compress(op, expandedOf(op, self), layout, block);
}
Tensor toCsr(const Tensor& self, std::optional<int64_t> dense_dim) {
  return toLayout("to_sparse_csr", self, SparseLayout::Csr, kOne, dense_dim);
}
Tensor toCsc(const Tensor& self, std::optional<int64_t> dense_dim) {
  return toLayout("to_sparse_csc", self, SparseLayout::Csc, kOne, dense_dim);
}
DimVector blockOf(const DimVector& blocksize) {
  WICK_CHECK(blocksize.size() == 1 || blocksize.size() == 2,
             "blocksize needs to be a tuple of size 2, got {}", formatInts(blocksize));
  return blocksize.size() == 2 ? blocksize : DimVector{blocksize[0], blocksize[0]};
}
Tensor toBsr(const Tensor& self, DimVector blocksize, std::optional<int64_t> dense_dim) {
  return toLayout("to_sparse_bsr", self, SparseLayout::Bsr, blockOf(blocksize), dense_dim);
}
Tensor toBsc(const Tensor& self, DimVector blocksize, std::optional<int64_t> dense_dim) {
  return toLayout("to_sparse_bsc", self, SparseLayout::Bsc, blockOf(blocksize), dense_dim);
}

// `masked_grad`: which gradient the derivative gives, in 2.x.
Tensor dense(const Tensor& self, OptionalDType dtype, IValue) {
  if (self.kind() != TensorKind::Sparse) {
    WICK_CHECK(self.kind() == TensorKind::Dense, "to_dense: not available for {} tensors",
               toString(self.kind()));
    return dtype ? self.to(*dtype) : self;
  }
  const Tensor made = toDense(expandedOf("to_dense", self));
  return dtype ? made.to(*dtype) : made;
}

// The gradient of to_dense: of the same layout as its input.
Tensor denseBackward(const Tensor& grad, const Tensor& input, std::optional<bool> masked) {
  if (input.kind() != TensorKind::Sparse) return grad;
  if (!masked.value_or(true)) {
    const SparseForm& form = sparseFormOf("to_dense_backward", input);
    if (form.isCoo()) return toSparseDim(grad, form.sparse_dim);
    WICK_CHECK(!isBlocked(form.layout), "to_dense: no gradient with masked_grad=False for {}",
               toString(form.layout));
    return toLayout("to_dense_backward", grad, form.layout, kOne);
  }
  if (!isSparseCoo(input)) return ops::sparseMask(grad, input);
  return ops::sparseMask(grad, toTensor(coalesce(coordinatesOf("to_dense_backward", input))));
}

// ---- copies ----

Tensor copyOf(const Tensor& t) {
  return t.clone();
}

Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  WICK_CHECK(!format || *format == MemoryFormat::Preserve || *format == MemoryFormat::Contiguous,
             "clone: unsupported memory format option for sparse tensors");
  return mapSparse(self, copyOf, copyOf);
}

Tensor cast(const Tensor& self, OptionalDType dtype, bool copy) {
  if (!copy && (!dtype || *dtype == self.dtype())) return self;
  return mapSparse(self, copyOf,
                   [&](const Tensor& v) { return v.to(dtype.value_or(v.dtype())).clone(); });
}

void checkCpu(const Device& device) {
  WICK_CHECK(device.isCpu(), "to: sparse tensors exist on the CPU only, got device {}",
             device.str());
}
Tensor toDevice(const Tensor& self, Device device, DType dtype, bool, bool copy,
                std::optional<MemoryFormat>) {
  checkCpu(device);
  return cast(self, dtype, copy);
}
Tensor toDTypeOf(const Tensor& self, DType dtype, bool, bool copy, std::optional<MemoryFormat>) {
  return cast(self, dtype, copy);
}
Tensor toOther(const Tensor& self, const Tensor& other, bool, bool copy,
               std::optional<MemoryFormat>) {
  return cast(self, other.dtype(), copy);
}
void checkLayout(const Tensor& self, const IValue& layout) {
  WICK_CHECK(
      layout.isNone() || layout.toInt() == static_cast<int64_t>(sparseFormOf("to", self).layout),
      "to(options) doesn't support converting to a different layout, but got self.layout "
      "being {} and options.layout set as {}",
      layoutName(self), layout.repr());
}
Tensor toOptions(const Tensor& self, OptionalDType dtype, IValue layout,
                 std::optional<Device> device, IValue, bool, bool copy,
                 std::optional<MemoryFormat>) {
  checkLayout(self, layout);
  if (device) checkCpu(*device);
  return cast(self, dtype, copy);
}
Tensor toCopy(const Tensor& self, OptionalDType dtype, IValue layout, std::optional<Device> device,
              IValue, bool, std::optional<MemoryFormat>) {
  checkLayout(self, layout);
  if (device) checkCpu(*device);
  return cast(self, dtype, true);
}
Tensor toDeviceOrNone(const Tensor& self, std::optional<Device> device, OptionalDType dtype, bool,
                      bool copy) {
  if (device) checkCpu(*device);
  return cast(self, dtype, copy);
}
Tensor toDTypeOrNone(const Tensor& self, OptionalDType dtype, bool, bool copy) {
  return cast(self, dtype, copy);
}
Tensor typeAs(const Tensor& self, const Tensor& other) {
  return cast(self, other.dtype(), false);
}
template <DType kDType>
Tensor castTo(const Tensor& self, bool) {
  return cast(self, kDType, false);
}
Tensor same(const Tensor& self) {
  return self;
}
Tensor sameContiguous(const Tensor& self, std::optional<MemoryFormat> format) {
  WICK_CHECK(isSparseCoo(self) && (!format || *format == MemoryFormat::Contiguous),
             "contiguous: not available for tensors of layout {} in this memory format",
             layoutName(self));
  return self;
}

// The destination takes over a copy of what the source consists of, in its own dtype.
Tensor copyInto(const Tensor& self, const Tensor& source, bool) {
  WICK_CHECK(self.kind() == TensorKind::Sparse && source.kind() == TensorKind::Sparse,
             "copy_() between dense and sparse Tensors is not implemented! Found self of layout {} "
             "and src of layout {}",
             layoutName(self), layoutName(source));
  if (self.isSame(source)) return self;
  const SparseForm& to = sparseFormOf("copy_", self);
  const SparseForm& from = sparseFormOf("copy_", source);
  WICK_CHECK(to.layout == from.layout, "copy_: the layouts {} and {} differ", layoutName(self),
             layoutName(source));
  if (!to.isCoo()) {
    WICK_CHECK(
        std::ranges::equal(self.sizes(), source.sizes()),
        "copy_: only sparse compressed tensors of the same size can be copied, got {} and {}",
        formatInts(self.sizes()), formatInts(source.sizes()));
  } else {
    WICK_CHECK(
        to.count() == 0 || to.dense_dim == from.dense_dim,
        "changing the number of dense dimensions (from {} to {}) on a non-empty sparse tensor "
        "is not supported.",
        to.dense_dim, from.dense_dim);
  }
  self.impl()->takeOver(*cast(source, self.dtype(), true).impl());
  return self;
}

Tensor copied(const Tensor& self, const Tensor& source, bool non_blocking) {
  sparseFormOf("copy_sparse_to_sparse", self);
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->takeOver(*self.impl());
  return copyInto(Tensor(std::move(impl)), source, non_blocking);
}

Tensor zero(const Tensor& self) {
  const SparseForm& form = sparseFormOf("zero_", self);
  if (form.isCoo()) return emptyCoo(form.sparse_dim, self.sizes(), self.dtype());
  return makeEmptySparse(form.layout, self.sizes(), self.dtype());
}

// ---- empty ones like others ----

Tensor emptied(const char* op, const Tensor& self, IntSpan sizes, OptionalDType dtype,
               const IValue& layout, std::optional<Device> device) {
  if (device) checkCpu(*device);
  const SparseForm& form = sparseFormOf(op, self);
  const int64_t asked = layout.isNone() ? static_cast<int64_t>(form.layout) : layout.toInt();
  const DType type = dtype.value_or(self.dtype());
  if (asked == 0) return Tensor::zeros(sizes, type);
  WICK_CHECK(isSparseLayout(asked), "{}: there is no layout {}", op, asked);
  if (static_cast<SparseLayout>(asked) == SparseLayout::Coo && form.isCoo() &&
      sizes.size() == self.sizes().size()) {
    return emptyCoo(form.sparse_dim, sizes, type);
  }
  return makeEmptySparse(static_cast<SparseLayout>(asked), sizes, type);
}
Tensor zerosLike(const Tensor& self, OptionalDType dtype, IValue layout,
                 std::optional<Device> device, IValue, std::optional<MemoryFormat>) {
  return emptied("zeros_like", self, self.sizes(), dtype, layout, device);
}
Tensor emptyLike(const Tensor& self, OptionalDType dtype, IValue layout,
                 std::optional<Device> device, IValue, std::optional<MemoryFormat>) {
  const SparseForm& form = sparseFormOf("empty_like", self);
  const bool same_layout = layout.isNone() || layout.toInt() == static_cast<int64_t>(form.layout);
  if (form.isCoo() || !same_layout) {
    return emptied("empty_like", self, self.sizes(), dtype, layout, device);
  }
  // Of compressed ones the places stay.
  return mapSparse(self, copyOf, [&](const Tensor& v) {
    return Tensor::zeros(v.sizes(), dtype.value_or(v.dtype()));
  });
}
Tensor newOf(const Tensor& self, DimVector size, OptionalDType dtype, IValue layout,
             std::optional<Device> device, IValue) {
  return emptied("new_zeros", self, size, dtype, layout, device);
}

constexpr OperatorRecord kConversionsRecords[] = {
    {"aten::to_sparse(Tensor self) -> Tensor", WICK_KERNEL(toSparse), kAnyKind},
    {"aten::to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor", WICK_KERNEL(toSparseDim),
     kAnyKind},
    {"aten::to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor", WICK_KERNEL(toCsr),
     kAnyKind},
    {"aten::to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor", WICK_KERNEL(toCsc),
     kAnyKind},
    {"aten::to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
     WICK_KERNEL(toBsr), kAnyKind},
    {"aten::to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor",
     WICK_KERNEL(toBsc), kAnyKind},
    {"aten::_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor",
     WICK_KERNEL(dense), kAnyKind},
    {"aten::to_dense_backward(Tensor grad, Tensor input, bool? masked_grad=None) -> Tensor",
     WICK_KERNEL(denseBackward), kAnyKind},
    {"aten::copy_sparse_to_sparse(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(copied), kAnyKind | kOutForm},
    {"aten::copy_sparse_to_sparse_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> "
     "Tensor(a!)",
     WICK_KERNEL(copyInto), kAnyKind},
};
const RegisterOperators kConversionsRegistered(kConversionsRecords);

constexpr KindKernel kConversionsKernels[] = {
    {"aten::to_dense", WICK_KERNEL(dense)},
    {"aten::clone", WICK_KERNEL(clone)},
    {"aten::to.device", WICK_KERNEL(toDevice)},
    {"aten::to.dtype", WICK_KERNEL(toDTypeOf)},
    {"aten::to.other", WICK_KERNEL(toOther)},
    {"aten::to.dtype_layout", WICK_KERNEL(toOptions)},
    {"aten::to.prim_Device", WICK_KERNEL(toDeviceOrNone)},
    {"aten::to.prim_dtype", WICK_KERNEL(toDTypeOrNone)},
    {"aten::_to_copy", WICK_KERNEL(toCopy)},
    {"aten::type_as", WICK_KERNEL(typeAs)},
    {"aten::_cast_Byte", WICK_KERNEL(castTo<DType::Byte>)},
    {"aten::_cast_Char", WICK_KERNEL(castTo<DType::Char>)},
    {"aten::_cast_Double", WICK_KERNEL(castTo<DType::Double>)},
    {"aten::_cast_Float", WICK_KERNEL(castTo<DType::Float>)},
    {"aten::_cast_Int", WICK_KERNEL(castTo<DType::Int>)},
    {"aten::_cast_Long", WICK_KERNEL(castTo<DType::Long>)},
    {"aten::_cast_Short", WICK_KERNEL(castTo<DType::Short>)},
    {"aten::_cast_Half", WICK_KERNEL(castTo<DType::Half>)},
    {"aten::cpu", WICK_KERNEL(same)},
    {"aten::contiguous", WICK_KERNEL(sameContiguous)},
    {"aten::copy_", WICK_KERNEL(copyInto)},
    {"aten::zero", WICK_KERNEL(zero)},
    {"aten::zeros_like", WICK_KERNEL(zerosLike)},
    {"aten::empty_like", WICK_KERNEL(emptyLike)},
    {"aten::new_zeros", WICK_KERNEL(newOf)},
    {"aten::new_empty", WICK_KERNEL(newOf)},
};
const RegisterKindKernels kConversionsKernelsRegistered(TensorKind::Sparse, kConversionsKernels);

}  // namespace

}  // namespace wick::ops::sparse
