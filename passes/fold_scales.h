// Folds batch normalization and constant factors into the layers before them.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace wick {

// A convolution (conv1d to conv3d, also as traces record it; not transposed) or linear layer with
// constant weights whose result is read only by
// - an evaluating batch_norm with constant statistics, or
// - mul or div by a constant number (not of sixteen-bit floats),
// becomes one layer with scaled weights and, of a batch_norm, a shifted bias:
//   w' = w * gamma / sqrt(var + eps)      b' = (b - mean) * gamma / sqrt(var + eps) + beta
// batch_norm normalizes the second dimension, so it folds only where types or checks of the program
// prove that the result has the layer's channels there: a matrix behind a linear layer, a batch
// behind a convolution. Factors that are very large or small stay, and weights that would leave the
// range of their dtype. Numbers change in the last bits. Propagates types. Run it on frozen graphs.
// Returns the number of folded nodes.
size_t foldScales(Graph& graph);

// The tensor that a layer reads, and the rank with which the batch_norm behind it could be folded.
struct WantedRank {
  Value* tensor;
  size_t rank;
};
// Returns the ranks that foldScales() would need to know and nothing says. Propagates types.
std::vector<WantedRank> ranksToFold(Graph& graph);

}  // namespace wick
