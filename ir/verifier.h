// Checks that a graph is well formed.
#pragma once

#include "ir/graph.h"

namespace wick {

// Throws InternalError that shows the offending node when an invariant of ir/graph.h does not hold:
// lists linked both ways, uses and inputs in step, every input in scope where it is used, block
// arities and types of If and Loop, unique names, constants with a value of their type, operators
// whose schema the inputs match. Cost is linear in the size of the graph.
void verify(const Graph& graph);

}  // namespace wick
