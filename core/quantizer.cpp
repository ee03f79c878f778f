#include "core/quantizer.h"

#include <algorithm>

#include "core/error.h"

namespace wick {

std::string_view toString(QScheme scheme) {
  switch (scheme) {
    case QScheme::PerTensorAffine:
      return "per_tensor_affine";
    case QScheme::PerChannelAffine:
      return "per_channel_affine";
    case QScheme::PerTensorSymmetric:
      return "per_tensor_symmetric";
    case QScheme::PerChannelSymmetric:
      return "per_channel_symmetric";
    case QScheme::PerChannelAffineFloatQParams:
      return "per_channel_affine_float_qparams";
  }
  throwRuntimeError("the number {} is no scheme of quantization", static_cast<int>(scheme));
}

Ref<Quantizer> Quantizer::perTensor(double scale, int64_t zero_point) {
  auto made = makeRef<Quantizer>();
  made->scale_ = scale;
  made->zero_point_ = zero_point;
  return made;
}

Ref<Quantizer> Quantizer::perChannel(const Tensor& scales, const Tensor& zero_points,
                                     int64_t axis) {
  WICK_CHECK(scales.dim() == 1 && zero_points.dim() == 1,
             "quantization per channel: expected scales and zero points of one dimension, got {} "
             "and {}",
             scales.describe(), zero_points.describe());
  WICK_CHECK(scales.numel() == zero_points.numel(),
             "quantization per channel: expected as many zero points as scales, got {} and {}",
             zero_points.numel(), scales.numel());
  WICK_CHECK(isFloating(scales.dtype()),
             "quantization per channel: expected floating scales, got {}", scales.describe());
  WICK_CHECK(axis >= 0, "quantization per channel: expected an axis of 0 or more, got {}", axis);
  const bool fractional = isFloating(zero_points.dtype());
  auto made = makeRef<Quantizer>();
  made->scheme_ = fractional ? QScheme::PerChannelAffineFloatQParams : QScheme::PerChannelAffine;
  // Copies: what the caller writes to its tensors later does not concern the quantized one.
  made->scales_ = scales.detach().to(fractional ? DType::Float : DType::Double).contiguous();
  made->zero_points_ =
      zero_points.detach().to(fractional ? DType::Float : DType::Long).contiguous();
  if (made->scales_.sharesStorage(scales)) made->scales_ = made->scales_.clone();
  if (made->zero_points_.sharesStorage(zero_points)) {
    made->zero_points_ = made->zero_points_.clone();
  }
  made->axis_ = axis;
  return made;
}

double Quantizer::scaleOf(int64_t channel) const {
  if (isPerTensor()) return scale_;
  WICK_ASSERT(channel >= 0 && channel < scales_.numel(), "there is no channel {}", channel);
  return scales_.dtype() == DType::Float ? scales_.data<float>()[channel]
                                         : scales_.data<double>()[channel];
}

double Quantizer::zeroPointOf(int64_t channel) const {
  if (isPerTensor()) return static_cast<double>(zero_point_);
  WICK_ASSERT(channel >= 0 && channel < zero_points_.numel(), "there is no channel {}", channel);
  return zero_points_.dtype() == DType::Float
             ? zero_points_.data<float>()[channel]
             : static_cast<double>(zero_points_.data<int64_t>()[channel]);
}

bool Quantizer::equals(const Quantizer& other) const {
  if (scheme_ != other.scheme_) return false;
  if (isPerTensor()) return scale_ == other.scale_ && zero_point_ == other.zero_point_;
  if (axis_ != other.axis_ || scales_.numel() != other.scales_.numel()) return false;
  for (int64_t c = 0; c < scales_.numel(); ++c) {
    if (scaleOf(c) != other.scaleOf(c) || zeroPointOf(c) != other.zeroPointOf(c)) return false;
  }
  return true;
}

IntegerRange rangeOf(DType quantized) {
  switch (quantized) {
    case DType::QInt8:
      return {INT8_MIN, INT8_MAX};
    case DType::QUInt8:
      return {0, UINT8_MAX};
    case DType::QUInt4x2:
      return {0, 15};
    case DType::QInt32:
      return {INT32_MIN, INT32_MAX};
    default:
      throwRuntimeError("{} is no quantized dtype", toString(quantized));
  }
}

DType integerDType(DType quantized) {
  switch (quantized) {
    case DType::QInt8:
      return DType::Char;
    case DType::QUInt8:
    case DType::QUInt4x2:
      return DType::Byte;
    case DType::QInt32:
      return DType::Int;
    default:
      throwRuntimeError("{} is no quantized dtype", toString(quantized));
  }
}

const Quantizer& quantizerOf(const char* op, const Tensor& t) {
  WICK_CHECK(isQuantized(t), "{}: expected a quantized tensor, got {}", op,
             t.defined() ? t.describe() : "None");
  return static_cast<const Quantizer&>(*t.form());
}

const Quantizer& perTensorQuantizerOf(const char* op, const Tensor& t) {
  const Quantizer& quantizer = quantizerOf(op, t);
  WICK_CHECK(quantizer.isPerTensor(),
             "{}: expected a tensor quantized with one scale for all of it, got one quantized {}",
             op, toString(quantizer.scheme()));
  const IntegerRange range = rangeOf(t.dtype());
  WICK_CHECK(quantizer.zeroPoint() >= range.least && quantizer.zeroPoint() <= range.most,
             "{}: the zero point {} is no {}", op, quantizer.zeroPoint(), toString(t.dtype()));
  return quantizer;
}

Tensor integersOf(const Tensor& quantized) {
  auto impl = makeRef<TensorImpl>();
  impl->place(quantized.storage(), integerDType(quantized.dtype()), DimVector(quantized.sizes()),
              DimVector(quantized.strides()), quantized.offset());
  return Tensor(std::move(impl));
}

Tensor quantizedFrom(const Tensor& integers, DType dtype, Ref<RefCounted> quantizer) {
  WICK_ASSERT(integers.dtype() == integerDType(dtype), "{} are no integers of {}",
              integers.describe(), toString(dtype));
  auto impl = makeRef<TensorImpl>();
  impl->place(integers.storage(), dtype, DimVector(integers.sizes()), DimVector(integers.strides()),
              integers.offset());
  impl->become(TensorKind::Quantized, quantizer);
  return Tensor(std::move(impl));
}

Tensor emptyQuantized(IntSpan sizes, DType dtype, Ref<Quantizer> quantizer, MemoryFormat format) {
  Tensor made = Tensor::empty(sizes, dtype, {}, format);
  made.impl()->become(TensorKind::Quantized, quantizer);
  return made;
}

Tensor emptyQuantizedLike(const Tensor& like, DType dtype, Ref<Quantizer> quantizer) {
  Tensor made = Tensor::emptyLike(like, dtype);
  made.impl()->become(TensorKind::Quantized, quantizer);
  return made;
}

DType quantizedDType(const char* op, int64_t number) {
  const std::optional<DType> dtype = anyDTypeFromNumber(number);
  WICK_CHECK(dtype && isQuantized(*dtype), "{}: expected a quantized dtype, got {}", op,
             dtype ? std::string(toString(*dtype)) : std::to_string(number));
  return *dtype;
}

}  // namespace wick
