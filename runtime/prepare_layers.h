// What the layers of a graph would do in their first call, as far as it needs no arguments.
#pragma once

#include "ir/graph.h"

namespace wick {

// Packs the constant weights of aten::linear and wick::linear_fused, and of wick::conv2d_fused the
// large ones whose layout does not depend on the image; they exist twice then. Starts the libraries
// whose products and convolutions the graph uses.
void prepareLayers(const Graph& graph);

}  // namespace wick
