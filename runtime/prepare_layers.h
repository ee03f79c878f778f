// What the layers of a graph would do in their first call, as far as it needs no arguments.
#pragma once

#include "ir/graph.h"

namespace wick {

// Packs the constant weights of aten::linear, which then exist twice, and starts the libraries
// whose products and convolutions the graph uses.
void prepareLayers(const Graph& graph);

}  // namespace wick
