// Matrix products of plain strided tensors: what mm, bmm, matmul, linear and the im2col
// convolutions are made of.
#pragma once

#include "core/tensor.h"
#include "runtime/kernels/activation.h"

namespace wick {

// a [B, M, K] times b [B, K, N] gives [B, M, N], row-major. Both have the same dtype, any but bool
// and any strides (expanded batches included). Sixteen-bit floats accumulate in float32 and are
// rounded once; integers wrap. A batch dimension may be 1 in one of the two.
Tensor batchedProduct(const char* op, const Tensor& a, const Tensor& b);

// The same of integers, into `out` [B, M, N], which is row-major and has elements.
void integerProduct(const char* op, const Tensor& a, const Tensor& b, const Tensor& out);

// x [M, K] times the transpose of weight [N, K], plus bias [N] when defined: [M, N]. The weight is
// taken to be a parameter, so those that oneDNN multiplies are kept in packed form with their
// storage. An epilogue's residual is [M, N]; integers and complex numbers have no activations.
Tensor linearProduct(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const Epilogue& epilogue = {});

// Whether linearProduct keeps a packed form of this weight [N, K], unless x has very few rows.
bool isPackedWeight(const Tensor& weight);

// Packs a weight [N, K] of linearProduct now rather than in the first product that wants it
// so, whatever the number of rows will be; nothing for other weights and for those whose products
// are mostly too small for it.
void packLinearWeight(const Tensor& weight);

// What the first product of a process does beyond its own work: the library's start, and finding
// its code on disk. Later calls do nothing.
void startProducts();

namespace onednn {
// Whether products and convolutions of this dtype are oneDNN's: float32, and bfloat16 where the
// processor multiplies it. That accumulates in float32 too, and takes denormal factors for zeros.
bool computes(DType dtype);
// Products of a dtype that it computes. `a` [B, M, K] and `b` [B, K, N] must have a unit stride in
// one of their last two dimensions; `bias` [N] may be undefined. `constant_b` keeps b packed. A
// residual has the strides of `out`.
void matmul(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out,
            bool constant_b, const Epilogue& epilogue = {});
// Packs b [K, N] as matmul does with `constant_b`, if only the layout does not depend on a's rows;
// if it does, the next product packs again.
void packMatrix(const char* op, const Tensor& b);
}  // namespace onednn

namespace smallgemm {
// Row-major float32 products too small to repay oneDNN's set-up, and all of few rows.
// c[m, n] = a[m, k] b[n, k]^T + bias[n]; leading dimensions in elements, bias may be null.
void productNT(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, const float* bias, float* c, int64_t ldc);
// c[m, n] = a[m, k] b[k, n] + bias[n].
void productNN(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, const float* bias, float* c, int64_t ldc);
}  // namespace smallgemm

}  // namespace wick
