// Normalizations on the device "ahead" that no fusion group computes: those that give their statistics or keep them.
#include "runtime/ops/layers/normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"

namespace wick::aot {

namespace {

void requireFloat(const char* op, const Tensor& x) {
  WICK_CHECK(isFloating(x.dtype()), "\"{}\" not implemented for '{}'", op,
             scalarTypeName(x.dtype()));
  if (x.dtype() == DType::Float) return;
  throw NotAhead(fmt::format("{} of {} is not available ahead of time", op, toString(x.dtype())));
}
// In float64, as the engine computes between reading and writing.
struct Moments {
  Tensor mean, variance;
};
// Of row-major planes that lie one behind the other; every `outputs`-th of them belongs together.
Moments momentsOf(const char* op, const Tensor& x, int64_t planes, int64_t outputs) {
  const Device device{kAhead, -1};
  const Moments m{Tensor::empty(DimVector{outputs}, DType::Double, device),
                  Tensor::empty(DimVector{outputs}, DType::Double, device)};
  addFunction(op, fmt::format("planeMoments<{}>", elementType(op, x)),
              {reads(x), writes(m.mean), writes(m.variance)},
              {planes, outputs, x.numel() / planes});
  return m;
}
// The mean and the inverse root of the variance where there are no elements.
Pair momentsOfNothing(const DimVector& sizes, DType dtype) {
  const Device device{kAhead, -1};
  return {Tensor::zeros(sizes, dtype, device),
          Tensor::empty(sizes, dtype, device).fill(std::numeric_limits<double>::quiet_NaN())};
}
Tensor inverseRoot(const Tensor& variance, double eps) {
  return ops::reciprocal(ops::sqrt(ops::addScalar(variance, Scalar(eps))));
}
Tensor wide(const Tensor& t) {
  return here(t).to(DType::Double).reshape(DimVector{-1});
}

// x * scale + shift: one of each for each channel of x [samples, channels, pixels…].
Tensor scaled(const Tensor& x, const Tensor& scale, const Tensor& shift) {
  const DimVector each{scale.numel(), 1};
  const Tensor a = scale.to(x.dtype()).reshape(each), b = shift.to(x.dtype()).reshape(each);
  const Tensor rows = x.reshape(
      DimVector{-1, scale.numel(), x.numel() / std::max<int64_t>(1, x.size(0) * scale.numel())});
  return ops::add(ops::mul(rows, a), b);
}

// Takes a part of what is now, as `momentum` says.
void update(const Tensor& running, const Tensor& now, double momentum) {
  if (!running.defined()) return;
  const Tensor next = ops::add(ops::mulScalar(now, Scalar(momentum)),
                               ops::mulScalar(wide(running), Scalar(1 - momentum)));
  running.copyFrom(next.to(running.dtype()).view(running.sizes()));
}
Tensor unbiased(const Tensor& variance, int64_t count) {
  const auto all = static_cast<double>(count);
  return ops::divScalar(ops::mulScalar(variance, Scalar(all)), Scalar(all - 1));
}

Triple batchNormalize(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                      const Tensor& running_mean, const Tensor& running_var, bool training,
                      double momentum, double eps) {
  const int64_t channels = channelsOf(op, input);
  requireFloat(op, input);
  checkChannels(op, "weight", weight, channels);
  checkChannels(op, "bias", bias, channels);
  checkChannels(op, "running_mean", running_mean, channels);
  checkChannels(op, "running_var", running_var, channels);
  const Tensor none = Tensor::empty(DimVector{0}, input.dtype(), Device{kAhead, -1});
  if (input.numel() == 0) return {here(input).clone(), none, none};
  const MemoryFormat format = input.suggestMemoryFormat();
  const Tensor x = here(input).contiguous();
  const int64_t count = input.numel() / channels;
  Moments m;
  if (training) {
    m = momentsOf(op, x, x.size(0) * channels, channels);
    update(running_mean, m.mean, momentum);
    update(running_var, unbiased(m.variance, count), momentum);
  } else {
    WICK_CHECK(running_mean.defined() && running_var.defined(),
               "{}: expected running_mean and running_var to be defined outside of training", op);
    m = {wide(running_mean), wide(running_var)};
  }
  const Tensor rstd = inverseRoot(m.variance, eps);
  const Tensor scale = weight.defined() ? Tensor(ops::mul(rstd, wide(weight))) : rstd;
  const Tensor moved = ops::mul(m.mean, scale);
  const Tensor shift = bias.defined() ? ops::sub(wide(bias), moved) : ops::neg(moved);
  const Tensor out = scaled(x, scale, shift).view(input.sizes()).contiguous(format);
  if (!training) return {out, none, none};
  return {out, m.mean.to(input.dtype()), rstd.to(input.dtype())};
}

Triple nativeBatchNorm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, bool training,
                       double momentum, double eps) {
  return batchNormalize("native_batch_norm", input, weight, bias, running_mean, running_var,
                        training, momentum, eps);
}
Tensor batchNorm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const Tensor& running_mean, const Tensor& running_var, bool training,
                 double momentum, double eps, bool) {
  return std::get<0>(batchNormalize("batch_norm", input, weight, bias, running_mean, running_var,
                                    training, momentum, eps));
}
Pair batchNormUpdateStats(const Tensor& input, const Tensor& running_mean,
                          const Tensor& running_var, double momentum) {
  const char* op = "batch_norm_update_stats";
  const int64_t channels = channelsOf(op, input);
  requireFloat(op, input);
  checkChannels(op, "running_mean", running_mean, channels);
  checkChannels(op, "running_var", running_var, channels);
  WICK_CHECK(input.numel() > 0, "{}: expected an input with elements, got {}", op,
             input.describe());
  const Tensor x = here(input).contiguous();
  const Moments m = momentsOf(op, x, x.size(0) * channels, channels);
  update(running_mean, m.mean, momentum);
  update(running_var, unbiased(m.variance, input.numel() / channels), momentum);
  return {m.mean.to(input.dtype()), m.variance.to(input.dtype())};
}

Triple nativeGroupNorm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                       int64_t c, int64_t hxw, int64_t groups, double eps) {
  const char* op = "native_group_norm";
  checkPlanes(op, input, n, c, hxw);
  checkGroups(op, input, c, groups);
  requireFloat(op, input);
  checkChannels(op, "weight", weight, c);
  checkChannels(op, "bias", bias, c);
  if (input.numel() == 0) {
    const Pair none = momentsOfNothing(DimVector{n, groups}, DType::Float);
    return {here(input).clone(), std::get<0>(none), std::get<1>(none)};
  }
  const Tensor x = here(input).contiguous();
  const DimVector split{n, groups, c / groups}, rows{n, groups, 1};
  const Moments m = momentsOf(op, x, n * groups, n * groups);
  const Tensor rstd = inverseRoot(m.variance, eps);
  const auto spread = [&](const Tensor& t) { return t.view(rows).expand(split); };
  const auto parameter = [&](const Tensor& t) {
    return wide(t).view(DimVector{1, groups, c / groups}).expand(split);
  };
  const Tensor scale =
      weight.defined() ? Tensor(ops::mul(spread(rstd), parameter(weight))) : spread(rstd);
  const Tensor moved = ops::mul(spread(m.mean), scale);
  const Tensor shift = bias.defined() ? ops::sub(parameter(bias), moved) : ops::neg(moved);
  const Tensor out = scaled(x.view(DimVector{1, n * c, hxw}), scale.reshape(DimVector{n * c}),
                            shift.reshape(DimVector{n * c}))
                         .view(input.sizes());
  return {out, m.mean.to(DType::Float).view(DimVector{n, groups}),
          rstd.to(DType::Float).view(DimVector{n, groups})};
}

Triple nativeLayerNorm(const Tensor& input, const DimVector& shape, const Tensor& weight,
                       const Tensor& bias, double eps) {
  const char* op = "native_layer_norm";
  const DimVector kept = sizesOfRows(op, input, shape, weight, bias);
  const Tensor x = widened(here(input)).contiguous();
  requireFloat(op, x);
  const auto parameter = [&](const Tensor& t) {
    return t.defined() ? here(t).to(x.dtype()).contiguous() : t;
  };
  const int64_t rows = checkedNumel(kept), width = checkedNumel(shape);
  const Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  const auto [mean, rstd] = momentsOfNothing(kept, x.dtype());
  if (out.numel() > 0) {
    const double numbers[] = {eps};
    addFunction(op, fmt::format("normalizedRows<{}>", elementType(op, x)),
                {reads(x), reads(parameter(weight)), reads(parameter(bias)),
                 reads(here(Tensor::fromData(numbers, DimVector{1}))), writes(out), writes(mean),
                 writes(rstd)},
                {rows, width});
  }
  const DType dtype = input.dtype();
  return {out.to(dtype), mean.to(dtype), rstd.to(dtype)};
}

const DeviceKernel kNormalizationKernels[] = {
    {"aten::native_batch_norm", WICK_KERNEL(nativeBatchNorm)},
    {"aten::batch_norm_update_stats", WICK_KERNEL(batchNormUpdateStats)},
    {"aten::native_group_norm", WICK_KERNEL(nativeGroupNorm)},
    {"aten::native_layer_norm", WICK_KERNEL(nativeLayerNorm)},
};
// Where it has no loop form.
const DeviceKernel kNormalizationLast[] = {
    {"aten::batch_norm", WICK_KERNEL(batchNorm)},
};
const RegisterDeviceKernels kNormalizationRegistered(kAhead, kNormalizationKernels);
const RegisterDeviceKernels kNormalizationLastRegistered(kAhead, kNormalizationLast,
                                                         TableRule::Last);

}  // namespace

}  // namespace wick::aot
