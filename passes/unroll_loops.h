// Writes short loops out.
#pragma once

#include "ir/graph.h"

namespace wick {

// Replaces a Loop by copies of its body when the number of iterations is a constant, nothing ends
// the loop early, and the result stays small; inner loops first. True when anything changed.
bool unrollLoops(Graph& graph);

}  // namespace wick
