// Normalization and pooling of quantized tensors.
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/quantized/record_flags.h"
#include "runtime/ops/quantized/values.h"

namespace wick::ops::quantized {

namespace {

// ---- batch normalization: a multiplier and an addend for each channel ----

struct Line {
  float slope;
  float addend;
};

CountedVector<Line> linesOf(const char* op, const Tensor& weight, const Tensor& bias,
                            const Tensor& mean, const Tensor& var, double eps, double in_scale,
                            double out_scale, int64_t channels) {
  const auto values = [&](const Tensor& t, const char* what) -> Tensor {
    WICK_CHECK(t.numel() == channels,
               "{}: expected {} with a value for each of {} channels, got {}", op, what, channels,
               t.describe());
    return t.to(DType::Float).contiguous();
  };
  WICK_CHECK(weight.defined(), "{}: Weight must be provided", op);
  WICK_CHECK(bias.defined(), "{}: Bias must be provided", op);
  WICK_CHECK(mean.defined() && var.defined(), "{}: expected a mean and a variance", op);
  const Tensor w = values(weight, "a weight"), b = values(bias, "a bias");
  const Tensor m = values(mean, "a mean"), v = values(var, "a variance");
  CountedVector<Line> lines(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) {
    const float inverse = 1.0f / std::sqrt(v.data<float>()[c] + static_cast<float>(eps));
    const float factor = inverse * w.data<float>()[c];
    lines[static_cast<size_t>(c)] = {
        factor * static_cast<float>(in_scale / out_scale),
        (b.data<float>()[c] - m.data<float>()[c] * factor) / static_cast<float>(out_scale)};
  }
  return lines;
}

template <bool kRelu>
Tensor batchNorm(const char* op, const Tensor& qx, const Tensor& weight, const Tensor& bias,
                 const Tensor& mean, const Tensor& var, double eps, const Grid& grid) {
  const Quantizer& q = perTensorQuantizerOf(op, qx);
  checkGrid(op, grid, qx.dtype());
  WICK_CHECK(qx.dim() >= 2, "{}: expected a tensor of two or more dimensions, got {}", op,
             qx.describe());
  const int64_t channels = qx.size(1);
  const CountedVector<Line> lines =
      linesOf(op, weight, bias, mean, var, eps, q.scale(), grid.scale, channels);
  const MemoryFormat format = qx.dim() == 4   ? MemoryFormat::ChannelsLast
                              : qx.dim() == 5 ? MemoryFormat::ChannelsLast3d
                                              : MemoryFormat::Contiguous;
  const Tensor x = contiguous(qx, format);
  Tensor result =
      emptyQuantizedLike(x, qx.dtype(), Quantizer::perTensor(grid.scale, grid.zero_point));
  const int64_t inner =
      format == MemoryFormat::Contiguous ? product(x.sizes(), 2, static_cast<size_t>(x.dim())) : 1;
  const auto zero = static_cast<float>(q.zeroPoint());
  const Rounding rounding({1, grid.zero_point}, qx.dtype());
  dispatchIntegers(qx.dtype(), [&]<class T>() {
    const T* in = integers<T>(x);
    T* out = integers<T>(result);
    // Rows of one channel, or single elements of one after the other.
    const int64_t rows = channels == 0 || inner == 0 ? 0 : x.numel() / inner;
    parallelFor(rows, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(inner, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t r = begin; r < end; ++r) {
                    const Line line = lines[static_cast<size_t>(r % channels)];
                    for (int64_t i = r * inner; i < (r + 1) * inner; ++i) {
                      const float v = line.slope * (static_cast<float>(in[i]) - zero) + line.addend;
                      int64_t integer = rounding(v);
                      if (kRelu) integer = std::max(integer, grid.zero_point);
                      out[i] = static_cast<T>(integer);
                    }
                  }
                });
  });
  return result;
}

template <bool kRelu, int kDims>
Tensor batchNormOf(const Tensor& qx, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                   const Tensor& var, double eps, double scale, int64_t zero_point) {
  const char* op = "quantized::batch_norm";
  WICK_CHECK(kDims == 0 || qx.dim() == kDims || (kDims == 3 && qx.dim() == 2),
             "{}: expected a tensor of {} dimensions, got {}", op, kDims, qx.describe());
  return batchNorm<kRelu>(op, qx, weight, bias, mean, var, eps, {scale, zero_point});
}

// ---- the other norms, on real numbers ----

Tensor layerNorm(const Tensor& input, const DimVector& shape, const Tensor& weight,
                 const Tensor& bias, double eps, double scale, int64_t zero_point) {
  const char* op = "quantized::layer_norm";
  perTensorQuantizerOf(op, input);
  return quantize(op, ops::layerNorm(dequantize(op, input), shape, weight, bias, eps),
                  {scale, zero_point}, input.dtype());
}
Tensor groupNorm(const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                 double eps, double scale, int64_t zero_point) {
  const char* op = "quantized::group_norm";
  perTensorQuantizerOf(op, input);
  return quantize(op, ops::groupNorm(dequantize(op, input), groups, weight, bias, eps),
                  {scale, zero_point}, input.dtype());
}
Tensor instanceNorm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                    double scale, int64_t zero_point) {
  WICK_CHECK(input.dim() >= 2,
             "quantized::instance_norm: expected a tensor of two or more dimensions, got {}",
             input.describe());
  return groupNorm(input, input.size(1), weight, bias, eps, scale, zero_point);
}

// ---- pooling ----

Tensor pooled(const OperatorHandle& pool, const char* op, const Tensor& qx, const DimVector& kernel,
              const DimVector& stride, const DimVector& padding, const DimVector& dilation,
              bool ceil_mode) {
  perTensorQuantizerOf(op, qx);
  return pool(qx, kernel, stride, padding, dilation, ceil_mode);
}
Tensor maxPool1d(const Tensor& qx, const DimVector& kernel, const DimVector& stride,
                 const DimVector& padding, const DimVector& dilation, bool ceil_mode) {
  static const OperatorHandle kPool("aten::max_pool1d", "");
  return pooled(kPool, "quantized_max_pool1d", qx, kernel, stride, padding, dilation, ceil_mode);
}
Tensor maxPool2d(const Tensor& qx, const DimVector& kernel, const DimVector& stride,
                 const DimVector& padding, const DimVector& dilation, bool ceil_mode) {
  static const OperatorHandle kPool("aten::max_pool2d", "");
  return pooled(kPool, "quantized_max_pool2d", qx, kernel, stride, padding, dilation, ceil_mode);
}

#define WICK_BATCH_NORM(name, dims, relu)                                                  \
  {                                                                                        \
    "quantized::" name                                                                     \
    "(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float " \
    "output_scale, int output_zero_point) -> Tensor",                                      \
        WICK_CPU_KERNEL((batchNormOf<relu, dims>)), kPlain                                 \
  }
#define WICK_POOL_ARGUMENTS \
  "(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) "

const OperatorRecord kLayersRecords[] = {
    WICK_BATCH_NORM("batch_norm", 0, false),
    WICK_BATCH_NORM("batch_norm_relu", 0, true),
    WICK_BATCH_NORM("batch_norm1d", 3, false),
    WICK_BATCH_NORM("batch_norm1d_relu", 3, true),
    WICK_BATCH_NORM("batch_norm2d", 4, false),
    WICK_BATCH_NORM("batch_norm2d_relu", 4, true),
    WICK_BATCH_NORM("batch_norm3d", 5, false),
    WICK_BATCH_NORM("batch_norm3d_relu", 5, true),
    {"aten::quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor "
     "var, float eps, float output_scale, int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL((batchNormOf<false, 4>)), kPlain},
    {"quantized::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
     "float eps, float output_scale, int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL(layerNorm), kPlain},
    {"quantized::group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps, "
     "float output_scale, int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL(groupNorm), kPlain},
    {"quantized::instance_norm(Tensor input, Tensor? weight, Tensor? bias, float eps, float "
     "output_scale, int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL(instanceNorm), kPlain},
    {"quantized::max_pool1d" WICK_POOL_ARGUMENTS "-> Tensor", WICK_CPU_KERNEL(maxPool1d), kPlain},
    {"quantized::max_pool2d" WICK_POOL_ARGUMENTS "-> Tensor", WICK_CPU_KERNEL(maxPool2d), kPlain},
    {"aten::quantized_max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
     "padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
     WICK_CPU_KERNEL(maxPool1d), kPlain},
    {"aten::quantized_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
     "padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
     WICK_CPU_KERNEL(maxPool2d), kPlain},
};
const RegisterOperators kLayersRegistered(kLayersRecords);

}  // namespace

}  // namespace wick::ops::quantized
