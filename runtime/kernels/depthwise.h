// Convolutions of each channel by itself over row-major images, and which convolutions are computed how.
#pragma once

#include "core/tensor.h"
#include "runtime/kernels/convolution.h"

namespace wick::depthwise {

// Whether convolvePlanes() takes this convolution: float32, one filter a channel, at most two
// spatial dimensions whose last one is walked without gaps, and a row-major input with long rows.
bool takes(const Tensor& input, const Tensor& weight, const ConvolutionParams& params,
           IntSpan output_size);

// The convolution without bias, row-major; the sums are in the order of the filter's elements.
Tensor convolvePlanes(const Tensor& input, const Tensor& weight, const ConvolutionParams& params,
                      IntSpan output_size);

}  // namespace wick::depthwise

namespace wick {

// How a convolution is computed on the CPU, by its shapes and layouts alone: what the kernels choose
// by, and whoever compiles convolutions ahead of time (aot/).
enum class ConvolutionWay {
  Library,  // oneDNN
  Images,   // products of the weight with row-major images as they lie
  Planes,   // each channel by itself
  Columns,  // patches as columns, times the weight: dtypes that oneDNN does not compute
};
ConvolutionWay convolutionWay(const Tensor& input, const Tensor& weight,
                              const ConvolutionParams& params, IntSpan output_size,
                              bool channels_last);
// Whether the result is channels-last.
bool convolvesChannelsLast(const Tensor& input, const Tensor& weight,
                           const ConvolutionParams& params);

}  // namespace wick
