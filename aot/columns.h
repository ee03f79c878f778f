// Convolutions as products of patches.
#pragma once

#include <functional>

#include "core/tensor.h"
#include "runtime/kernels/convolution.h"

namespace wick::aot {

using BatchedProduct = std::function<Tensor(const char* op, const Tensor& a, const Tensor& b)>;

// As the engine convolves where no library does: patches of the images as columns, times the weight as a matrix; a transposed
// one the other way round. `x` and `weight` are dense; the result, of `size`, is too.
Tensor convolveByColumns(const char* op, const Tensor& x, const Tensor& weight,
                         const ConvolutionParams& params, IntSpan size,
                         const BatchedProduct& multiply);

}  // namespace wick::aot
