// How losses are reduced.
#pragma once

#include <algorithm>
#include <cmath>

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

// The logarithm of the sum of two numbers, given by theirs.
inline double logAdd(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return high == -HUGE_VAL ? high : high + std::log1p(std::exp(low - high));
}

// What the connectionist temporal classification loss and its gradient are computed from.
struct CtcTask {
  int64_t time, samples, classes;
  int64_t longest;  // the most labels of a sample
  Tensor
      places;  // int64 [samples, 3] on the CPU: steps of time, labels, where these begin in the targets
  const int64_t* place(int64_t sample) const { return places.data<int64_t>() + 3 * sample; }
};
// RuntimeError when the arguments do not fit together; `grad` may be undefined. Labels are not looked at.
CtcTask ctcTask(const char* op, const Tensor& grad, const Tensor& log_probs, const Tensor& targets,
                const DimVector& input_lengths, const DimVector& target_lengths, int64_t blank);
// The labels on the CPU, row-major int64; RuntimeError when one that a sample has is no class.
Tensor ctcLabels(const char* op, const CtcTask& task, const Tensor& targets);

}  // namespace wick
