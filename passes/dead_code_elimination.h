// Removes nodes whose results nobody uses.
#pragma once

#include "ir/graph.h"

namespace wick {

// Removes nodes without side effects (Node::hasSideEffects; writes to memory count as effects) and
// without users, unused outputs of Ifs, and carried values of Loops that only feed themselves.
// Linear but for nested loops, whose bodies are walked twice a level.
void eliminateDeadCode(Graph& graph);

}  // namespace wick
