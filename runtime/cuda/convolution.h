// Convolutions on CUDA devices, by cuDNN.
#pragma once

#include <optional>

#include "runtime/kernels/convolution.h"

namespace wick::cuda {

// Images of one dimension are rows of images of two; and a number a dimension with `before` in front of that of the rows.
Tensor asImages(const Tensor& t);
DimVector forImages(const DimVector& v, int64_t before);
MemoryFormat formatFor(const Tensor& given, bool channels_last);

// Arguments as in runtime/kernels/convolution.h, all on one device; of floats. `params` pads both
// sides alike.

// The convolution alone, without what is added or computed behind it.
Tensor convolve(const char* op, const Tensor& input, const Tensor& weight,
                const ConvolutionParams& params, IntSpan output_size, bool channels_last);

// relu(convolution + bias + residual), each of the three only where it is asked for, at once;
// nothing where cuDNN has no engine for that. Not for transposed convolutions.
std::optional<Tensor> convolveAndFinish(const char* op, const Tensor& input, const Tensor& weight,
                                        const ConvolutionParams& params, IntSpan output_size,
                                        bool channels_last, const Tensor& bias,
                                        const Tensor& residual, bool relu);

// The gradient for the weight, which has `weight_size`, of a convolution that is not transposed.
Tensor convolutionWeightGradient(const char* op, const Tensor& grad, const Tensor& input,
                                 IntSpan weight_size, const ConvolutionParams& params);

}  // namespace wick::cuda
