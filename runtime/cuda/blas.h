// Matrix products on CUDA devices, by cuBLASLt.
#pragma once

#include "core/tensor.h"

namespace wick::cuda {

// a [B, M, K] times b [B, K, N], of floats or complex numbers; row-major. `bias` [N] may be
// undefined. `relu`: negative results become 0.
Tensor product(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias, bool relu);

}  // namespace wick::cuda
