// Softmax and its logarithm along one dimension.
#pragma once

#include "core/tensor.h"

namespace wick {

// A fresh row-major tensor of the shape and dtype of `x` (floating): exp(x) / sum(exp(x)) along
// dimension `dim` (wrapped already), or its logarithm. A row of -inf gives NaN, as in PyTorch.
Tensor softmaxAlong(const Tensor& x, int64_t dim, bool logarithm);

}  // namespace wick
