// Gives equal graphs equal texts.
#pragma once

#include "ir/graph.h"

namespace wick {

// Orders what may stand in any order and names values by where they are defined: constants are
// pooled and come first; the operands of commutative operators on numbers are ordered by
// definition; inputs, then all other values in the order of the graph, are called %v.1, %v.2, ….
// For comparing graphs and for tests; what the graph computes does not change. Linear.
void canonicalize(Graph& graph);

// Nodes that common subexpression elimination would remove if no memory were ever written: pairs
// with the same operator, inputs and attributes in one block. For statistics and tests.
size_t countDuplicates(const Graph& graph);

}  // namespace wick
