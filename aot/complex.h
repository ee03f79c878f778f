// Complex numbers on the device "ahead". In memory they are pairs of a real and an imaginary part, and kernels compute each part
// by itself: real numbers are all that they know.
#pragma once

#include <span>

#include "codegen/scalar/promotion.h"
#include "core/tensor.h"
#include "runtime/kernels/pointwise.h"

namespace wick::aot {

// The real (0) or imaginary (1) parts, in place.
Tensor partOf(const Tensor& t, int64_t part);
// Both, as a last dimension.
Tensor asPairs(const Tensor& t);
// Tensor::copyFrom(), where one of them is complex.
void copyComplex(const Tensor& to, const Tensor& from);

// A definition that computes with complex numbers or gives them; `out` is new. NotAhead where there is neither arithmetic of
// parts with the engine's bits nor a function.
void computeComplex(const ScalarDefinition& definition, const ComputeTypes& types,
                    std::span<const Operand> operands, const Tensor& out);

// a [B, M, K] times b [B, K, N], one of which may have a batch of one, by OpenBLAS.
Tensor multiplyComplex(const char* op, const Tensor& a, const Tensor& b);

}  // namespace wick::aot
