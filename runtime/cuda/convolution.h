// Convolutions on CUDA devices, by cuDNN.
#pragma once

#include "runtime/kernels/convolution.h"

namespace wick::cuda {

// The convolution alone, without what is added or computed behind it. Arguments as in
// runtime/kernels/convolution.h, all on one device; of floats.
Tensor convolve(const char* op, const Tensor& input, const Tensor& weight,
                const ConvolutionParams& params, IntSpan output_size, bool channels_last);

}  // namespace wick::cuda
