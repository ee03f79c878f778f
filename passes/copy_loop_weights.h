// Weights that a loop multiplies by in every iteration are packed once.
#pragma once

#include <cstddef>

#include "ir/graph.h"

namespace wick {

// Gives aten::mm(a, t(w)) in the body of a counted loop, where w comes from outside of the loop and
// nobody writes it, a copy of w that wick::loop_weight makes in front of the loop if the loop has
// enough iterations: wick::mm_weight then multiplies by the packed form that is kept with the copy.
// No packed form may be kept with w itself, because its owner may write it between two calls.
// Results may differ in the last bits. Returns how many products were changed. Linear in the size
// of the graph.
size_t copyLoopWeights(Graph& graph);

}  // namespace wick
