// Operators on CUDA devices that are made of others.
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/batch_norm.h"
#include "runtime/cuda/complex_parts.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/tables.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

Tensor flip(const Tensor& self, const DimVector& dims) {
  Tensor out = self;
  std::vector<bool> seen(static_cast<size_t>(self.dim()) + 1);
  for (const int64_t dim : dims) {
    const int64_t d = wrapDim(dim, self.dim());
    WICK_CHECK(!seen[static_cast<size_t>(d)], "dim {} appears multiple times in the list of dims",
               d);
    seen[static_cast<size_t>(d)] = true;
    if (self.dim() == 0) continue;
    Tensor positions = Tensor::empty(DimVector{self.size(d)}, DType::Long);
    for (int64_t i = 0; i < self.size(d); ++i) positions.data<int64_t>()[i] = self.size(d) - 1 - i;
    out = ops::indexSelect(out, d, tableOn(self.device(), positions));
  }
  return out.isSame(self) ? self.clone() : out;
}

// ---- layers ----

struct Normalized {
  Tensor out;
  ChannelStatistics statistics;
};
// Of training: the batch's own statistics, which move those that are kept.
Normalized normalizeChannels(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const Tensor& mean, const Tensor& variance, bool training,
                             double momentum, double eps) {
  if (x.dim() >= 1 && x.numel() == 0) {  // the running statistics stay as they are
    const Tensor none = Tensor::empty(DimVector{0}, x.dtype(), x.device());
    return {x.clone(), {none, none}};
  }
  WICK_CHECK(x.dim() >= 2, "batch_norm: expected two or more dimensions, got {}", x.describe());
  WICK_CHECK(isFloating(x.dtype()), "batch_norm: expected floating-point input, got {}",
             x.describe());
  WICK_CHECK(training || (mean.defined() && variance.defined()),
             "Expected running_mean and running_var to be defined when training=False");
  for (const Tensor* t : {&weight, &bias, &mean, &variance}) {
    WICK_CHECK(!t->defined() || (t->numel() == x.size(1) && isFloating(t->dtype())),
               "batch_norm: expected {} channels, got {}", x.size(1), t->describe());
  }
  ChannelStatistics statistics;
  if (training) {
    statistics = channelStatistics(x, eps, {mean, variance, momentum});
  } else {
    const DType wide = wideOf(x.dtype());
    statistics = {mean, ops::rsqrt(ops::addScalar(variance.to(wide), Scalar(eps)))};
  }
  return {normalizedChannels(x, statistics, weight, bias), statistics};
}
Tensor batchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                 const Tensor& variance, bool training, double momentum, double eps, bool) {
  return normalizeChannels(x, weight, bias, mean, variance, training, momentum, eps).out;
}
Triple nativeBatchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& mean, const Tensor& variance, bool training, double momentum,
                       double eps) {
  const Normalized n = normalizeChannels(x, weight, bias, mean, variance, training, momentum, eps);
  if (!training) {
    const Tensor none = Tensor::empty(DimVector{0}, x.dtype(), x.device());
    return {n.out, none, none};
  }
  bool mixed = false;
  for (const Tensor* t : {&weight, &bias, &mean, &variance}) {
    mixed |= t->defined() && t->dtype() == DType::Float;
  }
  // What training keeps of reduced floats has the dtype of the parameters.
  const DType kept = isReducedFloat(x.dtype()) && mixed ? DType::Float : x.dtype();
  return {n.out, n.statistics.mean.to(kept), n.statistics.rstd.to(kept)};
}
Triple nativeLayerNorm(const Tensor& x, const DimVector& shape, const Tensor& weight,
                       const Tensor& bias, double eps) {
  const Tensor out = ops::layerNorm(x, shape, weight, bias, eps, false);
  const auto n = static_cast<int64_t>(shape.size());
  DimVector dims;
  for (int64_t d = x.dim() - n; d < x.dim(); ++d) dims.push_back(d);
  const Tensor wide = x.to(wideOf(x.dtype()));
  const Tensor mean = ops::meanDims(wide, dims, true);
  return {out, mean,
          ops::rsqrt(ops::addScalar(ops::var(wide, dims, int64_t{0}, true), Scalar(eps)))};
}

// ---- complex numbers, in two parts ----

Tensor joined(const Tensor& real, const Tensor& imaginary) {
  const DimVector sizes = broadcastShapes(real.sizes(), imaginary.sizes());
  const Tensor out = Tensor::empty(
      sizes, toComplexType(promoteTypes(real.dtype(), imaginary.dtype())), real.device());
  const Tensor parts = asParts(out);
  parts.select(-1, 0).copyFrom(real);
  parts.select(-1, 1).copyFrom(imaginary);
  return out;
}
Tensor complexOf(const Tensor& real, const Tensor& imaginary) {
  WICK_CHECK(real.dtype() == imaginary.dtype() &&
                 (real.dtype() == DType::Float || real.dtype() == DType::Double),
             "Expected both inputs to be Float or Double tensors of one dtype but got {} and {}",
             toString(real.dtype()), toString(imaginary.dtype()));
  return joined(real, imaginary);
}
Tensor conjComplex(const Tensor& t) {
  if (!isComplex(t.dtype())) return t;
  const Tensor parts = asParts(t);
  return joined(parts.select(-1, 0), ops::neg(parts.select(-1, 1)));
}
const DeviceKernel kOperatorsKernels[] = {
    {"aten::complex", WICK_KERNEL(complexOf)},
    {"aten::conj", WICK_KERNEL(conjComplex)},
    {"aten::_conj", WICK_KERNEL(conjComplex)},
    {"aten::_conj_physical", WICK_KERNEL(conjComplex)},
    {"aten::native_batch_norm", WICK_KERNEL(nativeBatchNorm)},
    {"aten::conj_physical", WICK_KERNEL(conjComplex)},
};
// What their loop form does not cover.
const DeviceKernel kOperatorsLast[] = {
    {"aten::flip", WICK_KERNEL(flip)},
    {"aten::batch_norm", WICK_KERNEL(batchNorm)},
    {"aten::native_layer_norm", WICK_KERNEL(nativeLayerNorm)},
};

const RegisterDeviceKernels kOperatorsRegistered(DeviceType::CUDA, kOperatorsKernels);
const RegisterDeviceKernels kOperatorsLastRegistered(DeviceType::CUDA, kOperatorsLast,
                                                     TableRule::Last);

}  // namespace

}  // namespace wick::cuda
