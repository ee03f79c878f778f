// Matrix products for kernels that are composed of them.
#pragma once

#include "core/tensor.h"
#include "runtime/kernels/activation.h"

namespace wick {

// torch.matmul: every combination of ranks, batches broadcast.
Tensor matmul(const Tensor& self, const Tensor& other);
// [M, K] times [K, N].
Tensor matrixProduct(const char* op, const Tensor& a, const Tensor& b);
// [B, M, K] times [B, K, N].
Tensor batchMatrixProduct(const char* op, const Tensor& a, const Tensor& b);
// input [..., K] times weight [N, K] transposed, plus bias.
Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias);
// The same with what follows it; the bias is [N] or undefined, and the weight a matrix.
Tensor linearWithEpilogue(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const Epilogue& epilogue);

}  // namespace wick
