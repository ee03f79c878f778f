// Operators that answer questions about a tensor or a dtype.
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/pinned_memory.h"
#include "runtime/ops/common.h"
#include "runtime/ops/promotion.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

int64_t numel(const Tensor& t) {
  return t.numel();
}
int64_t dim(const Tensor& t) {
  return t.dim();
}
DimVector size(const Tensor& t) {
  return DimVector(t.sizes());
}
int64_t sizeAt(const Tensor& t, int64_t d) {
  WICK_CHECK(t.dim() > 0, "Dimension specified as {} but tensor has no dimensions", d);
  return t.size(d);
}
DimVector stride(const Tensor& t) {
  return DimVector(t.strides());
}
int64_t strideAt(const Tensor& t, int64_t d) {
  WICK_CHECK(t.dim() > 0, "Dimension specified as {} but tensor has no dimensions", d);
  return t.stride(d);
}
int64_t elementSize(const Tensor& t) {
  return static_cast<int64_t>(t.itemSize());
}
int64_t length(const Tensor& t) {
  WICK_CHECK(t.dim() > 0, "len() of a 0-d tensor");
  return t.sizes()[0];
}
int64_t deviceIndex(const Tensor& t) {
  return t.device().isCpu() ? -1 : std::max<int64_t>(t.device().index, 0);
}
Tensor shapeAsTensor(const Tensor& t) {
  return Tensor::fromData(t.sizes().data(), DimVector{t.dim()});
}

bool isContiguous(const Tensor& t) {
  return t.isContiguous();
}
bool isSigned(const Tensor& t) {
  return t.dtype() != DType::Byte && t.dtype() != DType::Bool;
}
bool isSameSize(const Tensor& a, const Tensor& b) {
  return std::ranges::equal(a.sizes(), b.sizes());
}
bool isSetTo(const Tensor& a, const Tensor& b) {
  return a.sharesStorage(b) && a.offset() == b.offset() && isSameSize(a, b) &&
         std::ranges::equal(a.strides(), b.strides());
}
// Conjugation and negation are never deferred here.
Scalar item(const Tensor& t) {
  return Scalar::fromIValue(IValue(t));
}
bool isNonzero(const Tensor& t) {
  WICK_CHECK(t.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  WICK_CHECK(t.numel() < 2, "Boolean value of Tensor with more than one value is ambiguous");
  return t.item<bool>();
}

bool equal(const Tensor& a, const Tensor& b) {
  if (!isSameSize(a, b)) return false;
  DType common = promoteTypes(a.dtype(), b.dtype());
  Tensor x = moveTo(a.to(common), Device()).contiguous();
  Tensor y = moveTo(b.to(common), Device()).contiguous();
  return dispatchAll(x.dtype(), [&]<class T>() {
    return std::equal(x.data<T>(), x.data<T>() + x.numel(), y.data<T>());
  });
}

const OperatorRecord kInfoRecords[] = {
    {"aten::numel(Tensor self) -> int", WICK_KERNEL(numel),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::dim(Tensor self) -> int", WICK_KERNEL(dim),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::size.int(Tensor self, int dim) -> int", WICK_KERNEL(sizeAt),
     kNotDifferentiable | kAnyKind | kNeutralMixed | kSavesNothing},
    {"aten::size(Tensor self) -> int[]", WICK_KERNEL(size),
     kNotDifferentiable | kAnyKind | kNeutralMixed | kSavesNothing},
    {"aten::stride.int(Tensor self, int dim) -> int", WICK_KERNEL(strideAt),
     kNotDifferentiable | kNeutralMixed | kReadsStrides},
    {"aten::stride(Tensor self) -> int[]", WICK_KERNEL(stride),
     kNotDifferentiable | kNeutralMixed | kReadsStrides},
    {"aten::storage_offset(Tensor self) -> int",
     WICK_LAMBDA([](const Tensor& t) -> int64_t { return t.offset(); }),
     kNotDifferentiable | kNeutralMixed | kReadsStrides},
    {"aten::element_size(Tensor self) -> int", WICK_KERNEL(elementSize),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::len.Tensor(Tensor t) -> int", WICK_KERNEL(length),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::get_device(Tensor self) -> int", WICK_KERNEL(deviceIndex),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::_shape_as_tensor(Tensor self) -> Tensor", WICK_KERNEL(shapeAsTensor),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_contiguous(Tensor self) -> bool", WICK_KERNEL(isContiguous),
     kNotDifferentiable | kNeutralMixed | kReadsStrides},
    {"aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
     WICK_LAMBDA([](const Tensor& t, MemoryFormat format) { return t.isContiguous(format); }),
     kNotDifferentiable | kNeutralMixed | kReadsStrides},
    {"aten::is_non_overlapping_and_dense(Tensor self) -> bool",
     WICK_LAMBDA([](const Tensor& t) { return t.isNonOverlappingAndDense(); }),
     kNotDifferentiable | kNeutralMixed},
    {"aten::is_floating_point(Tensor self) -> bool",
     WICK_LAMBDA([](const Tensor& t) { return isFloating(t.dtype()); }),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_complex(Tensor self) -> bool",
     WICK_LAMBDA([](const Tensor& t) { return isComplex(t.dtype()); }),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_signed(Tensor self) -> bool", WICK_KERNEL(isSigned),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_same_size(Tensor self, Tensor other) -> bool", WICK_KERNEL(isSameSize),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_set_to(Tensor self, Tensor tensor) -> bool", WICK_KERNEL(isSetTo),
     kNotDifferentiable | kNeutralMixed},
    {"aten::is_conj(Tensor self) -> bool", WICK_KERNEL(never),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_neg(Tensor self) -> bool", WICK_KERNEL(never),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_inference(Tensor self) -> bool", WICK_KERNEL(never),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::is_coalesced(Tensor self) -> bool", WICK_KERNEL(never),
     kNotDifferentiable | kNeutralMixed},
    {"aten::is_pinned(Tensor self, Device? device=None) -> bool",
     WICK_LAMBDA([](const Tensor& t, std::optional<Device>) { return isPinned(t); }),
     kNotDifferentiable | kNeutralMixed},
    {"aten::is_nonzero(Tensor self) -> bool", WICK_KERNEL(isNonzero),
     kNotDifferentiable | kNeutralMixed},
    {"aten::item(Tensor self) -> Scalar", WICK_KERNEL(item), kNotDifferentiable | kNeutralMixed},
    {"aten::_local_scalar_dense(Tensor self) -> Scalar", WICK_KERNEL(item),
     kNotDifferentiable | kNeutralMixed},
    {"aten::equal(Tensor self, Tensor other) -> bool", WICK_KERNEL(equal),
     kNotDifferentiable | kNeutralMixed | kCastWidest},
    {"aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
     WICK_LAMBDA([](const Tensor& a, const Tensor& b) { return commonDType(a, b); }),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
     WICK_LAMBDA([](const Tensor& a, Scalar b) { return commonDType(a, b); }),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
     WICK_LAMBDA([](Scalar a, const Tensor& b) { return commonDType(a, b); }),
     kNotDifferentiable | kAnyKind | kNeutralMixed},
    {"aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType",
     WICK_LAMBDA([](Scalar a, Scalar b) { return commonDType(a, b); }), kNotDifferentiable},
    {"aten::can_cast(ScalarType from, ScalarType to) -> bool",
     WICK_LAMBDA([](DType from, DType to) { return canCast(from, to); }), kNotDifferentiable},
    {"aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
     WICK_LAMBDA([](DType a, DType b) { return promoteTypes(a, b); }), kNotDifferentiable},
};

const RegisterOperators kInfoRegistered(kInfoRecords);

}  // namespace

}  // namespace wick::ops
