// Folds batch normalization and constant factors into the layers before them.
#pragma once

#include "ir/graph.h"

namespace wick {

// A convolution (conv1d to conv3d, also as traces record it; not transposed) or linear layer with
// constant weights whose result is read only by
// - an evaluating batch_norm with constant statistics, or
// - mul or div by a constant number (not of sixteen-bit floats),
// becomes one layer with scaled weights and, of a batch_norm, a shifted bias:
//   w' = w * gamma / sqrt(var + eps)      b' = (b - mean) * gamma / sqrt(var + eps) + beta
// Into a linear layer batch_norm folds only where the result is known to be a matrix, for of other
// tensors it takes the second dimension (propagates types to know). Numbers change in the last
// bits. Run it on frozen graphs. Returns the number of folded nodes.
size_t foldScales(Graph& graph);

}  // namespace wick
