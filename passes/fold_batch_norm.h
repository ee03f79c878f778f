// Folds batch normalization into the convolution before it.
#pragma once

#include "ir/graph.h"

namespace wick {

// conv2d with constant weights, followed by an evaluating batch_norm with constant statistics that
// alone reads its result, becomes one conv2d with scaled weights and a shifted bias:
//   w' = w * gamma / sqrt(var + eps)      b' = (b - mean) * gamma / sqrt(var + eps) + beta
// Numbers change in the last bits. Run it on frozen graphs. Returns the number of folded nodes.
size_t foldBatchNorm(Graph& graph);

}  // namespace wick
