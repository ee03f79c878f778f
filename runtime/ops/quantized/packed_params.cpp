#include "runtime/ops/quantized/packed_params.h"

#include "core/half.h"
#include "runtime/ops/common.h"

namespace wick::ops::quantized {

namespace {

Tensor checkedBias(const char* op, const Tensor& bias, int64_t channels) {
  if (!bias.defined()) return bias;
  WICK_CHECK(bias.kind() == TensorKind::Dense && bias.dim() == 1 && bias.numel() == channels,
             "{}: expected a bias of {} elements, got {}", op, channels, bias.describe());
  return bias.detach().to(DType::Float).contiguous();
}

// What float16 holds, infinities cut off.
Tensor throughHalf(const Tensor& weight) {
  constexpr float kMost = 65504;
  Tensor result = weight.detach().clone(MemoryFormat::Contiguous);
  for (float& v : result.span<float>()) {
    v = static_cast<float>(Half(std::min(std::max(v, -kMost), kMost)));
  }
  return result;
}

Tensor checkedLinear(const char* op, const Tensor& weight) {
  WICK_CHECK(weight.defined() && weight.dim() == 2,
             "{}: The weight tensor for {} should be 2-dimensional.", op, op);
  if (!isQuantized(weight)) {
    WICK_CHECK(weight.kind() == TensorKind::Dense && weight.dtype() == DType::Float,
               "{}: expected a weight of qint8 or float32, got {}", op, weight.describe());
    return throughHalf(weight);
  }
  WICK_CHECK(weight.dtype() == DType::QInt8, "{}: expected a weight of qint8, got {}", op,
             weight.describe());
  return contiguous(weight);
}

Tensor checkedConv(const char* op, const Tensor& weight, const ConvParams::Shape& shape) {
  quantizerOf(op, weight);
  WICK_CHECK(weight.dtype() == DType::QInt8, "{}: expected a weight of qint8, got {}", op,
             weight.describe());
  WICK_CHECK(weight.dim() == 4 || weight.dim() == 5,
             "{}: Weights are expected to have 4 or 5 dimensions, got {}", op, weight.describe());
  const auto dims = static_cast<size_t>(weight.dim() - 2);
  for (const auto& [what, values, least] : {std::tuple{"stride", &shape.stride, 1},
                                            {"padding", &shape.padding, 0},
                                            {"output_padding", &shape.output_padding, 0},
                                            {"dilation", &shape.dilation, 1}}) {
    WICK_CHECK(values->size() == dims, "{}: expected a {} of {} numbers, got {}", op, what, dims,
               formatInts(*values));
    for (int64_t v : *values) {
      WICK_CHECK(v >= least && v <= INT32_MAX, "{}: expected a {} of {} or more, got {}", op, what,
                 least, formatInts(*values));
    }
  }
  const int64_t outer = weight.size(0);
  WICK_CHECK(shape.groups > 0 && outer % shape.groups == 0,
             "{}: expected a number of groups that divides {} channels, got {}", op, outer,
             shape.groups);
  int64_t channels = 0;
  WICK_CHECK(
      !__builtin_mul_overflow(weight.size(1), shape.groups, &channels) && channels <= INT32_MAX,
      "{}: {} groups are too many", op, shape.groups);
  return weight;
}

}  // namespace

ChannelGrid::ChannelGrid(const char* op, const Tensor& weight, int64_t axis) {
  const Quantizer& q = quantizerOf(op, weight);
  if (q.isPerTensor()) {
    perTensorQuantizerOf(op, weight);
    scales.push_back(q.scale());
    zero_points.push_back(static_cast<int32_t>(q.zeroPoint()));
  } else {
    WICK_CHECK(q.scheme() == QScheme::PerChannelAffine,
               "{}: expected a weight with integers as zero points, got one quantized {}", op,
               toString(q.scheme()));
    WICK_CHECK(q.axis() == axis,
               "{}: expected a weight quantized along dimension {}, got one "
               "along {}",
               op, axis, q.axis());
    WICK_CHECK(q.scales().numel() == weight.size(axis),
               "{}: expected a scale for each of {} channels, got {}", op, weight.size(axis),
               q.scales().numel());
    for (int64_t c = 0; c < q.scales().numel(); ++c) {
      const int64_t zero = q.zeroPoints().data<int64_t>()[c];
      checkGrid(op, {1, zero}, weight.dtype());
      scales.push_back(q.scaleOf(c));
      zero_points.push_back(static_cast<int32_t>(zero));
    }
  }
  for (const int32_t z : zero_points) symmetric &= z == 0;
}

LinearParams::LinearParams(const char* op, const Tensor& w, const Tensor& b)
    : weight(checkedLinear(op, w)), bias(checkedBias(op, b, weight.size(0))) {
  if (!isHalf()) grid_ = std::make_unique<const ChannelGrid>(op, weight, 0);
}

const PackedBytes& LinearParams::packed() const {
  std::call_once(once_, [this] {
    packed_ = std::make_unique<const PackedBytes>(integers<int8_t>(weight), weight.size(0),
                                                  weight.size(1));
  });
  return *packed_;
}

ConvParams::ConvParams(const char* op, const Tensor& w, const Tensor& b, Shape s)
    : weight(checkedConv(op, w, s)),
      bias(checkedBias(op, b, s.transposed ? w.size(1) * s.groups : w.size(0))),
      shape(std::move(s)) {
  grid_ = std::make_unique<const ChannelGrid>(op, weight, shape.transposed ? 1 : 0);
  WICK_CHECK(!shape.transposed || grid_->scales.size() == 1,
             "{}: transposed convolutions with weights quantized per channel are not supported "
             "(PyTorch refuses them too)",
             op);
}

void ConvParams::pack() const {
  packed_.clear();
  const Tensor w = quantized::contiguous(weight);
  const int8_t* from = integers<int8_t>(w);
  const int64_t groups = shape.groups, taps = product(w.sizes(), 2, static_cast<size_t>(w.dim()));
  const int64_t outs = outChannels() / groups, ins = inChannels() / groups;
  if (isByChannel()) {
    taps_.resize(static_cast<size_t>(taps * groups));
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t t = 0; t < taps; ++t)
        taps_[static_cast<size_t>(t * groups + g)] = from[g * taps + t];
    }
    return;
  }
  CountedVector<int8_t> rows(static_cast<size_t>(outs * taps * ins));
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < outs; ++o) {
      for (int64_t i = 0; i < ins; ++i) {
        const int64_t at = shape.transposed ? ((g * ins + i) * outs + o) * taps
                                            : ((g * outs + o) * ins + i) * taps;
        for (int64_t t = 0; t < taps; ++t) {
          rows[static_cast<size_t>((o * taps + t) * ins + i)] = from[at + t];
        }
      }
    }
    packed_.emplace_back(rows.data(), outs, taps * ins);
  }
}

const std::vector<PackedBytes>& ConvParams::packed() const {
  std::call_once(once_, [this] { pack(); });
  return packed_;
}
const CountedVector<int8_t>& ConvParams::taps() const {
  std::call_once(once_, [this] { pack(); });
  return taps_;
}

IValue makeLinear(const char* op, const Tensor& weight, const Tensor& bias) {
  return makeNative(kLinearClass, makeRef<LinearParams>(op, weight, bias));
}
const LinearParams& linearOf(const char* op, const IValue& object) {
  return heldBy<LinearParams>(op, object, "the packed weights of a linear layer");
}
const ConvParams& convOf(const char* op, const IValue& object) {
  return heldBy<ConvParams>(op, object, "the packed weights of a convolution");
}
const EmbeddingParams& embeddingOf(const char* op, const IValue& object) {
  return heldBy<EmbeddingParams>(op, object, "the packed rows of an embedding");
}
const CellParams& cellOf(const char* op, const IValue& object) {
  return heldBy<CellParams>(op, object, "the packed weights of a recurrent cell");
}

}  // namespace wick::ops::quantized
