// Keeps one of several equal constants.
#pragma once

#include "ir/graph.h"

namespace wick {

// Moves all constants to the beginning of the graph, in the order of their first appearance, and
// merges those of equal type and value. Lists and tensors are merged when they are one object, or
// when their users only read them. True when anything was merged. Linear.
bool poolConstants(Graph& graph);

}  // namespace wick
