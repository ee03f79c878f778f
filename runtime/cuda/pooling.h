// Pooling on CUDA devices.
#pragma once

#include "runtime/kernels/pooling.h"

namespace wick::cuda {

// maxPool() and averagePool() of runtime/kernels/pooling.h. One thread a window; averages of whole
// images are sums of rows.
pooling::MaxResult maxPool(const Tensor& x, const pooling::Axes& axes, bool want_indices);
Tensor averagePool(const Tensor& x, const pooling::Axes& axes, bool count_padding,
                   std::optional<int64_t> divisor);

}  // namespace wick::cuda
