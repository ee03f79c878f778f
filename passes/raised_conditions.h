// What is known because the program would have raised otherwise.
#pragma once

#include "ir/graph.h"

namespace wick {

// After an If one of whose blocks always raises, the condition is what leads to the other block;
// and where the condition compares an int with a constant for equality, the int is that constant.
// Replaces both by constants in all that follows. True when anything changed. One walk, linear.
bool useRaisedConditions(Graph& graph);

}  // namespace wick
