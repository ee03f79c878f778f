// Computes once what every turn of a loop would compute again.
#pragma once

#include "ir/graph.h"

namespace wick {

// Moves a node of a loop's body in front of the loop when its inputs come from outside of it, it
// has no effects, and nobody writes the memory that it reads or returns. A loop may take no turn:
// what may raise moves only from the beginning of the body of a loop that certainly takes one. A
// tensor or container that the caller could see stays, for it has to be another one in each turn.
// True when anything changed. Linear in the size of the graph times the depth of its loops.
bool hoistLoopInvariants(Graph& graph);

}  // namespace wick
