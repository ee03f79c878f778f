// Several small matrix products become a large one.
#pragma once

#include <cstddef>

#include "ir/graph.h"

namespace wick {

// Two rewrites, each where at least kMinBatchedProducts products meet and nobody writes what they
// read:
// - a sum of products of matrices, a·b + c·d + …, whose parts nobody else reads, becomes the
// product
//   of the left sides beside each other and the right sides below each other;
// - products with the same right side, a·b, c·b, …, become one product of the left sides below each
//   other, whose rows are split again.
// An unrolled recurrent network is full of both. Propagates types first, because all sides must be
// known to be matrices of known dtype. Results may differ in the last bits. Returns how many
// products were replaced.
constexpr size_t kMinBatchedProducts = 4;
size_t batchMatrixProducts(Graph& graph);

}  // namespace wick
