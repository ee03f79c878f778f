// Making quantized tensors, and asking them what they are.
#include <cstring>

#include "ir/kind_kernels.h"
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"
#include "runtime/ops/quantized/choose_grid.h"
#include "runtime/ops/quantized/record_flags.h"

namespace wick::ops::quantized {

namespace {

Tensor perTensor(const Tensor& self, double scale, int64_t zero_point, int64_t dtype) {
  const char* op = "quantize_tensor_per_tensor_affine";
  return quantize(op, self, {scale, zero_point}, quantizedDType(op, dtype));
}

Grid gridOfTensors(const char* op, const Tensor& scale, const Tensor& zero_point) {
  WICK_CHECK(scale.numel() == 1 && zero_point.numel() == 1,
             "{}: expected a scale and a zero point of one element, got {} and {}", op,
             scale.describe(), zero_point.describe());
  return {scale.item<double>(), zero_point.item<int64_t>()};
}

Tensor perTensorOfTensors(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                          int64_t dtype) {
  const char* op = "quantize_tensor_per_tensor_affine";
  return quantize(op, self, gridOfTensors(op, scale, zero_point), quantizedDType(op, dtype));
}

std::vector<Tensor> perTensorOfList(const std::vector<Tensor>& tensors, const Tensor& scales,
                                    const Tensor& zero_points, int64_t dtype) {
  const char* op = "quantize_per_tensor";
  const auto count = static_cast<int64_t>(tensors.size());
  WICK_CHECK(scales.dim() == 1 && zero_points.dim() == 1 && scales.numel() >= count &&
                 zero_points.numel() >= count,
             "{}: expected a scale and a zero point for each of {} tensors, got {} and {}", op,
             count, scales.describe(), zero_points.describe());
  std::vector<Tensor> result;
  for (int64_t i = 0; i < count; ++i) {
    result.push_back(quantize(op, tensors[static_cast<size_t>(i)],
                              gridOfTensors(op, scales.select(0, i), zero_points.select(0, i)),
                              quantizedDType(op, dtype)));
  }
  return result;
}

Tensor dynamic(const Tensor& self, int64_t dtype, bool reduce_range) {
  const char* op = "quantize_per_tensor_dynamic";
  if (dtype == static_cast<int64_t>(DType::Half)) return self.to(DType::Half).contiguous();
  const DType type = quantizedDType(op, dtype);
  WICK_CHECK(type == DType::QInt8 || type == DType::QUInt8,
             "{}: expected the dtype qint8, quint8 or float16, got {}", op, toString(type));
  const IntegerRange range = rangeOf(type);
  return quantize(op, self, chooseGrid(op, self, range.least, range.most, reduce_range), type);
}

std::tuple<double, int64_t> chooseParameters(const Tensor& self, bool reduce_range) {
  const Grid grid = chooseGrid("_choose_qparams_per_tensor", self, 0, 255, reduce_range);
  return {grid.scale, grid.zero_point};
}

std::tuple<Tensor, Tensor> chooseOptimized(const Tensor& input, int64_t numel, int64_t bins,
                                           double ratio, int64_t bits) {
  const char* op = "choose_qparams_optimized";
  WICK_CHECK(input.dtype() == DType::Float, "{}: expected a float32 tensor, got {}", op,
             input.describe());
  WICK_CHECK(numel > 0 && numel <= input.numel(), "{}: numel is out of the bound of input tensor",
             op);
  WICK_CHECK(bins > 0 && bits > 0 && bits < 31,
             "{}: expected some bins and 1 to 30 bits, got {} "
             "and {}",
             op, bins, bits);
  const Tensor x = input.contiguous();
  const auto [high, low] = searchRange(x.data<float>(), numel, bins, ratio, bits);
  return {Tensor::from({high}), Tensor::from({low})};
}

Tensor perChannel(const Tensor& self, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                  int64_t dtype) {
  const char* op = "quantize_per_channel";
  return quantizePerChannel(op, self, Quantizer::perChannel(scales, zero_points, axis),
                            quantizedDType(op, dtype));
}

DType quantizedOf(const char* op, const Tensor& integers) {
  WICK_CHECK(integers.kind() == TensorKind::Dense, "{}: expected a dense tensor, got a {} one", op,
             toString(integers.kind()));
  switch (integers.dtype()) {
    case DType::Byte:
      return DType::QUInt8;
    case DType::Char:
      return DType::QInt8;
    case DType::Int:
      return DType::QInt32;
    default:
      throwRuntimeError("{}: expected a tensor of uint8, int8 or int32, got {}", op,
                        integers.describe());
  }
}

Tensor makePerTensor(const Tensor& self, double scale, int64_t zero_point) {
  const DType dtype = quantizedOf("_make_per_tensor_quantized_tensor", self);
  return quantizedFrom(self.clone(), dtype, Quantizer::perTensor(scale, zero_point));
}

Tensor makePerChannel(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                      int64_t axis) {
  const char* op = "_make_per_channel_quantized_tensor";
  const DType dtype = quantizedOf(op, self);
  const Ref<Quantizer> quantizer =
      Quantizer::perChannel(scale, zero_point, wrapDim(axis, self.dim()));
  WICK_CHECK(self.dim() > 0 && self.size(axis) == scale.numel(),
             "{}: expected a scale for each index along dimension {} of {}, got {}", op, axis,
             self.describe(), scale.numel());
  return quantizedFrom(self.clone(), dtype, quantizer);
}

// The four arguments of factories; the dtype is a quantized one.
DType dtypeOption(const char* op, const std::optional<int64_t>& dtype, const IValue& layout,
                  const std::optional<Device>& device) {
  WICK_CHECK(dtype.has_value(), "{}: a quantized dtype must be given", op);
  WICK_CHECK(layout.isNone() || layout.toInt() == 0, "{}: only the strided layout exists", op);
  WICK_CHECK(!device || device->isCpu(), "{}: quantized tensors are on the CPU only", op);
  return quantizedDType(op, *dtype);
}

Tensor emptyPerTensor(const DimVector& size, std::optional<int64_t> dtype, const IValue& layout,
                      std::optional<Device> device, const IValue&, double scale, int64_t zero_point,
                      std::optional<MemoryFormat> format) {
  const DType type = dtypeOption("_empty_affine_quantized", dtype, layout, device);
  return cleared(emptyQuantized(size, type, Quantizer::perTensor(scale, zero_point),
                                format.value_or(MemoryFormat::Contiguous)));
}

Tensor emptyPerChannel(const DimVector& size, const Tensor& scales, const Tensor& zero_points,
                       int64_t axis, std::optional<int64_t> dtype, const IValue& layout,
                       std::optional<Device> device, const IValue&,
                       std::optional<MemoryFormat> format) {
  const DType type = dtypeOption("_empty_per_channel_affine_quantized", dtype, layout, device);
  return cleared(emptyQuantized(size, type, Quantizer::perChannel(scales, zero_points, axis),
                                format.value_or(MemoryFormat::Contiguous)));
}

Tensor emptyOf(const DimVector& size, const Tensor& qtensor, std::optional<int64_t> dtype,
               const IValue& layout, std::optional<Device> device, const IValue&,
               std::optional<MemoryFormat> format) {
  const char* op = "empty_quantized";
  quantizerOf(op, qtensor);
  const DType type = dtype ? dtypeOption(op, dtype, layout, device) : qtensor.dtype();
  Tensor made = cleared(Tensor::empty(size, type, {}, format.value_or(MemoryFormat::Contiguous)));
  made.impl()->become(TensorKind::Quantized, qtensor.form());
  return made;
}

Tensor emptyLike(const Tensor& self, std::optional<int64_t> dtype, const IValue& layout,
                 std::optional<Device> device, const IValue&, std::optional<MemoryFormat> format) {
  const char* op = "empty_like";
  quantizerOf(op, self);
  const DType type = dtype ? dtypeOption(op, dtype, layout, device) : self.dtype();
  Tensor made = cleared(Tensor::emptyLike(self, type, format.value_or(MemoryFormat::Preserve)));
  made.impl()->become(TensorKind::Quantized, self.form());
  return made;
}

// ---- questions ----

Tensor intRepr(const Tensor& self) {
  quantizerOf("int_repr", self);
  if (self.dtype() != DType::QUInt4x2) return integersOf(self).clone();
  const Tensor packed = Tensor::empty({(self.numel() + 1) / 2}, DType::Byte);
  if (packed.numel() > 0) {
    std::memcpy(packed.rawData(), contiguous(self).rawData(), static_cast<size_t>(packed.numel()));
  }
  return packed;
}

double scaleOf(const Tensor& self) {
  return perTensorQuantizerOf("q_scale", self).scale();
}
int64_t zeroPointOf(const Tensor& self) {
  return perTensorQuantizerOf("q_zero_point", self).zeroPoint();
}
const Quantizer& perChannelQuantizerOf(const char* op, const Tensor& t) {
  const Quantizer& quantizer = quantizerOf(op, t);
  WICK_CHECK(!quantizer.isPerTensor(),
             "{}: expected a tensor quantized per channel, got one quantized {}", op,
             toString(quantizer.scheme()));
  return quantizer;
}
Tensor channelScales(const Tensor& self) {
  return perChannelQuantizerOf("q_per_channel_scales", self).scales().clone();
}
Tensor channelZeroPoints(const Tensor& self) {
  return perChannelQuantizerOf("q_per_channel_zero_points", self).zeroPoints().clone();
}
int64_t channelAxis(const Tensor& self) {
  return perChannelQuantizerOf("q_per_channel_axis", self).axis();
}
int64_t scheme(const Tensor& self) {
  return static_cast<int64_t>(quantizerOf("qscheme", self).scheme());
}

Tensor real(const Tensor& self) {
  return isQuantized(self) ? dequantize("dequantize", self) : self.to(DType::Float);
}
std::vector<Tensor> realList(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) result.push_back(real(t));
  return result;
}
constexpr int kMaxNesting = 100;
IValue realOfAny(const IValue& value, int depth) {
  WICK_CHECK(depth < kMaxNesting, "dequantize: tuples nest deeper than {}", kMaxNesting);
  if (value.isTensor()) return real(value.toTensor());
  if (value.isTuple()) {
    std::vector<IValue> elements;
    for (const IValue& e : value.elements()) elements.push_back(realOfAny(e, depth + 1));
    return IValue(makeTuple(std::move(elements)));
  }
  if (value.isList()) {
    WICK_CHECK(value.toList().element_type->kind() == TypeKind::Tensor,
               "dequantize: expected a list of tensors, got a list of {}",
               value.toList().element_type->annotation());
    return IValue(makeTensorList(realList(value.toTensors())));
  }
  return value;
}
IValue realAny(const IValue& value) {
  return realOfAny(value, 0);
}

const OperatorRecord kQuantizeRecords[] = {
    {"aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> "
     "Tensor",
     WICK_CPU_KERNEL(perTensor), kPlain},
    {"aten::quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, "
     "ScalarType dtype) -> Tensor",
     WICK_CPU_KERNEL(perTensorOfTensors), kPlain},
    {"aten::quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, "
     "ScalarType dtype) -> Tensor[]",
     WICK_CPU_KERNEL(perTensorOfList), kPlain},
    {"aten::quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> "
     "Tensor",
     WICK_CPU_KERNEL(dynamic), kNotDifferentiable},
    {"aten::quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, "
     "ScalarType dtype) -> Tensor",
     WICK_CPU_KERNEL(perChannel), kPlain},
    {"aten::_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)",
     WICK_CPU_KERNEL(chooseParameters), kNotDifferentiable},
    {"aten::choose_qparams_optimized(Tensor input, int numel, int n_bins, float ratio, int "
     "bit_width) -> (Tensor, Tensor)",
     WICK_CPU_KERNEL(chooseOptimized), kNotDifferentiable},
    {"aten::_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor",
     WICK_CPU_KERNEL(makePerTensor), kPlain},
    {"aten::_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int "
     "axis) -> Tensor",
     WICK_CPU_KERNEL(makePerChannel), kPlain},
    {"aten::_empty_affine_quantized(int[] size, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None, float scale=1, int zero_point=0, MemoryFormat? "
     "memory_format=contiguous_format) -> Tensor",
     WICK_CPU_KERNEL(emptyPerTensor), kNotDifferentiable | kNondeterministic},
    {"aten::_empty_per_channel_affine_quantized(int[] size, *, Tensor scales, Tensor zero_points, "
     "int axis, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, MemoryFormat? memory_format=contiguous_format) -> Tensor",
     WICK_CPU_KERNEL(emptyPerChannel), kNotDifferentiable | kNondeterministic},
    {"aten::empty_quantized(int[] size, Tensor qtensor, *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) "
     "-> Tensor",
     WICK_CPU_KERNEL(emptyOf), kPlain | kNondeterministic},

    {"aten::int_repr(Tensor self) -> Tensor", WICK_CPU_KERNEL(intRepr), kPlain},
    {"aten::q_scale(Tensor self) -> float", WICK_CPU_KERNEL(scaleOf), kPlain},
    {"aten::q_zero_point(Tensor self) -> int", WICK_CPU_KERNEL(zeroPointOf), kPlain},
    {"aten::q_per_channel_scales(Tensor self) -> Tensor", WICK_CPU_KERNEL(channelScales), kPlain},
    {"aten::q_per_channel_zero_points(Tensor self) -> Tensor", WICK_CPU_KERNEL(channelZeroPoints),
     kPlain},
    {"aten::q_per_channel_axis(Tensor self) -> int", WICK_CPU_KERNEL(channelAxis), kPlain},
    {"aten::qscheme(Tensor self) -> QScheme", WICK_CPU_KERNEL(scheme), kPlain},
    {"aten::dequantize.self(Tensor self) -> Tensor", WICK_CPU_KERNEL(real), kAnyKind},
    {"aten::dequantize.tensors(Tensor[] tensors) -> Tensor[]", WICK_CPU_KERNEL(realList), kAnyKind},
    {"aten::dequantize.tensor(Tensor qtensor) -> Tensor", WICK_CPU_KERNEL(real), kAnyKind},
    {"aten::dequantize.list(Tensor[] qtensors) -> Tensor[]", WICK_CPU_KERNEL(realList), kAnyKind},
    {"aten::dequantize.any(Any tensors) -> Any", WICK_CPU_KERNEL(realAny), kPlain},
};
const RegisterOperators kQuantizeRegistered(kQuantizeRecords);

const KindKernel kQuantizeKernels[] = {{"aten::empty_like", WICK_CPU_KERNEL(emptyLike)}};
const RegisterKindKernels registered_kinds(TensorKind::Quantized, kQuantizeKernels);

}  // namespace

}  // namespace wick::ops::quantized
