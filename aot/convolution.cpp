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

// As wick_aot_winograd.h has them.
constexpr int64_t kPoints = 16, kVector = 16, kBlock = 64, kRows = 6;
// Elements of scratch: about 1 MB, so that a near cache holds them; or half of the weights, which are read once for each
// part of the tiles.
constexpr int64_t kMostKept = 256 * 1024;
// For fewer tiles the method reads more weights than it saves multiplications.
constexpr int64_t kFewestTiles = 32;

bool allFinite(const Tensor& dense) {
  const float* const values = dense.data<float>();
  return std::all_of(values, values + dense.numel(), [](float v) { return std::isfinite(v); });
}

// Of images of two dimensions.
int64_t tilesOf(IntSpan output) {
  return output[0] * ((output[2] + 1) / 2) * ((output[3] + 1) / 2);
}

bool paysByWinograd(const Tensor& weight, const ConvolutionParams& p, IntSpan output) {
  if (!recordedChoices().winograd || p.stride.size() != 2 || p.groups != 1) return false;
  for (size_t d = 0; d < 2; ++d) {
    if (weight.size(static_cast<int64_t>(2 + d)) != 3 || p.stride[d] != 1 || p.dilation[d] != 1) {
      return false;
    }
  }
  return weight.size(0) % kVector == 0 && weight.size(1) % kVector == 0 &&
         tilesOf(output) >= kFewestTiles;
}

}  // namespace

Tensor packWinograd(const Tensor& weight) {
  constexpr double kTransform[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const Tensor dense = weight.contiguous();
  const float* const from = dense.data<float>();
  const int64_t results = weight.size(0), channels = weight.size(1);
  const Tensor made = Tensor::empty({kPoints * results * channels}, DType::Float);
  float* const to = made.data<float>();
  for (int64_t r = 0; r < results; ++r) {
    const int64_t first = r / kBlock * kBlock, width = std::min(kBlock, results - first);
    for (int64_t c = 0; c < channels; ++c) {
      const float* const w = from + (r * channels + c) * 9;
      for (int64_t point = 0; point < kPoints; ++point) {
        double sum = 0;
        for (int64_t i = 0; i < 9; ++i) {
          sum += kTransform[point / 4][i / 3] * static_cast<double>(w[i]) *
                 kTransform[point % 4][i % 3];
        }
        to[(point * results + first) * channels + c * width + (r - first)] =
            static_cast<float>(sum);
      }
    }
  }
  return made;
}

int64_t winogradTiles(int64_t tiles, int64_t channels, int64_t results) {
  const int64_t kept = std::max(kMostKept, kPoints * channels * results / 2);
  const int64_t most = kept / (kPoints * (channels + results)) / kRows * kRows;
  return std::min(tiles, std::max(most, kRows));
}
int64_t winogradScratch(int64_t tiles_at_once, int64_t channels, int64_t results) {
  return kPoints * (channels + results) * tiles_at_once;
}

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
  const bool by_winograd = paysByWinograd(weight, params, output);
  if (!by_winograd && !recordedChoices().standalone) {
    const std::string kernel = onednn::kernelOfConvolution(weight, has_bias, params, has_residual,
                                                           activation, input, output);
    if (kernel != "jit:avx2" && kernel != "jit_1x1:avx2") return std::nullopt;
  }
  const Tensor dense = known.contiguous();
  // Points in the padding are multiplied by zeros rather than left out.
  if (!allFinite(dense)) return std::nullopt;
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
  Recording& recording = Recording::current();
  if (by_winograd) {
    const int64_t channels = input[1], results = output[1];
    step.tiles_at_once = winogradTiles(tilesOf(output), channels, results);
    step.scratch = recording.placeOf(
        Tensor::empty(DimVector{winogradScratch(step.tiles_at_once, channels, results)},
                      DType::Float, weight.device()));
  }
  step.weights = recording.placeOf(recording.constant(
      by_winograd ? packWinograd(dense) : packConvolution(dense, params.groups)));
  return step;
}

}  // namespace wick::aot
