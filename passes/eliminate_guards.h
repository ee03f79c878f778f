// Dropping guards of what is known anyway.
#pragma once

#include "ir/graph.h"

namespace wick {

// Propagates types (passes/propagate_types.h) and removes from each prim::Guard the values whose
// types say already what it supposes; guards without values go. Linear.
void eliminateGuards(Graph& graph);

}  // namespace wick
