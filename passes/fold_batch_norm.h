// Folds batch normalization into the layer before it.
#pragma once

#include "ir/graph.h"

namespace wick {

// A convolution (conv1d to conv3d, also as traces record it; not transposed) or linear layer with
// constant weights, followed by an evaluating batch_norm with constant statistics that alone reads
// its result, becomes one layer with scaled weights and a shifted bias:
//   w' = w * gamma / sqrt(var + eps)      b' = (b - mean) * gamma / sqrt(var + eps) + beta
// After a linear layer only where its result is known to be a matrix, for of other tensors
// batch_norm takes the second dimension (propagates types to know). Numbers change in the last
// bits. Run it on frozen graphs. Returns the number of folded nodes.
size_t foldBatchNorm(Graph& graph);

}  // namespace wick
