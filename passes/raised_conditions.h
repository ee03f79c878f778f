// What is known because the program would not be here otherwise.
#pragma once

#include "ir/graph.h"

namespace wick {

// Within a block of an If the condition is what leads there, and after an If one of whose blocks
// always raises it is what leads to the other one; where the condition compares an int with a
// constant for equality, the int is that constant. Replaces both by constants, there or in all that
// follows. True when anything changed. One walk, linear.
bool useRaisedConditions(Graph& graph);

}  // namespace wick
