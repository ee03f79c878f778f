// Linear layers that share an input become one.
#pragma once

#include <cstddef>

#include "ir/graph.h"

namespace wick {

// Replaces aten::linear nodes of one block that read the same input and have constant weights of
// one dtype by one node with the weights stacked, whose result is split again: one large matrix
// product runs faster than several small ones. Only where nobody writes the input or the results,
// and where no one can tell the parts from tensors of their own by their strides (see
// passes/stride_uses.h). Results may differ in the last bits. Returns how many layers were joined.
size_t joinLinears(Graph& graph);

}  // namespace wick
