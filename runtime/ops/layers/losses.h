// How losses are reduced.
#pragma once

#include "core/tensor.h"

namespace wick {

inline constexpr int64_t kReductionNone = 0;
inline constexpr int64_t kReductionMean = 1;
inline constexpr int64_t kReductionSum = 2;

// The loss itself, its mean or its sum. RuntimeError for another number.
Tensor reduceLoss(const char* op, const Tensor& loss, int64_t reduction);

}  // namespace wick
