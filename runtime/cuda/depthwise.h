// Convolutions of each channel by itself, on CUDA devices.
#pragma once

#include "runtime/cuda/text_kernel.h"
#include "runtime/kernels/convolution.h"

namespace wick::cuda {

// Whether depthwiseConvolution() computes it: images of two dimensions, floats, one channel a group,
// and not transposed.
bool isDepthwise(const Tensor& input, const Tensor& weight, const ConvolutionParams& params);

// The convolution with the bias (may be undefined) and, with `relu`, negative results as 0. One
// thread an element of the result; the taps are added in one order. Arguments as in
// runtime/cuda/convolution.h.
Tensor depthwiseConvolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                            const ConvolutionParams& params, IntSpan output_size,
                            bool channels_last, bool relu);

// The kernel of it: images and results lie row-major or with their channels innermost, the weight and the bias, which
// may be undefined, are contiguous.
TextKernel depthwiseKernel(const Tensor& input, const Tensor& weight, const Tensor& bias,
                           const Tensor& out, const ConvolutionParams& params, bool channels_last,
                           bool relu);

}  // namespace wick::cuda
