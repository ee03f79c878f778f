// Operators that are made of others, taken apart.
#pragma once

#include <cstddef>

#include "ir/graph.h"

namespace wick {

// Propagates types, then replaces operators by those that they are made of where that lets other
// passes and kernels see more, and only where the numbers stay the same to the last bit:
// - matmul of operands of known rank by mm, mv or dot;
// - batch norm outside of training, with constant statistics and parameters and an input of known
//   rank in float32 or float64, by a product and a sum, which join groups of pointwise operators
//   (the order of dimensions in memory may become another).
// Returns how many were replaced.
size_t decomposeOperators(Graph& graph);

}  // namespace wick
