// Statistics of channels and what follows from them, on CUDA devices.
//
// Images are [N, C, pixels…] of floats with one or more elements. Numbers of channels are float64 for
// float64 images and float32 for others. Sums are made in an order that depends on sizes alone.
#pragma once

#include "core/tensor.h"

namespace wick::cuda {

// Both [C], of numbers of channels.
struct ChannelStatistics {
  Tensor mean;
  Tensor rstd;  // 1 / sqrt(variance + eps); the variance is that of the batch itself
};
// What moves with the batch; tensors may be undefined: kept = kept * (1 - momentum) + seen * momentum,
// where the variance seen is that of a sample. Any float dtype.
struct RunningStatistics {
  Tensor mean, variance;
  double momentum = 0;
};
ChannelStatistics channelStatistics(const Tensor& images, double eps,
                                    const RunningStatistics& running);

// (x - mean) * (rstd * weight) + bias, of the images' dtype and memory format. The others are [C], of
// any float dtype; weight and bias may be undefined.
Tensor normalizedChannels(const Tensor& images, const ChannelStatistics& statistics,
                          const Tensor& weight, const Tensor& bias);

// The gradients for the images, of their dtype, for the weight and for the bias, of numbers of
// channels. The weight may be undefined.
struct BatchNormGradients {
  Tensor images, weight, bias;
};
BatchNormGradients batchNormGradients(const Tensor& grad, const Tensor& images,
                                      const ChannelStatistics& statistics, const Tensor& weight);

}  // namespace wick::cuda
