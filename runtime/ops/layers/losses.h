// How losses are reduced.
#pragma once

#include "core/scalar.h"
#include "core/tensor.h"

namespace wick {

inline constexpr int64_t kReductionNone = 0;
inline constexpr int64_t kReductionMean = 1;
inline constexpr int64_t kReductionSum = 2;

// The loss itself, its mean or its sum. RuntimeError for another number.
Tensor reduceLoss(const char* op, const Tensor& loss, int64_t reduction);

// Whether the arguments of multi_margin_loss fit together; RuntimeError when they do not.
void checkMultiMargin(const char* op, const Tensor& self, const Tensor& target, const Scalar& p);

// What the gradient of nll_loss is computed from.
struct NllGradient {
  int64_t batch, classes;
  Tensor target;  // contiguous, int64
  Tensor grad;    // contiguous, no 16-bit floats; a single number unless nothing is reduced
};
// For an input of `sizes` [N, C, …] or [C]. RuntimeError when the arguments do not fit together.
NllGradient nllGradientOf(const char* op, const Tensor& grad, const DimVector& sizes,
                          const Tensor& target, int64_t reduction);

}  // namespace wick
