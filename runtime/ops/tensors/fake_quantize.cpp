// Fake quantization: rounding to the grid of a quantized type, in floating point.
#include "runtime/ops/tensors/fake_quantize.h"

#include <cmath>

#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"

namespace wick::ops {

void checkFakeQuantized(const char* op, const Tensor& self, int64_t least, int64_t most) {
  WICK_CHECK(isFloating(self.dtype()), "{}: expected a floating point tensor, got {}", op,
             self.describe());
  WICK_CHECK(least <= most, "{}: `quant_min` should be less than or equal to `quant_max`.", op);
}
void checkZeroPoint(const char* op, int64_t zero_point, int64_t least, int64_t most) {
  WICK_CHECK(zero_point >= least && zero_point <= most, kZeroPointOutside, op);
}
void checkChannelGrids(const char* op, const Tensor& self, const Tensor& scale,
                       const Tensor& zero_point, int64_t axis, bool learned) {
  WICK_CHECK(learned || scale.dtype() == DType::Float, "{}: Scale must be Float, found {}", op,
             toString(scale.dtype()));
  WICK_CHECK(learned || zero_point.dtype() == DType::Int || zero_point.dtype() == DType::Float ||
                 zero_point.dtype() == DType::Half,
             "{}: Zero-point must be Int32, Float or Half, found {}", op,
             toString(zero_point.dtype()));
  WICK_CHECK(axis >= 0 && axis < self.dim(),
             "{}: `axis` must be between 0 and number of dimensions of input", op);
  WICK_CHECK(scale.dim() == 1 && zero_point.dim() == 1 && scale.numel() == zero_point.numel() &&
                 scale.numel() == self.size(axis),
             "{}: dimensions of scale and zero-point must match the {} channels of the input", op,
             self.size(axis));
}

namespace {

// The grid scale * (q - zero_point) for integers q in [least, most].
struct Grid {
  float scale;
  int64_t zero_point;
  int64_t least;
  int64_t most;
  // When `fractional`: the zero point, which need not be whole, in the place of the other. What is
  // rounded is then the sum of it and the scaled value.
  bool fractional = false;
  float fraction = 0;
};

// What has no 64-bit integer counts as the least one, but what is too large for it among doubles as
// the largest: the conversions that PyTorch's kernels are compiled to.
int64_t wholeNumber(float rounded) {
  return rounded >= -0x1p63f && rounded < 0x1p63f ? static_cast<int64_t>(rounded) : INT64_MIN;
}
int64_t wholeNumber(double rounded) {
  if (rounded >= 0x1p63) return INT64_MAX;
  return rounded >= -0x1p63 ? static_cast<int64_t>(rounded) : INT64_MIN;
}

// The value on the grid, and whether it lay within its ends.
template <class T>
std::pair<T, bool> onGrid(T value, const Grid& g) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Wide scaled = convert<Wide>(value) * (1.0f / g.scale);
  const int64_t q =
      g.fractional
          ? wholeNumber(std::nearbyint(static_cast<float>(static_cast<Wide>(g.fraction) + scaled)))
          : wholeNumber(static_cast<Wide>(g.zero_point) + std::nearbyint(scaled));
  const double kept = static_cast<double>(std::clamp(q, g.least, g.most));
  const double zero = g.fractional ? g.fraction : static_cast<double>(g.zero_point);
  return {convert<T>((kept - zero) * g.scale), q >= g.least && q <= g.most};
}

// Along the channel axis when it is one (axis >= 0), with a grid a channel; else the only grid.
Pair quantized(const char* op, const Tensor& self, const CountedVector<Grid>& grids, int64_t axis) {
  Tensor x = self.contiguous();
  Tensor out = Tensor::empty(x.sizes(), x.dtype()), mask = Tensor::empty(x.sizes(), DType::Bool);
  DimSplit split = axis < 0 ? DimSplit{1, 1, x.numel()} : splitAt(x.sizes(), axis);
  dispatch<kAnyFloat>(op, x.dtype(), [&]<class T>() -> void {
    const T* from = x.data<T>();
    T* to = out.data<T>();
    bool* inside = mask.data<bool>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      int64_t channel = i / split.inner % split.size;
      auto [value, within] = onGrid<T>(from[i], grids[static_cast<size_t>(channel)]);
      to[i] = value;
      inside[i] = within;
    }
  });
  return {out, mask};
}

Pair perTensorMask(const Tensor& self, double scale, int64_t zero_point, int64_t least,
                   int64_t most) {
  const char* op = "fake_quantize_per_tensor_affine";
  checkFakeQuantized(op, self, least, most);
  checkZeroPoint(op, zero_point, least, most);
  return quantized(op, self, {{static_cast<float>(scale), zero_point, least, most}}, -1);
}
Tensor perTensor(const Tensor& self, double scale, int64_t zero_point, int64_t least,
                 int64_t most) {
  return std::get<0>(perTensorMask(self, scale, zero_point, least, most));
}
// A zero point in a tensor need not lie on the grid; its fraction is cut off.
Pair onGridOfTensors(const char* op, const Tensor& self, const Tensor& scale,
                     const Tensor& zero_point, int64_t least, int64_t most) {
  checkFakeQuantized(op, self, least, most);
  const double zero = std::trunc(zero_point.item<double>());
  WICK_CHECK(zero >= INT32_MIN && zero <= INT32_MAX, "{}: the zero point is out of range", op);
  return quantized(op, self, {{scale.item<float>(), static_cast<int64_t>(zero), least, most}}, -1);
}
Tensor perTensorOfTensors(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                          int64_t least, int64_t most) {
  const char* op = "fake_quantize_per_tensor_affine";
  return std::get<0>(onGridOfTensors(op, self, scale, zero_point, least, most));
}

// The grids of the channels. Zero points of a learned grid are rounded and kept within its ends.
CountedVector<Grid> channelGrids(const char* op, const Tensor& self, const Tensor& scale,
                                 const Tensor& zero_point, int64_t axis, int64_t least,
                                 int64_t most, bool learned) {
  checkFakeQuantized(op, self, least, most);
  checkChannelGrids(op, self, scale, zero_point, axis, learned);
  Tensor scales = scale.to(DType::Float).contiguous();
  Tensor zeros = zero_point.to(DType::Double).contiguous();
  const bool fractional = !learned && isFloating(zero_point.dtype());
  CountedVector<Grid> grids;
  for (int64_t c = 0; c < scales.numel(); ++c) {
    Grid grid{scales.data<float>()[c], 0, least, most};
    double zero = zeros.data<double>()[c];
    if (fractional) {
      grid.fractional = true;
      grid.fraction = static_cast<float>(zero);
    } else {
      if (learned) {
        zero = std::nearbyint(
            std::fmin(std::fmax(zero, static_cast<double>(least)), static_cast<double>(most)));
      }
      WICK_CHECK(std::fabs(zero) < 0x1p53, "{}: a zero point is out of range", op);
      grid.zero_point = static_cast<int64_t>(zero);
      if (!isFloating(zero_point.dtype())) checkZeroPoint(op, grid.zero_point, least, most);
    }
    grids.push_back(grid);
  }
  return grids;
}
Pair perChannelMask(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                    int64_t least, int64_t most) {
  const char* op = "fake_quantize_per_channel_affine";
  return quantized(op, self, channelGrids(op, self, scale, zero_point, axis, least, most, false),
                   axis);
}
Tensor perChannel(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                  int64_t least, int64_t most) {
  return std::get<0>(perChannelMask(self, scale, zero_point, axis, least, most));
}
Tensor learnedPerChannel(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                         int64_t axis, int64_t least, int64_t most, double) {
  const char* op = "_fake_quantize_learnable_per_channel_affine";
  return std::get<0>(quantized(
      op, self, channelGrids(op, self, scale, zero_point, axis, least, most, true), axis));
}
Tensor learnedPerTensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                        int64_t least, int64_t most, double) {
  const char* op = "_fake_quantize_learnable_per_tensor_affine";
  checkFakeQuantized(op, self, least, most);
  double zero =
      std::fmin(std::fmax(std::nearbyint(zero_point.item<double>()), static_cast<double>(least)),
                static_cast<double>(most));
  WICK_CHECK(std::fabs(zero) < 0x1p53, "{}: the zero point is out of range", op);
  return std::get<0>(
      quantized(op, self, {{scale.item<float>(), static_cast<int64_t>(zero), least, most}}, -1));
}
Pair perTensorSwitched(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                       const Tensor& enabled, int64_t least, int64_t most) {
  if (enabled.item<int64_t>() == 0) {
    return {self.clone(), Tensor::full(self.sizes(), 1, DType::Bool)};
  }
  const char* op = "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams";
  return onGridOfTensors(op, self, scale, zero_point, least, most);
}

constexpr OperatorRecord kFakeQuantizeRecords[] = {
    {"aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int "
     "quant_min, int quant_max) -> Tensor",
     WICK_KERNEL(perTensor), kEagerCastFull},
    {"aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor "
     "zero_point, int quant_min, int quant_max) -> Tensor",
     WICK_KERNEL(perTensorOfTensors), kEagerCastFull},
    {"aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, "
     "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     WICK_KERNEL(perTensorMask)},
    {"aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, "
     "Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor "
     "output, Tensor mask)",
     WICK_KERNEL(perTensorSwitched)},
    {"aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int "
     "axis, int quant_min, int quant_max) -> Tensor",
     WICK_KERNEL(perChannel)},
    {"aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor "
     "zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
     WICK_KERNEL(perChannelMask)},
    {"aten::_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor "
     "zero_point, int quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
     WICK_KERNEL(learnedPerTensor)},
    {"aten::_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor "
     "zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.0) -> Tensor",
     WICK_KERNEL(learnedPerChannel)},
};

const RegisterOperators kFakeQuantizeRegistered(kFakeQuantizeRecords);

}  // namespace

}  // namespace wick::ops
