// Bringing guards together.
#pragma once

#include "ir/graph.h"

namespace wick {

// Moves each prim::Guard up to where its value is defined, behind guards that stand there already,
// and out of loops in which the value does not change; reads of attributes that nobody sets go
// along. A guard that fails earlier leaves the graph earlier, which computes the same. Linear.
void moveGuards(Graph& graph);
// Joins guards that stand side by side into one. Linear.
void coalesceGuards(Graph& graph);

}  // namespace wick
