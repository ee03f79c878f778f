// Convolutions of numbers that no library takes, on CUDA devices.
#pragma once

#include "runtime/kernels/convolution.h"

namespace wick::cuda {

// Of integers, whose sums wrap around: one thread an element of the result, which is row-major.
// Arguments as in runtime/kernels/convolution.h; `output_size` is what the shapes give.
Tensor convolveIntegers(const char* op, const Tensor& input, const Tensor& weight,
                        const ConvolutionParams& params, IntSpan output_size);

}  // namespace wick::cuda
