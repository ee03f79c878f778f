// Softmax and its logarithm along one dimension.
#pragma once

#include "core/tensor.h"

namespace wick {

// A fresh row-major tensor of the shape and dtype of `input` (floating): exp(x) / sum(exp(x)) along
// dimension `dim` (wrapped already), or its logarithm. A row of -inf gives NaN, as in PyTorch.
Tensor softmaxAlong(const Tensor& input, int64_t dim, bool logarithm);

// log(sum(exp(x))) of each of `rows` rows of n >= 8 neighbours, without overflow.
void logSumExpRows(const float* x, float* out, int64_t rows, int64_t n);

}  // namespace wick
