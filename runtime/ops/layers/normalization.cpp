// Batch, instance, group and layer normalization.
#include "runtime/kernels/normalization.h"

#include <cmath>
#include <limits>

#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/normalization.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {

int64_t channelsOf(const char* op, const Tensor& input) {
  WICK_CHECK(input.dim() >= 2, "{}: expected input of two or more dimensions, got {}", op,
             input.describe());
  return input.size(1);
}
void checkChannels(const char* op, const char* name, const Tensor& t, int64_t channels) {
  WICK_CHECK(!t.defined() || t.numel() == channels, "{}: {} should contain {} elements not {}", op,
             name, channels, t.defined() ? t.numel() : 0);
}
void checkGroups(const char* op, const Tensor& input, int64_t channels, int64_t groups) {
  WICK_CHECK(groups > 0 && channels % groups == 0,
             "{}: Expected number of channels in input to be divisible by num_groups, but got "
             "input of shape {} and num_groups={}",
             op, formatInts(input.sizes()), groups);
}
void checkPlanes(const char* op, const Tensor& input, int64_t n, int64_t c, int64_t hxw) {
  WICK_CHECK(n >= 0 && c >= 0 && hxw >= 0 && checkedNumel(DimVector{n, c, hxw}) == input.numel(),
             "{}: {} is not {} x {} x {}", op, input.describe(), n, c, hxw);
}
DimVector sizesOfRows(const char* op, const Tensor& input, const DimVector& shape,
                      const Tensor& weight, const Tensor& bias) {
  const auto n = static_cast<int64_t>(shape.size());
  const int64_t leading = input.dim() - n;
  WICK_CHECK(n >= 1, "Expected normalized_shape to be at least 1-dimensional");
  WICK_CHECK(leading >= 0 && std::equal(shape.begin(), shape.end(), input.sizes().begin() + leading,
                                        input.sizes().end()),
             "{}: Given normalized_shape={}, expected input with the same trailing sizes, but got "
             "input of size {}",
             op, formatInts(shape), formatInts(input.sizes()));
  for (const Tensor* t : {&weight, &bias}) {
    WICK_CHECK(
        !t->defined() || DimVector(t->sizes()) == shape,
        "{}: Expected weight and bias to be of same shape as normalized_shape {}, but got {}", op,
        formatInts(shape), t->defined() ? formatInts(t->sizes()) : "");
  }
  DimVector kept(input.sizes().first(static_cast<size_t>(leading)));
  kept.resize(static_cast<size_t>(input.dim()), 1);
  return kept;
}
std::tuple<Tensor, Tensor, Tensor> gradientsOfNothing(const Tensor& input) {
  const Tensor zeros = Tensor::zeros(DimVector{input.size(1)}, input.dtype(), input.device());
  return {Tensor::zeros(input.sizes(), input.dtype(), input.device()), zeros, zeros.clone()};
}

namespace {

using normalization::MeanVariance;

CountedVector<double> toDoubles(const Tensor& t) {
  Tensor d = t.to(DType::Double).contiguous();
  return CountedVector<double>(d.data<double>(), d.data<double>() + d.numel());
}

Tensor fromDoubles(const CountedVector<double>& values, DType dtype) {
  return Tensor::fromData(values.data(), DimVector{static_cast<int64_t>(values.size())}).to(dtype);
}

void updateRunning(const char* op, const Tensor& running, const CountedVector<double>& now,
                   double momentum) {
  if (!running.defined()) return;
  WICK_CHECK(running.storage()->writable(), "{}: the running statistics are read-only", op);
  CountedVector<double> values = toDoubles(running);
  for (size_t c = 0; c < values.size(); ++c) {
    values[c] = momentum * now[c] + (1 - momentum) * values[c];
  }
  running.storage()->bumpVersion();
  running.copyFrom(fromDoubles(values, running.dtype()).view(running.sizes()));
}

double roundedTo(double v, DType dtype) {
  const auto single = static_cast<float>(v);
  if (dtype == DType::Half) return static_cast<float>(Half(single));
  return dtype == DType::BFloat16 ? static_cast<float>(BFloat16(single)) : v;
}

// The normalized input and, in training, what it was normalized with: mean and 1 / deviation, first
// rounded to `kept` if that has 16 bits, and so is the variance with `eps` (of bfloat16 the
// variance, after the sum that it is the mean of).
Triple batchNormalize(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                      const Tensor& running_mean, const Tensor& running_var, bool training,
                      double momentum, double eps, DType kept = DType::Double) {
  if (input.dim() >= 1 && input.numel() == 0) {  // the running statistics stay as they are
    Tensor none = Tensor::empty(DimVector{0}, input.dtype());
    return {input.clone(), none, none};
  }
  const int64_t channels = channelsOf(op, input);
  if (isReducedFloat(input.dtype())) {
    // What training keeps has the dtype of the parameters.
    bool mixed = false;
    for (const Tensor* t : {&weight, &bias, &running_mean, &running_var}) {
      mixed |= t->defined() && t->dtype() == DType::Float;
    }
    kept = mixed && training ? DType::Float : input.dtype();
    auto [out, mean, rstd] = batchNormalize(op, widened(input), weight, bias, running_mean,
                                            running_var, training, momentum, eps, kept);
    return {out.to(input.dtype()), mean.to(kept), rstd.to(kept)};
  }
  checkChannels(op, "weight", weight, channels);
  checkChannels(op, "bias", bias, channels);
  checkChannels(op, "running_mean", running_mean, channels);
  checkChannels(op, "running_var", running_var, channels);
  size_t n = static_cast<size_t>(channels);
  CountedVector<double> mean(n), rstd(n), scale(n), shift(n);
  if (training) {
    int64_t count = channels == 0 ? 0 : input.numel() / channels;
    WICK_CHECK(count > 0 || channels == 0,
               "{}: expected more than 1 value per channel when "
               "training, got input size {}",
               op, formatInts(input.sizes()));
    CountedVector<double> unbiased(n);
    auto statistics = normalization::channelStatistics(op, input);
    const auto all = static_cast<double>(count);
    for (size_t c = 0; c < n; ++c) {
      mean[c] = statistics[c].mean;
      double variance = roundedTo(statistics[c].variance + eps, kept);
      unbiased[c] = statistics[c].variance * all / (all - 1);
      if (kept == DType::BFloat16) {
        // The sum of the squares and its quotients are rounded there.
        const double squares = roundedTo(statistics[c].variance * all, kept);
        variance = roundedTo(squares / roundedTo(all, kept), kept) + eps;
        unbiased[c] = roundedTo(squares / roundedTo(all - 1, kept), kept);
      }
      rstd[c] = 1 / std::sqrt(variance);
    }
    updateRunning(op, running_mean, mean, momentum);
    updateRunning(op, running_var, unbiased, momentum);
    for (size_t c = 0; c < n; ++c) {
      mean[c] = roundedTo(mean[c], kept);
      rstd[c] = roundedTo(rstd[c], kept);
    }
  } else {
    WICK_CHECK(running_mean.defined() && running_var.defined(),
               "{}: expected running_mean and running_var to be defined outside of training", op);
    mean = toDoubles(running_mean);
    CountedVector<double> variance = toDoubles(running_var);
    for (size_t c = 0; c < n; ++c) rstd[c] = 1 / std::sqrt(variance[c] + eps);
  }
  CountedVector<double> w = weight.defined() ? toDoubles(weight) : CountedVector<double>(n, 1);
  CountedVector<double> b = bias.defined() ? toDoubles(bias) : CountedVector<double>(n, 0);
  for (size_t c = 0; c < n; ++c) {
    scale[c] = rstd[c] * w[c];
    shift[c] = b[c] - mean[c] * scale[c];
  }
  Tensor out = normalization::scaleChannels(op, input, scale, shift);
  if (!training) {
    Tensor none = Tensor::empty(DimVector{0}, input.dtype());
    return {out, none, none};
  }
  return {out, fromDoubles(mean, input.dtype()), fromDoubles(rstd, input.dtype())};
}

Tensor batchNorm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const Tensor& running_mean, const Tensor& running_var, bool training,
                 double momentum, double eps, bool) {
  return std::get<0>(batchNormalize("batch_norm", input, weight, bias, running_mean, running_var,
                                    training, momentum, eps));
}

Triple nativeBatchNorm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, bool training,
                       double momentum, double eps) {
  return batchNormalize("native_batch_norm", input, weight, bias, running_mean, running_var,
                        training, momentum, eps);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t> batchNormImplIndex(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps, bool) {
  auto [out, mean, rstd] = batchNormalize("_batch_norm_impl_index", input, weight, bias,
                                          running_mean, running_var, training, momentum, eps);
  return {out, mean, rstd, Tensor::empty(DimVector{0}, DType::Byte), 0};
}

// Mean and variance of the channels; the running statistics take a part of these.
std::tuple<Tensor, Tensor> batchNormUpdateStats(const Tensor& input, const Tensor& running_mean,
                                                const Tensor& running_var, double momentum) {
  const char* op = "batch_norm_update_stats";
  const int64_t channels = channelsOf(op, input);
  checkChannels(op, "running_mean", running_mean, channels);
  checkChannels(op, "running_var", running_var, channels);
  WICK_CHECK(input.numel() > 0, "{}: expected an input with elements, got {}", op,
             input.describe());
  const double count = static_cast<double>(input.numel() / channels);
  CountedVector<double> mean, variance, unbiased;
  for (const auto& s : normalization::channelStatistics(op, widened(input))) {
    mean.push_back(s.mean);
    variance.push_back(s.variance);
    unbiased.push_back(s.variance * count / (count - 1));
  }
  updateRunning(op, running_mean, mean, momentum);
  updateRunning(op, running_var, unbiased, momentum);
  return {fromDoubles(mean, input.dtype()), fromDoubles(variance, input.dtype())};
}

// Every sample's channels as channels of one sample; running statistics average over the samples.
Tensor instanceNorm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                    double momentum, double eps, bool) {
  const char* op = "instance_norm";
  WICK_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()),
             "Expected running_mean and running_var to be defined when use_input_stats is false");
  const int64_t channels = channelsOf(op, input), samples = input.size(0);
  DimVector shape(input.sizes());
  shape[0] = 1;
  shape[1] = samples * channels;
  auto repeated = [&](const Tensor& t) {
    if (!t.defined()) return t;
    WICK_CHECK(t.numel() == channels, "{}: expected {} elements, got {}", op, channels,
               t.describe());
    Tensor row = t.view(DimVector{1, channels}).expand(DimVector{samples, channels});
    return row.clone(MemoryFormat::Contiguous).view(DimVector{samples * channels});
  };
  Tensor mean = repeated(running_mean), var = repeated(running_var);
  const Tensor x = input.contiguous().view(shape), w = repeated(weight), b = repeated(bias);
  const bool here = input.device().isCpu();
  Tensor out = here
                   ? batchNorm(x, w, b, mean, var, use_input_stats, momentum, eps, false)
                   : ops::nativeBatchNorm.all(x, w, b, mean, var, use_input_stats, momentum, eps)[0]
                         .toTensor();
  auto writeBack = [&](const Tensor& running, const Tensor& all) {
    if (!running.defined() || !use_input_stats || samples == 0) return;
    running.storage()->bumpVersion();
    if (!here) {
      // One sample after the other, each with its share.
      const Tensor shares =
          ops::divScalar(all.to(DType::Double), Scalar(static_cast<double>(samples)));
      Tensor sum = shares.narrow(0, 0, channels);
      for (int64_t n = 1; n < samples; ++n) {
        sum = ops::add(sum, shares.narrow(0, n * channels, channels));
      }
      running.copyFrom(sum.to(running.dtype()).view(running.sizes()));
      return;
    }
    CountedVector<double> each = toDoubles(all), average(static_cast<size_t>(channels));
    for (size_t i = 0; i < each.size(); ++i) {
      average[i % average.size()] += each[i] / static_cast<double>(samples);
    }
    running.copyFrom(fromDoubles(average, running.dtype()).view(running.sizes()));
  };
  writeBack(running_mean, mean);
  writeBack(running_var, var);
  return out.view(input.sizes());
}

Triple groupNormalize(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                      int64_t samples, int64_t channels, int64_t groups, double eps) {
  checkGroups(op, input, channels, groups);
  checkChannels(op, "weight", weight, channels);
  checkChannels(op, "bias", bias, channels);
  if (isReducedFloat(input.dtype())) {
    auto [out, mean, rstd] = groupNormalize(op, widened(input), widened(weight), widened(bias),
                                            samples, channels, groups, eps);
    return {out.to(input.dtype()), mean.to(input.dtype()), rstd.to(input.dtype())};
  }
  // Any number of groups divides no channels at all.
  size_t n = static_cast<size_t>(checkedNumel(DimVector{samples, channels}));
  size_t rows = static_cast<size_t>(checkedNumel(DimVector{samples, groups}));
  // Images with their channels innermost stay so; all else is taken row by row.
  const bool last = isChannelsLast(input) && input.dtype() == DType::Float &&
                    input.size(0) == samples && input.size(1) == channels;
  Tensor x = last ? input.contiguous(input.suggestMemoryFormat()) : input.contiguous();
  CountedVector<MeanVariance> statistics(rows);
  if (x.numel() > 0) {
    statistics = last ? normalization::groupStatistics(op, x, groups)
                      : normalization::rowStatistics(op, x, static_cast<int64_t>(rows));
  }
  CountedVector<double> w(n, 1), b(n, 0), mean(rows), rstd(rows), scale(n), shift(n);
  if (weight.defined()) w = toDoubles(weight);
  if (bias.defined()) b = toDoubles(bias);
  size_t c_count = static_cast<size_t>(channels), each = c_count / static_cast<size_t>(groups);
  for (size_t r = 0; r < rows; ++r) {
    mean[r] = statistics[r].mean;
    rstd[r] = x.numel() > 0 ? 1 / std::sqrt(statistics[r].variance + eps)
                            : std::numeric_limits<double>::quiet_NaN();
  }
  for (size_t i = 0; i < n; ++i) {
    size_t c = i % c_count, r = i / each;
    scale[i] = rstd[r] * w[c];
    shift[i] = b[c] - mean[r] * scale[i];
  }
  Tensor out = x;
  if (last && x.numel() > 0) {
    out = normalization::scaleChannels(op, x, scale, shift);
  } else if (x.numel() > 0) {
    Tensor flat = x.view(DimVector{samples, channels, x.numel() / static_cast<int64_t>(n)});
    out = normalization::scaleChannels(op, flat, scale, shift).view(input.sizes());
  }
  DimVector shape{samples, groups};
  return {out, fromDoubles(mean, input.dtype()).view(shape),
          fromDoubles(rstd, input.dtype()).view(shape)};
}

Tensor groupNorm(const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                 double eps, bool) {
  const int64_t channels = channelsOf("group_norm", input);
  Tensor out = std::get<0>(
      groupNormalize("group_norm", input, weight, bias, input.size(0), channels, groups, eps));
  return isChannelsLast(input) ? out.contiguous(input.suggestMemoryFormat()) : out;
}

Triple nativeGroupNorm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                       int64_t c, int64_t hxw, int64_t groups, double eps) {
  checkPlanes("native_group_norm", input, n, c, hxw);
  return groupNormalize("native_group_norm", input, weight, bias, n, c, groups, eps);
}

Triple layerNormalize(const char* op, const Tensor& input, const DimVector& shape,
                      const Tensor& weight, const Tensor& bias, double eps, bool statistics) {
  const DimVector kept = sizesOfRows(op, input, shape, weight, bias);
  DType dtype = input.dtype();
  Tensor x = widened(input).contiguous();
  auto parameter = [&](const Tensor& t) { return t.defined() ? t.to(x.dtype()).contiguous() : t; };
  Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  Tensor mean, rstd;
  if (statistics) {
    mean = Tensor::empty(kept, x.dtype());
    rstd = Tensor::empty(kept, x.dtype());
  }
  int64_t width = checkedNumel(shape);
  normalization::normalizeRows(op, x, width, parameter(weight), parameter(bias), eps, out, mean,
                               rstd);
  if (!statistics) return {out.to(dtype), mean, rstd};
  if (width == 0) {
    mean.fill(0);
    rstd.fill(std::numeric_limits<double>::quiet_NaN());
  }
  return {out.to(dtype), mean.to(dtype), rstd.to(dtype)};
}

Tensor layerNorm(const Tensor& input, const DimVector& shape, const Tensor& weight,
                 const Tensor& bias, double eps, bool) {
  return std::get<0>(layerNormalize("layer_norm", input, shape, weight, bias, eps, false));
}
Triple nativeLayerNorm(const Tensor& input, const DimVector& shape, const Tensor& weight,
                       const Tensor& bias, double eps) {
  return layerNormalize("native_layer_norm", input, shape, weight, bias, eps, true);
}

#define WICK_BN_ARGS                                                                              \
  "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool " \
  "training, float momentum, float eps"

// What a record says of layers that keep statistics in training, and of those that only do that.
#define WICK_KEEPS_STATISTICS(condition) nullptr, "running_mean running_var" condition

constexpr OperatorRecord kNormalizationRecords[] = {
    {"aten::batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float "
     "momentum) -> (Tensor, Tensor)",
     WICK_KERNEL(batchNormUpdateStats), kNoFlags, nullptr, WICK_KEEPS_STATISTICS("")},
    {"aten::batch_norm" WICK_BN_ARGS ", bool cudnn_enabled) -> Tensor", WICK_KERNEL(batchNorm),
     kKeepsOrder, ops::shapes::normalized, WICK_KEEPS_STATISTICS(" if training")},
    {"aten::native_batch_norm" WICK_BN_ARGS ") -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(nativeBatchNorm), kNoFlags, nullptr, WICK_KEEPS_STATISTICS(" if training")},
    {"aten::_batch_norm_impl_index" WICK_BN_ARGS
     ", bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)",
     WICK_KERNEL(batchNormImplIndex), kNoFlags, nullptr, WICK_KEEPS_STATISTICS(" if training")},
    {"aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
     "Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) "
     "-> Tensor",
     WICK_KERNEL(instanceNorm), kNeutralLast | kKeepsOrder, ops::shapes::normalized,
     WICK_KEEPS_STATISTICS(" if use_input_stats")},
    {"aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
     "float eps=1e-05, bool cudnn_enabled=True) -> Tensor",
     WICK_KERNEL(groupNorm), kCastFull | kKeepsOrder, ops::shapes::normalized},
    {"aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, "
     "int group, float eps) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(nativeGroupNorm)},
    {"aten::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? "
     "bias=None, float eps=1e-05, bool cudnn_enable=True) -> Tensor",
     WICK_KERNEL(layerNorm), kCastFull | kRowMajor, ops::shapes::normalized},
    {"aten::native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
     "float eps) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(nativeLayerNorm), kCastFull},
};

const RegisterOperators kNormalizationRegistered(kNormalizationRecords);

}  // namespace
}  // namespace wick
