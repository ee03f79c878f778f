// Computes what does not depend on the inputs.
#pragma once

#include "ir/graph.h"

namespace wick {

// Runs operators whose inputs are all constants and that are pure and deterministic, and replaces
// them by their results; replaces an If on a constant by the branch taken and removes Loops that
// never run. A result that someone may write to is not folded. An operator that raises stays, and
// raises when the program runs.
void propagateConstants(Graph& graph);

}  // namespace wick
