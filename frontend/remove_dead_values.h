// The emitter's last step: what it made and nobody reads goes.
#pragma once

#include "ir/graph.h"

namespace wick {

// Removes constants, uninitialized values and tuples that are unused, and unused outputs of If.
// Operators stay even when unused, because running them may raise.
void removeDeadValues(Graph& graph);

}  // namespace wick
