// Computes what does not depend on the inputs.
#pragma once

#include "ir/graph.h"

namespace wick {

// Runs operators whose inputs are all constants and that are pure and deterministic, builds tuples
// and lists of constants, and replaces them by their results; replaces an If on a constant by the
// branch taken, removes Loops that never run, and takes values out of Ifs that are the same in
// both branches and out of Loops that carry them unchanged. A tensor or container is folded only
// when nobody writes it and the caller never sees it, by alias analysis (ir/alias_db.h); so is
// nothing that was computed from memory which somebody writes. An operator that raises stays, and
// raises when the program runs. True when anything changed. Linear, but for the operators' own
// work.
bool propagateConstants(Graph& graph);

}  // namespace wick
