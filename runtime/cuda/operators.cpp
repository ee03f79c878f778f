// Operators on CUDA devices that are made of others.
#include <limits>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/batch_norm.h"
#include "runtime/cuda/complex_parts.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/tables.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

using Triple = std::tuple<Tensor, Tensor, Tensor>;

// ---- padding ----

// What a dimension has after padding, which may also cut.
int64_t paddedSize(const char* op, int64_t size, int64_t before, int64_t after) {
  int64_t n = 0;
  // What is cut is negated below.
  constexpr int64_t kLeast = -std::numeric_limits<int64_t>::max();
  WICK_CHECK(before >= kLeast && after >= kLeast && !__builtin_add_overflow(size, before, &n) &&
                 !__builtin_add_overflow(n, after, &n),
             "{}: {} elements cannot be padded by {} and {}", op, size, before, after);
  return n;
}

// The positions of the input's elements that the padded dimension shows.
Tensor paddedPositions(const char* op, const std::string& mode, int64_t size, int64_t before,
                       int64_t after) {
  const int64_t n = paddedSize(op, size, before, after);
  WICK_CHECK(n >= 0, "{}: the padded size {} is negative", op, n);
  if (mode == "reflect") {
    WICK_CHECK(before < size && after < size,
               "{}: padding size should be less than the corresponding input dimension, got {} and "
               "{} for {}",
               op, before, after, size);
  }
  WICK_CHECK(size > 0 || n == 0, "{}: a dimension without elements cannot be padded", op);
  Tensor positions = Tensor::empty(DimVector{n}, DType::Long);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = i - before;
    if (mode == "reflect") {
      if (at < 0) at = -at;
      if (at >= size) at = 2 * (size - 1) - at;
    } else if (mode == "circular") {
      at = (at % size + size) % size;
    } else {
      at = std::clamp<int64_t>(at, 0, size - 1);
    }
    positions.data<int64_t>()[i] = at;
  }
  return positions;
}

Tensor padConstant(const Tensor& self, const DimVector& pad, const Scalar& value) {
  WICK_CHECK(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size() / 2) <= self.dim(),
             "constant_pad_nd: {} numbers do not pad a tensor of {} dimensions", pad.size(),
             self.dim());
  DimVector sizes(self.sizes());
  Tensor from = self;
  for (size_t i = 0; 2 * i < pad.size(); ++i) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(i);
    sizes[static_cast<size_t>(d)] =
        paddedSize("constant_pad_nd", self.size(d), pad[2 * i], pad[2 * i + 1]);
    WICK_CHECK(sizes[static_cast<size_t>(d)] >= 0,
               "constant_pad_nd: the size of dimension {} is "
               "negative",
               d);
  }
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device(), self.suggestMemoryFormat());
  ops::fillWith(out, value);
  Tensor to = out;
  for (size_t i = 0; 2 * i < pad.size(); ++i) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(i);
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t skipped = std::max<int64_t>(0, -before), size = self.size(d);
    const int64_t kept = size - skipped - std::max<int64_t>(0, -after);
    if (kept <= 0) return out;
    from = from.narrow(d, skipped, kept);
    to = to.narrow(d, std::max<int64_t>(0, before), kept);
  }
  to.copyFrom(from);
  return out;
}

Tensor padPositions(const char* op, const Tensor& self, const DimVector& pad,
                    const std::string& mode) {
  static const OperatorHandle kIndexSelect{"aten::index_select", ""};
  WICK_CHECK(pad.size() % 2 == 0 && static_cast<int64_t>(pad.size() / 2) <= self.dim(),
             "{}: {} numbers do not pad a tensor of {} dimensions", op, pad.size(), self.dim());
  Tensor out = self;
  for (size_t i = 0; 2 * i < pad.size(); ++i) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(i);
    const Tensor positions = paddedPositions(op, mode, self.size(d), pad[2 * i], pad[2 * i + 1]);
    out = kIndexSelect(out, d, tableOn(self.device(), positions));
  }
  return out;
}
Tensor pad(const Tensor& self, const DimVector& pad, const std::string& mode,
           std::optional<double> value) {
  if (mode == "constant") return padConstant(self, pad, Scalar(value.value_or(0)));
  WICK_CHECK(mode == "reflect" || mode == "replicate" || mode == "circular",
             "pad: unrecognised padding mode {}", mode);
  return padPositions("pad", self, pad, mode);
}
Tensor reflectionPad(const Tensor& self, const DimVector& padding) {
  return padPositions("reflection_pad", self, padding, "reflect");
}
Tensor replicationPad(const Tensor& self, const DimVector& padding) {
  return padPositions("replication_pad", self, padding, "replicate");
}

Tensor flip(const Tensor& self, const DimVector& dims) {
  static const OperatorHandle kIndexSelect{"aten::index_select", ""};
  Tensor out = self;
  for (const int64_t dim : dims) {
    const int64_t d = wrapDim(dim, self.dim());
    if (self.dim() == 0) continue;
    Tensor positions = Tensor::empty(DimVector{self.size(d)}, DType::Long);
    for (int64_t i = 0; i < self.size(d); ++i) positions.data<int64_t>()[i] = self.size(d) - 1 - i;
    out = kIndexSelect(out, d, tableOn(self.device(), positions));
  }
  return out.isSame(self) ? self.clone() : out;
}

Tensor repeatInterleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                        std::optional<int64_t>) {
  static const OperatorHandle kIndexSelect{"aten::index_select", ""};
  WICK_CHECK(repeats >= 0, "Repeats must be non-negative");
  const Tensor from = dim && self.dim() > 0 ? self : self.reshape(DimVector{-1});
  const int64_t d = dim ? wrapDim(*dim, from.dim()) : 0;
  const int64_t n = from.size(d);
  int64_t length = 0;
  WICK_CHECK(!__builtin_mul_overflow(n, repeats, &length),
             "repeat_interleave: {} elements repeated {} times are too many", n, repeats);
  Tensor positions = Tensor::empty(DimVector{length}, DType::Long);
  for (int64_t i = 0; i < length; ++i) positions.data<int64_t>()[i] = i / repeats;
  return kIndexSelect(from, d, tableOn(self.device(), positions));
}

Tensor sumToSize(const Tensor& self, const DimVector& size) {
  if (size.empty()) return ops::sum(self);
  const int64_t lead = self.dim() - static_cast<int64_t>(size.size());
  DimVector dims;
  bool fits = lead >= 0;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t wanted = d < lead ? 1 : size[static_cast<size_t>(d - lead)];
    fits = d < lead || wanted == 1 || wanted == self.size(d);
    if (d < lead || (wanted == 1 && self.size(d) != 1)) dims.push_back(d);
  }
  WICK_CHECK(fits, "size {} is not expandable to size {}.", formatInts(size),
             formatInts(self.sizes()));
  return dims.empty() ? self : ops::sumDims(self, dims, true).reshape(size);
}

// ---- layers ----

Tensor prelu(const Tensor& self, const Tensor& weight) {
  static const OperatorHandle kGreater{"aten::gt", "Scalar"};
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  if (weight.numel() != 1 && self.dim() > 1) shape[1] = weight.numel();
  if (weight.numel() != 1 && self.dim() == 1) shape[0] = weight.numel();
  const Tensor w = weight.reshape(shape);
  return ops::where(kGreater(self, Scalar(0)), self, ops::mul(self, w));
}

Tensor weightNorm(const Tensor& v, const Tensor& g, int64_t dim) {
  static const OperatorHandle kNorm{"aten::linalg_vector_norm", ""};
  DimVector rest;
  for (int64_t d = 0; d < v.dim(); ++d) {
    if (dim != -1 && d == wrapDim(dim, v.dim())) continue;
    rest.push_back(d);
  }
  return ops::mul(v, ops::div(g, kNorm(v, Scalar(2), rest, true)));
}

struct Normalized {
  Tensor out;
  ChannelStatistics statistics;
};
// Of training: the batch's own statistics, which move those that are kept.
Normalized normalizeChannels(const Tensor& x, const Tensor& weight, const Tensor& bias,
                             const Tensor& mean, const Tensor& variance, bool training,
                             double momentum, double eps) {
  static const OperatorHandle kRsqrt{"aten::rsqrt", ""};
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
    statistics = {mean, kRsqrt(ops::addScalar(variance.to(wide), Scalar(eps)))};
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
// The same of each sample by itself.
Tensor instanceNorm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                    const Tensor& variance, bool use_input_stats, double momentum, double eps,
                    bool) {
  static const OperatorHandle kMean{"aten::mean", "dim"};
  WICK_CHECK(use_input_stats || (mean.defined() && variance.defined()),
             "Expected running_mean and running_var to be defined when use_input_stats is false");
  WICK_CHECK(x.dim() >= 2, "instance_norm: expected input of two or more dimensions, got {}",
             x.describe());
  const int64_t samples = x.size(0), channels = x.size(1);
  DimVector shape(x.sizes());
  shape[0] = 1;
  shape[1] = checkedNumel(DimVector{samples, channels});
  const auto repeated = [&](const Tensor& t) {
    if (!t.defined()) return t;
    WICK_CHECK(t.numel() == channels, "instance_norm: expected {} elements, got {}", channels,
               t.describe());
    return t.view(DimVector{1, channels})
        .expand(DimVector{samples, channels})
        .clone(MemoryFormat::Contiguous)
        .view(DimVector{shape[1]});
  };
  const Tensor means = repeated(mean), variances = repeated(variance);
  const Tensor out = normalizeChannels(x.contiguous().view(shape), repeated(weight), repeated(bias),
                                       means, variances, use_input_stats, momentum, eps)
                         .out.view(x.sizes());
  const auto writeBack = [&](const Tensor& kept, const Tensor& all) {
    if (!kept.defined() || !use_input_stats || samples == 0) return;
    kept.copyFrom(kMean(all.view(DimVector{samples, channels}), DimVector{0}).view(kept.sizes()));
  };
  writeBack(mean, means);
  writeBack(variance, variances);
  return out;
}
Triple nativeLayerNorm(const Tensor& x, const DimVector& shape, const Tensor& weight,
                       const Tensor& bias, double eps) {
  static const OperatorHandle kMean{"aten::mean", "dim"}, kVar{"aten::var", "correction"},
      kRsqrt{"aten::rsqrt", ""}, kNorm{"aten::layer_norm", ""};
  const Tensor out = kNorm(x, shape, weight, bias, eps, false);
  const auto n = static_cast<int64_t>(shape.size());
  DimVector dims;
  for (int64_t d = x.dim() - n; d < x.dim(); ++d) dims.push_back(d);
  const Tensor wide = x.to(wideOf(x.dtype()));
  const Tensor mean = kMean(wide, dims, true);
  return {out, mean, kRsqrt(ops::addScalar(kVar(wide, dims, int64_t{0}, true), Scalar(eps)))};
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
const DeviceKernel kKernels[] = {
    {"aten::reflection_pad1d", WICK_KERNEL(reflectionPad)},
    {"aten::reflection_pad2d", WICK_KERNEL(reflectionPad)},
    {"aten::reflection_pad3d", WICK_KERNEL(reflectionPad)},
    {"aten::replication_pad1d", WICK_KERNEL(replicationPad)},
    {"aten::replication_pad2d", WICK_KERNEL(replicationPad)},
    {"aten::replication_pad3d", WICK_KERNEL(replicationPad)},
    {"aten::prelu", WICK_KERNEL(prelu)},
    {"aten::repeat_interleave.self_int", WICK_KERNEL(repeatInterleave)},
    {"aten::_weight_norm", WICK_KERNEL(weightNorm)},
    {"aten::complex", WICK_KERNEL(complexOf)},
    {"aten::conj", WICK_KERNEL(conjComplex)},
    {"aten::_conj", WICK_KERNEL(conjComplex)},
    {"aten::_conj_physical", WICK_KERNEL(conjComplex)},
    {"aten::native_batch_norm", WICK_KERNEL(nativeBatchNorm)},
    {"aten::instance_norm", WICK_KERNEL(instanceNorm)},
    {"aten::conj_physical", WICK_KERNEL(conjComplex)},
    {"aten::sum_to_size", WICK_KERNEL(sumToSize)},
};
// What their loop form does not cover.
const DeviceKernel kLast[] = {
    {"aten::pad", WICK_KERNEL(pad)},
    {"aten::constant_pad_nd", WICK_KERNEL(padConstant)},
    {"aten::flip", WICK_KERNEL(flip)},
    {"aten::batch_norm", WICK_KERNEL(batchNorm)},
    {"aten::native_layer_norm", WICK_KERNEL(nativeLayerNorm)},
};

const RegisterDeviceKernels registered(DeviceType::CUDA, kKernels);
const RegisterDeviceKernels last(DeviceType::CUDA, kLast, TableRule::Last);

}  // namespace

}  // namespace wick::cuda
