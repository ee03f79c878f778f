// Operators of dense tensors that quantized ones have too: views, copies, whatever moves or orders
// elements, writes, comparisons, averages and interpolation.
#include "ir/kind_kernels.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/quantized/through.h"

namespace wick::ops::quantized {

namespace {

int64_t rounded(const Tensor& like, const Scalar& value) {
  return Rounding(gridOf(perTensorQuantizerOf("quantize", like)),
                  like.dtype())(static_cast<float>(value.toDouble()));
}

Tensor copy(const Tensor& self, const Tensor& source, const IValue&) {
  copyInto("copy_", self, source);
  return self;
}

Tensor fill(const Tensor& self, const Scalar& value) {
  markWritten("fill_", self);
  fillWith(integersOf(self), Scalar(rounded(self, value)));
  return self;
}
Tensor fillTensor(const Tensor& self, const Tensor& value) {
  WICK_CHECK(value.dim() == 0,
             "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
             value.dim());
  return fill(self, Scalar(isQuantized(value) ? dequantize("fill_", value).item<double>()
                                              : value.item<double>()));
}

Tensor maskedFillInto(const Tensor& self, const Tensor& mask, const Scalar& value) {
  markWritten("masked_fill_", self);
  ops::maskedFillInto(integersOf(self), mask, Scalar(rounded(self, value)));
  return self;
}
Tensor maskedFillTensorInto(const Tensor& self, const Tensor& mask, const Tensor& value) {
  WICK_CHECK(value.dim() == 0,
             "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
             "dimension(s).",
             value.dim());
  return maskedFillInto(self, mask, Scalar(value.item<double>()));
}
Tensor maskedFill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  return maskedFillInto(clone(self), mask, value);
}
Tensor maskedFillTensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  return maskedFillTensorInto(clone(self), mask, value);
}

// Values are dense ones, rounded to the tensor's grid, or of its own grid already.
Tensor indexPutInto(const Tensor& self, const IValue& indices, const Tensor& values,
                    bool accumulate) {
  const char* op = "index_put_";
  const Quantizer& quantizer = perTensorQuantizerOf(op, self);
  WICK_CHECK(!accumulate,
             "{} for quantized tensors is currently only supported for "
             "accumulate=False",
             op);
  const Tensor real = isQuantized(values) ? dequantize(op, values) : values;
  const Tensor q = quantize(op, real.to(DType::Float), gridOf(quantizer), self.dtype());
  markWritten(op, self);
  ops::indexPutInto(integersOf(self), indices, integersOf(q), false);
  return self;
}
Tensor indexPut(const Tensor& self, const IValue& indices, const Tensor& values, bool accumulate) {
  return indexPutInto(clone(self), indices, values, accumulate);
}
Tensor indexPutImplInto(const Tensor& self, const IValue& indices, const Tensor& values,
                        bool accumulate, bool) {
  return indexPutInto(self, indices, values, accumulate);
}

Tensor padConstant(const Tensor& self, const DimVector& pad, const Scalar& value) {
  const Tensor out = ops::constantPad(integersOf(self), pad, Scalar(rounded(self, value)));
  return quantizedFrom(out, self.dtype(), self.form());
}
Tensor pad(const Tensor& self, const DimVector& pad, const std::string& mode,
           std::optional<double> value) {
  perTensorQuantizerOf("pad", self);
  if (mode == "constant") return padConstant(self, pad, Scalar(value.value_or(0)));
  WICK_CHECK(mode == "reflect" && pad.size() <= 4,
             "pad: quantized tensors are padded with a constant or reflected in one or two "
             "dimensions, got the mode {}",
             mode);
  return quantizedFrom(ops::pad(integersOf(self), pad, mode), self.dtype(), self.form());
}

// On the grid of the first.
Tensor cat(const std::vector<Tensor>& tensors, int64_t dim) {
  const char* op = "cat";
  WICK_CHECK(!tensors.empty() && isQuantized(tensors[0]),
             "{}: expected quantized tensors, got a dense one", op);
  const Grid grid = gridOf(perTensorQuantizerOf(op, tensors[0]));
  const DType dtype = tensors[0].dtype();
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    const Quantizer& own = perTensorQuantizerOf(op, t);
    WICK_CHECK(t.dtype() == dtype, "{}: All dtypes must be the same, got {} and {}", op,
               toString(dtype), toString(t.dtype()));
    parts.push_back(own.scale() == grid.scale && own.zeroPoint() == grid.zero_point
                        ? integersOf(t)
                        : integersOf(quantize(op, dequantize(op, t), grid, dtype)));
  }
  return quantizedFrom(ops::cat(parts, dim), dtype, tensors[0].form());
}
Tensor stack(const std::vector<Tensor>& tensors, int64_t dim) {
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) {
    WICK_CHECK(std::ranges::equal(t.sizes(), tensors[0].sizes()),
               "stack expects each tensor to be equal size, but got {} and {}",
               formatInts(tensors[0].sizes()), formatInts(t.sizes()));
    parts.push_back(t.unsqueeze(dim));
  }
  WICK_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  return cat(parts, wrapDim(dim, tensors[0].dim() + 1));
}

bool equal(const Tensor& self, const Tensor& other) {
  if (!isQuantized(self) || !isQuantized(other) || self.dtype() != other.dtype()) return false;
  if (!quantizerOf("equal", self).equals(quantizerOf("equal", other))) return false;
  return ops::equal.all(integersOf(self), integersOf(other))[0].toBool();
}

// A quantized tensor has no other dtype to be converted to; what changes nothing is allowed.
Tensor sameDType(const Tensor& self, const std::optional<int64_t>& dtype, bool copy,
                 std::optional<MemoryFormat> format) {
  WICK_CHECK(!dtype || *dtype == static_cast<int64_t>(self.dtype()),
             "to: Copying from quantized Tensor to non-quantized Tensor is not allowed, please use "
             "dequantize to get a float Tensor from a quantized Tensor");
  if (format && *format != MemoryFormat::Preserve && !self.isContiguous(*format)) {
    return contiguous(self, *format);
  }
  return copy ? clone(self, format.value_or(MemoryFormat::Preserve)) : self;
}
void checkDevice(const char* op, const std::optional<Device>& device) {
  WICK_CHECK(!device || device->isCpu(), "{}: quantized tensors are on the CPU only, got {}", op,
             device->str());
}
Tensor toDevice(const Tensor& self, Device device, int64_t dtype, bool, bool copy,
                std::optional<MemoryFormat> format) {
  checkDevice("to", device);
  return sameDType(self, dtype, copy, format);
}
Tensor toDType(const Tensor& self, int64_t dtype, bool, bool copy,
               std::optional<MemoryFormat> format) {
  return sameDType(self, dtype, copy, format);
}
Tensor toLayout(const Tensor& self, std::optional<int64_t> dtype, const IValue&,
                std::optional<Device> device, const IValue&, bool, bool copy,
                std::optional<MemoryFormat> format) {
  checkDevice("to", device);
  return sameDType(self, dtype, copy, format);
}
Tensor toPrimDevice(const Tensor& self, std::optional<Device> device, std::optional<int64_t> dtype,
                    bool, bool copy) {
  checkDevice("to", device);
  return sameDType(self, dtype, copy, {});
}
Tensor toPrimDType(const Tensor& self, std::optional<int64_t> dtype, bool, bool copy) {
  return sameDType(self, dtype, copy, {});
}
Tensor toOther(const Tensor& self, const Tensor& other, bool, bool copy,
               std::optional<MemoryFormat> format) {
  return sameDType(self, static_cast<int64_t>(other.dtype()), copy, format);
}
Tensor typeAs(const Tensor& self, const Tensor& other) {
  return sameDType(self, static_cast<int64_t>(other.dtype()), false, {});
}
Tensor fullLike(const Tensor& self, const Scalar& value, std::optional<int64_t> dtype,
                const IValue&, std::optional<Device> device, const IValue&,
                std::optional<MemoryFormat> format) {
  perTensorQuantizerOf("full_like", self);
  checkDevice("full_like", device);
  sameDType(self, dtype, false, {});
  Tensor made = Tensor::emptyLike(self, self.dtype(), format.value_or(MemoryFormat::Preserve));
  made.impl()->become(TensorKind::Quantized, self.form());
  return fill(made, value);
}
Tensor onesLike(const Tensor& self, std::optional<int64_t> dtype, const IValue& layout,
                std::optional<Device> device, const IValue& pinned,
                std::optional<MemoryFormat> format) {
  return fullLike(self, Scalar(1.0), dtype, layout, device, pinned, format);
}
Tensor onCpu(const Tensor& self) {
  return self;
}

// Sizes that change on the way; the axis of a quantizer per channel goes along.
Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const Quantizer& q = quantizerOf("unsqueeze", self);
  const Tensor view = self.unsqueeze(dim);
  if (q.isPerTensor()) return view;
  const int64_t at = wrapDim(dim, self.dim() + 1);
  view.impl()->become(
      TensorKind::Quantized,
      Quantizer::perChannel(q.scales(), q.zeroPoints(), q.axis() >= at ? q.axis() + 1 : q.axis()));
  return view;
}

#define WICK_ON(kernel, name) \
  { "aten::" name, kernel }

const KindKernel kElementsKernels[] = {
    {"aten::copy_", WICK_KERNEL(copy)},
    {"aten::fill_.Scalar", WICK_KERNEL(fill)},
    {"aten::fill_.Tensor", WICK_KERNEL(fillTensor)},
    {"aten::masked_fill.Scalar", WICK_KERNEL(maskedFill)},
    {"aten::masked_fill.Tensor", WICK_KERNEL(maskedFillTensor)},
    {"aten::masked_fill_.Scalar", WICK_KERNEL(maskedFillInto)},
    {"aten::masked_fill_.Tensor", WICK_KERNEL(maskedFillTensorInto)},
    {"aten::index_put", WICK_KERNEL(indexPut)},
    {"aten::index_put_", WICK_KERNEL(indexPutInto)},
    {"aten::index_put.hacked_twin", WICK_KERNEL(indexPut)},
    {"aten::index_put_.hacked_twin", WICK_KERNEL(indexPutInto)},
    {"aten::_index_put_impl_", WICK_KERNEL(indexPutImplInto)},
    {"aten::constant_pad_nd", WICK_KERNEL(padConstant)},
    {"aten::pad", WICK_KERNEL(pad)},
    {"aten::cat", WICK_KERNEL(cat)},
    {"aten::stack", WICK_KERNEL(stack)},
    {"aten::equal", WICK_KERNEL(equal)},
    {"aten::to.device", WICK_KERNEL(toDevice)},
    {"aten::to.dtype", WICK_KERNEL(toDType)},
    {"aten::to.dtype_layout", WICK_KERNEL(toLayout)},
    {"aten::to.prim_Device", WICK_KERNEL(toPrimDevice)},
    {"aten::to.prim_dtype", WICK_KERNEL(toPrimDType)},
    {"aten::to.other", WICK_KERNEL(toOther)},
    {"aten::cpu", WICK_KERNEL(onCpu)},
    {"aten::unsqueeze", WICK_KERNEL(unsqueeze)},
    {"aten::type_as", WICK_KERNEL(typeAs)},
    {"aten::ones_like", WICK_KERNEL(onesLike)},
    {"aten::full_like", WICK_KERNEL(fullLike)},
    WICK_ON(onCommonGrid, "hstack"),
    WICK_ON(onCommonGrid, "vstack"),
    WICK_ON(onCommonGrid, "dstack"),
    WICK_ON(onCommonGrid, "column_stack"),
    WICK_ON(onIntegers, "atleast_1d"),
    WICK_ON(onIntegers, "atleast_2d"),
    WICK_ON(onIntegers, "atleast_3d"),

    WICK_ON(onIntegersOfAnyScheme, "view"),
    WICK_ON(onIntegersOfAnyScheme, "view_as"),
    WICK_ON(onIntegersOfAnyScheme, "reshape"),
    WICK_ON(onIntegersOfAnyScheme, "reshape_as"),
    WICK_ON(onIntegersOfAnyScheme, "_reshape_alias"),
    WICK_ON(onIntegersOfAnyScheme, "_unsafe_view"),
    WICK_ON(onIntegersOfAnyScheme, "alias"),
    WICK_ON(onIntegersOfAnyScheme, "detach"),
    WICK_ON(onIntegersOfAnyScheme, "clone"),
    WICK_ON(onIntegersOfAnyScheme, "contiguous"),
    WICK_ON(onIntegersOfAnyScheme, "stride"),
    WICK_ON(onIntegersOfAnyScheme, "stride.int"),
    WICK_ON(onIntegersOfAnyScheme, "storage_offset"),
    WICK_ON(onIntegersOfAnyScheme, "is_contiguous"),
    WICK_ON(onIntegersOfAnyScheme, "is_contiguous.memory_format"),
    WICK_ON(onIntegersOfAnyScheme, "ravel"),
    WICK_ON(onIntegersOfAnyScheme, "flatten.using_ints"),
    WICK_ON(onIntegersOfAnyScheme, "unflatten.int"),
    WICK_ON(onSqueezed, "squeeze"),
    WICK_ON(onSqueezed, "squeeze.dim"),
    WICK_ON(onIntegersInPlace, "squeeze_"),
    WICK_ON(onIntegersInPlace, "squeeze_.dim"),
    WICK_ON(onIntegersInPlace, "unsqueeze_"),
    WICK_ON(onIntegersInPlace, "transpose_"),
    WICK_ON(onIntegersInPlace, "swapaxes_"),
    WICK_ON(onIntegersInPlace, "swapdims_"),
    WICK_ON(onIntegersInPlace, "t_"),
    WICK_ON(onIntegersInPlace, "as_strided_"),
    WICK_ON(onIntegers, "transpose.int"),
    WICK_ON(onIntegers, "swapaxes"),
    WICK_ON(onIntegers, "swapdims"),
    WICK_ON(onIntegers, "t"),
    WICK_ON(onIntegers, "permute"),
    WICK_ON(onIntegers, "numpy_T"),
    WICK_ON(onIntegers, "numpy_T.a"),
    WICK_ON(onIntegers, "mT"),
    WICK_ON(onIntegers, "mT.a"),
    WICK_ON(onIntegers, "movedim.intlist"),
    WICK_ON(onIntegers, "movedim.int"),
    WICK_ON(onIntegers, "moveaxis.intlist"),
    WICK_ON(onIntegers, "moveaxis.int"),
    WICK_ON(onIntegers, "expand"),
    WICK_ON(onIntegers, "expand_as"),
    WICK_ON(onIntegers, "broadcast_to"),
    WICK_ON(onParts, "select.int"),
    WICK_ON(onParts, "slice.Tensor"),
    WICK_ON(onParts, "narrow"),
    WICK_ON(onParts, "narrow.Tensor"),
    WICK_ON(onIntegers, "diagonal"),
    WICK_ON(onIntegers, "as_strided"),
    WICK_ON(onIntegers, "unfold"),
    WICK_ON(onParts, "unbind.int"),
    WICK_ON(onParts, "split.Tensor"),
    WICK_ON(onParts, "split.sizes"),
    WICK_ON(onParts, "split"),
    WICK_ON(onParts, "split_with_sizes"),
    WICK_ON(onParts, "chunk"),
    WICK_ON(onParts, "tensor_split.sections"),
    WICK_ON(onParts, "tensor_split.indices"),
    WICK_ON(onParts, "hsplit.int"),
    WICK_ON(onParts, "tensor_split.tensor_indices_or_sections"),
    WICK_ON(onParts, "hsplit.array"),
    WICK_ON(onParts, "vsplit.int"),
    WICK_ON(onParts, "vsplit.array"),
    WICK_ON(onParts, "dsplit.int"),
    WICK_ON(onParts, "dsplit.array"),
    WICK_ON(onIntegers, "repeat"),
    WICK_ON(onIntegers, "tile"),
    WICK_ON(onIntegers, "flip"),
    WICK_ON(onIntegers, "fliplr"),
    WICK_ON(onIntegers, "flipud"),
    WICK_ON(onIntegers, "pixel_shuffle"),
    WICK_ON(onIntegers, "pixel_unshuffle"),
    WICK_ON(onIntegers, "channel_shuffle"),
    WICK_ON(onIntegers, "index.Tensor"),
    WICK_ON(onIntegers, "index.Tensor_hacked_twin"),
    WICK_ON(onIntegers, "index_select"),
    WICK_ON(onIntegers, "embedding"),
    WICK_ON(onIntegers, "repeat_interleave.self_int"),
    WICK_ON(onIntegers, "repeat_interleave.self_Tensor"),
    WICK_ON(onIntegers, "rot90"),
    WICK_ON(onIntegers, "argsort"),
    WICK_ON(onIntegers, "msort"),
    WICK_ON(onIntegers, "sort"),
    WICK_ON(onIntegers, "sort.stable"),
    WICK_ON(onIntegers, "topk"),
    WICK_ON(onIntegers, "max"),
    WICK_ON(onIntegers, "min"),
    WICK_ON(onIntegers, "max.dim"),
    WICK_ON(onIntegers, "min.dim"),
    WICK_ON(onIntegers, "reflection_pad1d"),
    WICK_ON(onIntegers, "reflection_pad2d"),
    WICK_ON(onIntegersInPlace, "resize_"),

    WICK_ON(onReals, "eq.Tensor"),
    WICK_ON(onReals, "eq.Scalar"),
    WICK_ON(onReals, "ne.Tensor"),
    WICK_ON(onReals, "ne.Scalar"),
    WICK_ON(onReals, "lt.Tensor"),
    WICK_ON(onReals, "lt.Scalar"),
    WICK_ON(onReals, "le.Tensor"),
    WICK_ON(onReals, "le.Scalar"),
    WICK_ON(onReals, "gt.Tensor"),
    WICK_ON(onReals, "gt.Scalar"),
    WICK_ON(onReals, "ge.Tensor"),
    WICK_ON(onReals, "ge.Scalar"),

    WICK_ON(onRealsAndBack, "std"),
    WICK_ON(onRealsAndBack, "std.dim"),
    WICK_ON(onRealsAndBack, "std.correction"),
    WICK_ON(onRealsAndBack, "threshold"),
    WICK_ON(onRealsAndBack, "leaky_relu"),

    WICK_ON(onIntegers, "max_pool1d"),
    WICK_ON(onIntegers, "max_pool2d"),
    WICK_ON(onStepsAndBack, "upsample_nearest2d"),
    WICK_ON(onStepsAndBack, "upsample_nearest2d.vec"),
    WICK_ON(onStepsAndBack, "upsample_nearest3d"),
    WICK_ON(onStepsAndBack, "upsample_nearest3d.vec"),
    WICK_ON(onStepsAndBack, "_upsample_nearest_exact2d"),
    WICK_ON(onStepsAndBack, "_upsample_nearest_exact2d.vec"),
    WICK_ON(onStepsAndBack, "_upsample_nearest_exact3d"),
    WICK_ON(onStepsAndBack, "_upsample_nearest_exact3d.vec"),
    WICK_ON(onStepsAndBack, "grid_sampler_2d"),
    WICK_ON(onStepsAndBack, "grid_sampler"),
};
const RegisterKindKernels kElementsRegistered(TensorKind::Quantized, kElementsKernels);

}  // namespace

}  // namespace wick::ops::quantized
