// The gradient of a convolution's weight by oneDNN.
#pragma once

#include "runtime/kernels/convolution.h"

namespace wick::autograd {

// `grad` [N, C_out, …] and `input` [N, C_in, …] are float32 and not empty; the result has
// `weight_size` [C_out, C_in / groups, kernel…]. Of `params`, what says how the input was read.
Tensor weightByOneDnn(const char* op, const Tensor& grad, const Tensor& input, IntSpan weight_size,
                      const ConvolutionParams& params);

}  // namespace wick::autograd
