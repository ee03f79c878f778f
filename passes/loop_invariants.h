// Computes once what every iteration of a loop would compute again.
#pragma once

#include "ir/graph.h"

namespace wick {

// Moves a node of a loop's body in front of the loop when its inputs come from outside of it, it
// has no effects, and nobody writes the memory that it reads or returns. A loop may
// have no iteration: what may raise moves only from the beginning of the body of a loop that
// certainly has one. A tensor or container that the caller could see stays, because it has to be
// another one in each iteration.
// True when anything changed. Linear in the size of the graph times the depth of its loops.
bool hoistLoopInvariants(Graph& graph);

}  // namespace wick
