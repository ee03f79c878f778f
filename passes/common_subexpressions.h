// Computes what is computed twice only once.
#pragma once

#include "ir/graph.h"

namespace wick {

// Replaces a node by an earlier one in scope with the same operator, inputs and attributes. Left
// alone are nodes with effects, random numbers, nodes that read or return memory which anybody
// writes, and equal results when the caller would see both, or when the program walks back for
// gradients more than once. True when anything changed. Linear.
bool eliminateCommonSubexpressions(Graph& graph);

}  // namespace wick
