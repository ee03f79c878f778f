// Graphs that run on their own: the bodies of forks.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace wick {

// Replaces the body of each prim::fork of the graph by a copy that `optimize` was applied to; other
// copies of the graph, which share the body, keep theirs.
void optimizeForkBodies(Graph& graph, const std::function<void(Graph& body)>& optimize);

}  // namespace wick
