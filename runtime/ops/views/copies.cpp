// Operators that copy or convert whole tensors, and those that re-seat a tensor's storage.
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/memory_overlap.h"
#include "core/pinned_memory.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/ops/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

// The conversion behind every form of `to`: the tensor itself when nothing changes and no copy is
// asked for. `unwaited`: copies from and to pinned memory are not waited for.
Tensor convertTensor(const Tensor& self, std::optional<DType> dtype, std::optional<Device> device,
                     bool unwaited, bool copy, std::optional<MemoryFormat> format) {
  const Device place = device ? placeOf(deviceFor(device)) : self.device();
  const bool moves = place != self.device();
  // "cpu:0" is no other place, but as PyTorch compares devices it is another, and so a copy.
  copy |= moves || (device && device->isCpu() && *device != self.device());
  const DType target = dtype.value_or(self.dtype());
  const MemoryFormat layout = format.value_or(MemoryFormat::Preserve);
  // PyTorch asks which format the strides suggest: gaps between elements do not matter.
  const bool right_layout =
      layout == MemoryFormat::Preserve || self.suggestMemoryFormat() == layout;
  if (!copy && target == self.dtype() && right_layout) return self;
  // What comes to the CPU without being waited for cannot be converted there.
  const bool arrives = unwaited && moves && place.isCpu() && right_layout;
  // Elements are converted where they are fewer bytes on their way.
  const bool first = arrives || itemSize(target) < self.itemSize();
  const bool waits = !unwaited || (place.isCpu() && !arrives);
  const Tensor from = moves && first ? self.to(target) : self;
  Tensor t = !moves ? self : waits ? moveTo(from, place) : moveUnwaited(from, place);
  if (moves && t.dtype() == target &&
      (layout == MemoryFormat::Preserve || t.isContiguous(layout))) {
    return t;
  }
  Tensor out = Tensor::emptyLike(t, target, layout);
  out.copyFrom(t);
  return out;
}

Tensor toDeviceDType(const Tensor& self, Device device, DType dtype, bool unwaited, bool copy,
                     std::optional<MemoryFormat> format) {
  return convertTensor(self, dtype, device, unwaited, copy, format);
}
Tensor toDType(const Tensor& self, DType dtype, bool, bool copy,
               std::optional<MemoryFormat> format) {
  return convertTensor(self, dtype, std::nullopt, false, copy, format);
}
Tensor toOther(const Tensor& self, const Tensor& other, bool unwaited, bool copy,
               std::optional<MemoryFormat> format) {
  return convertTensor(self, other.dtype(), other.device(), unwaited, copy, format);
}
Tensor toOptions(const Tensor& self, TensorOptions options, bool unwaited, bool copy,
                 std::optional<MemoryFormat> format) {
  return convertTensor(self, options.dtype, options.device, unwaited, copy, format);
}
Tensor toPrimDevice(const Tensor& self, std::optional<Device> device, std::optional<DType> dtype,
                    bool unwaited, bool copy) {
  return convertTensor(self, dtype, device, unwaited, copy, std::nullopt);
}
Tensor toPrimDType(const Tensor& self, std::optional<DType> dtype, bool, bool copy) {
  return convertTensor(self, dtype, std::nullopt, false, copy, std::nullopt);
}
Tensor toPrimOther(const Tensor& self, bool, bool copy) {
  return convertTensor(self, std::nullopt, std::nullopt, false, copy, std::nullopt);
}
Tensor toCopy(const Tensor& self, TensorOptions options, bool unwaited,
              std::optional<MemoryFormat> format) {
  return convertTensor(self, options.dtype, options.device, unwaited, true, format);
}
Tensor typeAs(const Tensor& self, const Tensor& other) {
  return convertTensor(self, other.dtype(), other.device(), false, false, std::nullopt);
}
Tensor cpu(const Tensor& self) {
  return moveTo(self, Device{DeviceType::CPU, -1});
}
Tensor cuda(const Tensor& self) {
  return moveTo(self, Device{DeviceType::CUDA, -1});
}

// The operators _cast_Byte, _cast_Char, …, which old programs call.
template <DType kTo>
Tensor castTo(const Tensor& self, bool) {
  return self.to(kTo);
}
Tensor contiguous(const Tensor& self, MemoryFormat format) {
  return self.contiguous(format);
}
Tensor clone(const Tensor& self, std::optional<MemoryFormat> format) {
  return self.clone(format.value_or(MemoryFormat::Preserve));
}
Tensor itself(const Tensor& self) {
  return self;
}
Tensor pinMemory(const Tensor& self, std::optional<Device>) {
  return pinned(self);
}
Tensor freshCopy(const Tensor& self) {
  return self.clone();
}

Tensor copyInplace(const Tensor& self, const Tensor& source, bool non_blocking) {
  markWritten("copy_", self);
  checkNoPartialOverlap(self, source);
  const UnwaitedCopies unwaited(non_blocking);
  self.copyFrom(source);
  return self;
}
Tensor copyTensor(const Tensor& self, const Tensor& other) {
  return copyInplace(self, other, false);
}
Tensor copyNumber(const Tensor& self, Scalar other) {
  markWritten("copy_", self);
  return fillWith(self, other);
}

Tensor resize(const Tensor& self, DimVector size, std::optional<MemoryFormat> format) {
  markWritten("resize_", self);
  WICK_CHECK(format.value_or(MemoryFormat::Contiguous) != MemoryFormat::Preserve,
             "resize_: unsupported memory format Preserve");
  resizeTo(self, size);
  if (format && !self.isContiguous(*format)) {
    self.impl()->place(self.storage(), self.dtype(), size, formatStrides(size, *format),
                       self.offset());
  }
  return self;
}
Tensor resizeAs(const Tensor& self, const Tensor& other, std::optional<MemoryFormat> format) {
  if (format == MemoryFormat::Preserve) format = other.suggestMemoryFormat();
  return resize(self, DimVector(other.sizes()), format);
}

Tensor reseat(const Tensor& self, Ref<Storage> storage, IntSpan sizes, IntSpan strides,
              int64_t offset) {
  self.impl()->place(std::move(storage), self.dtype(), DimVector(sizes), DimVector(strides),
                     offset);
  return self;
}
Tensor setEmpty(const Tensor& self) {
  return reseat(self, Storage::allocate(0, self.device()), DimVector{0}, DimVector{1}, 0);
}
void checkSameDType(const Tensor& self, const Tensor& source) {
  WICK_CHECK(self.dtype() == source.dtype(), "set_: expected a source of dtype {}, got {}",
             toString(self.dtype()), toString(source.dtype()));
}
Tensor setTensor(const Tensor& self, const Tensor& source) {
  checkSameDType(self, source);
  return reseat(self, source.storage(), source.sizes(), source.strides(), source.offset());
}
Tensor setTensorOffset(const Tensor& self, const Tensor& source, int64_t offset, DimVector size,
                       DimVector stride) {
  checkSameDType(self, source);
  if (stride.empty()) stride = contiguousStrides(size);
  return reseat(self, source.storage(), size, stride, offset);
}
void setData(const Tensor& self, const Tensor& data) {
  self.impl()->place(data.storage(), data.dtype(), DimVector(data.sizes()),
                     DimVector(data.strides()), data.offset());
}

// The form without side effects: a tensor of the source's memory.
Tensor seated(const Tensor& self, const Tensor& source) {
  checkSameDType(self, source);
  return source.clone();
}

const OperatorRecord kCopiesRecords[] = {
    {"aten::set.source_Tensor(Tensor self, Tensor source) -> Tensor", WICK_KERNEL(seated),
     kNeutral},
    {"aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, "
     "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
     WICK_KERNEL(toDeviceDType), kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     WICK_KERNEL(toDType), kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     WICK_KERNEL(toOther), kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor(a)",
     WICK_KERNEL(toOptions), kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool "
     "non_blocking=False, bool copy=False) -> Tensor(b|a)",
     WICK_KERNEL(toPrimDevice), kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool "
     "copy=False) -> Tensor(b|a)",
     WICK_KERNEL(toPrimDType), kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> "
     "Tensor(b|a)",
     WICK_KERNEL(toPrimOther), kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? "
     "memory_format=None) -> Tensor",
     WICK_KERNEL(toCopy), kNeutralMixed, shapes::converted},
    {"aten::_cast_Byte(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Byte>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Byte>},
    {"aten::_cast_Char(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Char>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Char>},
    {"aten::_cast_Double(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Double>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Double>},
    {"aten::_cast_Float(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Float>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Float>},
    {"aten::_cast_Int(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Int>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Int>},
    {"aten::_cast_Long(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Long>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Long>},
    {"aten::_cast_Short(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Short>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Short>},
    {"aten::_cast_Half(Tensor self, bool non_blocking=False) -> Tensor",
     WICK_KERNEL(castTo<DType::Half>), kMayReturnArgument | kNeutral,
     shapes::convertedTo<DType::Half>},
    {"aten::type_as(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(typeAs),
     kMayReturnArgument | kNeutralMixed | kSavesNothing, shapes::converted},
    {"aten::cpu(Tensor(a) self) -> Tensor(b|a)", WICK_KERNEL(cpu), kNeutralMixed, shapes::onCpu},
    {"aten::cuda(Tensor(a) self) -> Tensor(b|a)", WICK_KERNEL(cuda), kNeutralMixed},
    {"aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
     WICK_KERNEL(contiguous), kSavesNothing | kRowMajor | kMayCopy, shapes::likeFirst},
    {"aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", WICK_KERNEL(clone),
     kOutForm | kOutAny | kNeutral | kSavesNothing, shapes::likeFirst},
    {"aten::lift(Tensor self) -> Tensor", WICK_KERNEL(itself), kOutForm | kNeutral,
     shapes::likeFirst},
    {"aten::lift_fresh(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(itself), kNoFlags,
     shapes::likeFirst},
    {"aten::lift_fresh_copy(Tensor self) -> Tensor", WICK_KERNEL(freshCopy), kOutForm | kNeutral,
     shapes::likeFirst},
    {"aten::resolve_conj(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(itself), kNoFlags,
     shapes::likeFirst},
    {"aten::resolve_neg(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(itself), kNoFlags,
     shapes::likeFirst},
    {"aten::pin_memory(Tensor(a) self, Device? device=None) -> Tensor(a)", WICK_KERNEL(pinMemory),
     kNoFlags, shapes::likeFirst},
    {"aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
     WICK_KERNEL(copyInplace), kNeutralMixed | kSavesNothing},
    {"aten::copy_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", WICK_KERNEL(copyTensor),
     kNeutralMixed | kSavesNothing},
    {"aten::copy_.int(Tensor(a!) self, int other) -> Tensor(a!)", WICK_KERNEL(copyNumber),
     kNeutral | kSavesNothing},
    {"aten::copy_.float(Tensor(a!) self, float other) -> Tensor(a!)", WICK_KERNEL(copyNumber),
     kNeutral | kSavesNothing},
    {"aten::resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> "
     "Tensor(a!)",
     WICK_KERNEL(resize), kChangesMetadata | kNeutral | kReadsStrides},
    {"aten::resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) "
     "-> Tensor(a!)",
     WICK_KERNEL(resizeAs), kChangesMetadata | kNeutralMixed},
    {"aten::set_(Tensor(a!) self) -> Tensor(a!)", WICK_KERNEL(setEmpty),
     kChangesMetadata | kNeutralMixed | kReadsStrides},
    {"aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)",
     WICK_KERNEL(setTensor), kChangesMetadata | kNeutralMixed | kReadsStrides},
    {"aten::set_.source_Tensor_storage_offset(Tensor(a!) self, Tensor source, int storage_offset, "
     "int[] size, int[] stride=[]) -> Tensor(a!)",
     WICK_KERNEL(setTensorOffset), kChangesMetadata | kNeutralMixed | kReadsStrides},
    {"aten::set_data(Tensor(a!) self, Tensor new_data) -> ()", WICK_KERNEL(setData),
     kNotDifferentiable | kChangesMetadata | kNeutralMixed},
};

const RegisterOperators kCopiesRegistered(kCopiesRecords);

}  // namespace

}  // namespace wick::ops
