// Questions about shapes that static types answer.
#pragma once

#include "ir/graph.h"

namespace wick {

// Propagates types (passes/propagate_types.h), then replaces what computes with shapes alone:
// - dtype, device, rank, sizes, number of elements, is_floating_point and the like, where the types
//   tell, by constants;
// - an int that is the same expression of sizes as an earlier one by that one;
// - the rank of a layer's result by the rank of what the layers read in the beginning;
// - comparisons of sizes that are the same, and with zero, by constants;
// - casts to the dtype and device that a tensor has, by the tensor.
// True when anything changed. Linear.
bool eraseShapeComputations(Graph& graph);

}  // namespace wick
