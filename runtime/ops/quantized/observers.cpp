// Observing and fake quantization in one: what training aware of quantization calls.
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"
#include "runtime/ops/quantized/choose_grid.h"

namespace wick::ops::quantized {

namespace {

constexpr const char* kOp = "fused_moving_avg_obs_fake_quant";

struct Observer {
  const Tensor &least, &largest, &scale, &zero_point;
};

bool isOn(const Tensor& flag) {
  WICK_CHECK(flag.numel() == 1, "{}: expected a switch of one element, got {}", kOp,
             flag.describe());
  return flag.to(DType::Double).item<double>() != 0;
}

// Grows what was not sized yet: an observer learns the number of channels from its first tensor.
void sizeFor(const Observer& o, int64_t channels) {
  for (const auto& [tensor, initial] : {std::pair{&o.least, INFINITY},
                                        {&o.largest, -INFINITY},
                                        {&o.scale, 1.0f},
                                        {&o.zero_point, 0.0f}}) {
    if (tensor->numel() == channels) continue;
    WICK_CHECK(tensor->numel() == 0 || (tensor->numel() == 1 && channels > 1),
               "{}: expected statistics of {} channels, got {}", kOp, channels, tensor->describe());
    resizeTo(*tensor, {channels});
    tensor->fill(initial);
  }
}

// Row i holds what is observed for channel i.
void observe(const Tensor& rows, const Observer& o, double constant, int64_t least, int64_t most,
             bool symmetric) {
  const int64_t channels = rows.size(0), each = rows.size(1);
  WICK_CHECK(rows.numel() > 0, "{}: expected a tensor with elements, got {}", kOp, rows.describe());
  sizeFor(o, channels);
  const Tensor x = rows.to(DType::Float).contiguous();
  Tensor lows = o.least.to(DType::Float).contiguous().clone();
  Tensor highs = o.largest.to(DType::Float).contiguous().clone();
  Tensor scales = Tensor::empty({channels}, DType::Double);
  Tensor zeros = Tensor::empty({channels}, DType::Long);
  Pace pace;
  for (int64_t c = 0; c < channels; ++c) {
    const float* row = x.data<float>() + c * each;
    pace.step(each);
    const auto [low, high] = std::minmax_element(row, row + each);
    float& at_low = lows.data<float>()[c];
    float& at_high = highs.data<float>()[c];
    const auto weight = static_cast<float>(constant);
    at_low = std::isinf(at_low) ? *low : at_low + weight * (*low - at_low);
    at_high = std::isinf(at_high) ? *high : at_high + weight * (*high - at_high);
    const Grid grid = chooseGrid(kOp, at_low, at_high, least, most, false, symmetric);
    scales.data<double>()[c] = grid.scale;
    zeros.data<int64_t>()[c] = grid.zero_point;
  }
  for (const auto& [to, from] : {std::pair{&o.least, &lows},
                                 {&o.largest, &highs},
                                 {&o.scale, &scales},
                                 {&o.zero_point, &zeros}}) {
    markWritten(kOp, *to);
    to->copyFrom(from->reshape(to->sizes()));
  }
}

Pair withMask(const Tensor& self, const Tensor& observer_on, const Tensor& fake_on,
              const Tensor& running_min, const Tensor& running_max, const Tensor& scale,
              const Tensor& zero_point, double constant, int64_t least, int64_t most, int64_t axis,
              bool per_row, bool symmetric) {
  static const OperatorHandle kTensor(
      "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "");
  static const OperatorHandle kChannel("aten::fake_quantize_per_channel_affine_cachemask", "");
  WICK_CHECK(self.kind() == TensorKind::Dense && isFloating(self.dtype()),
             "{}: expected a floating tensor, got {}", kOp, self.describe());
  WICK_CHECK(least < most, "{}: expected quant_min below quant_max, got {} and {}", kOp, least,
             most);
  const Observer observer{running_min, running_max, scale, zero_point};
  if (isOn(observer_on)) {
    const Tensor rows = per_row ? self.transpose(0, axis).flatten().reshape({self.size(axis), -1})
                                : self.reshape({1, -1});
    observe(rows, observer, constant, least, most, symmetric);
  }
  if (!isOn(fake_on)) {
    return {self.clone(), Tensor::full(self.sizes(), 1, DType::Bool)};
  }
  std::vector<IValue> results;
  if (per_row) {
    results = kChannel.all(self, scale, zero_point, axis, least, most);
  } else {
    results = kTensor.all(self, scale, zero_point, fake_on, least, most);
  }
  return {results[0].toTensor(), results[1].toTensor()};
}

Tensor fused(const Tensor& self, const Tensor& observer_on, const Tensor& fake_on,
             const Tensor& running_min, const Tensor& running_max, const Tensor& scale,
             const Tensor& zero_point, double constant, int64_t least, int64_t most, int64_t axis,
             bool per_row, bool symmetric) {
  return std::get<0>(withMask(self, observer_on, fake_on, running_min, running_max, scale,
                              zero_point, constant, least, most, axis, per_row, symmetric));
}

#define WICK_ARGUMENTS                                                                           \
  "(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) "  \
  "running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, " \
  "int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> "

const OperatorRecord kObserversRecords[] = {
    {"aten::fused_moving_avg_obs_fake_quant" WICK_ARGUMENTS "Tensor", WICK_KERNEL(fused)},
    {"aten::_fused_moving_avg_obs_fq_helper" WICK_ARGUMENTS "(Tensor output, Tensor mask)",
     WICK_KERNEL(withMask)},
};
const RegisterOperators kObserversRegistered(kObserversRecords);

}  // namespace

}  // namespace wick::ops::quantized
