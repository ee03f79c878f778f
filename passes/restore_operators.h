// What optimizations made of PyTorch's operators, as these operators again.
#pragma once

#include "ir/graph.h"

namespace wick {

// Whether the graph has nodes that restoreOperators() takes apart.
bool hasOwnOperators(const Graph& graph);

// Writes the graph with PyTorch's operators alone, as it must be to be printed as source or saved:
// layers with their addition and activation (wick::conv2d_fused, wick::linear_fused) become their
// parts, with weights in row-major order; prim::FusionGroup nodes become what they hold; products
// with packed weights (wick::mm_weight) become products; profile nodes and guards go. What is
// computed stays the same but for rounding. RuntimeError for a graph with prim::BailOut nodes,
// which computes the right thing only as long as its suppositions hold: the graph that it was made
// of has none.
void restoreOperators(Graph& graph);

// Says of a graph that passes made it of what the front end had made, for somebody to save it. The
// front end would have made another graph of the same meaning of its source, with other names and
// an other order.
void markRewritten(Graph& graph);
bool isRewritten(const Graph& graph);

}  // namespace wick
