#include "aot/convolution.h"

#include <algorithm>
#include <cmath>

#include "aot/recording.h"
#include "aot/target.h"
#include "runtime/kernels/onednn.h"

namespace wick::aot {

namespace {

// As wick_aot_convolution.h has them.
constexpr int64_t kLanes = 8, kWidest = 4, kChannelBlock = 8, kMostPoints = 64;

}  // namespace

Tensor packConvolution(const Tensor& weight, int64_t groups) {
  const Tensor dense = weight.contiguous();
  const float* const from = dense.data<float>();
  const int64_t results = weight.size(0) / groups, channels = weight.size(1);
  const int64_t points = weight.numel() / (weight.size(0) * channels);
  const int64_t vectors = (results + kLanes - 1) / kLanes;
  const Tensor made = Tensor::empty({groups * vectors * kLanes * points * channels}, DType::Float);
  float* to = made.data<float>();
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t v = 0; v < vectors; v += kWidest) {
      const int64_t first = v * kLanes, width = std::min(kWidest, vectors - v) * kLanes;
      for (int64_t block = 0; block < channels; block += kChannelBlock) {
        for (int64_t k = 0; k < points; ++k) {
          for (int64_t c = block; c < std::min(channels, block + kChannelBlock); ++c) {
            for (int64_t r = first; r < first + width; ++r) {
              *to++ = r < results ? from[((g * results + r) * channels + c) * points + k] : 0.0f;
            }
          }
        }
      }
    }
  }
  return made;
}

std::optional<ConvolutionStep> ownConvolution(const Tensor& weight, bool has_bias,
                                              const ConvolutionParams& params, bool has_residual,
                                              Activation activation, IntSpan input,
                                              IntSpan output) {
  const size_t spatial = params.stride.size();
  const bool finishes = activation == Activation::None || activation == Activation::Relu ||
                        activation == Activation::HardTanh;
  const Tensor known = Recording::current().known(weight);
  if (params.transposed || spatial > 2 || !finishes || !known.defined()) return std::nullopt;
  const int64_t points = weight.numel() / (weight.size(0) * weight.size(1));
  if (points > kMostPoints) return std::nullopt;
  if (!recordsStandalone()) {
    const std::string kernel = onednn::kernelOfConvolution(weight, has_bias, params, has_residual,
                                                           activation, input, output);
    if (kernel != "jit:avx2" && kernel != "jit_1x1:avx2") return std::nullopt;
  }
  const Tensor dense = known.contiguous();
  const float* const values = dense.data<float>();
  // Points in the padding are multiplied by zeros rather than left out.
  if (!std::all_of(values, values + dense.numel(), [](float v) { return std::isfinite(v); })) {
    return std::nullopt;
  }
  ConvolutionStep step;
  step.samples = input[0];
  step.groups = params.groups;
  step.in_channels = input[1];
  step.out_channels = output[1];
  for (size_t d = 0; d < spatial; ++d) {
    const size_t to = 2 - spatial + d;
    step.input[to] = input[2 + d];
    step.result[to] = output[2 + d];
    step.kernel[to] = weight.size(static_cast<int64_t>(2 + d));
    step.stride[to] = params.stride[d];
    step.dilation[to] = params.dilation[d];
    step.padding[to] = params.padding[d];
  }
  step.residual_first = has_residual && onednn::addsInResult(weight);
  step.activation = activation;
  step.weights = Recording::current().placeOf(
      Recording::current().constant(packConvolution(dense, params.groups)));
  return step;
}

}  // namespace wick::aot
