// Convolutions of each channel by itself over row-major images.
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
