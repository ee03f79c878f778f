// Two versions of a graph, for ranks of its inputs.
#pragma once

#include "ir/graph.h"

namespace wick {

// Makes of a graph with layers that batch_norm cannot be folded into, because nobody knows the rank of
// an input, a branch for that rank and one for others: the same nodes twice. The plan for a call keeps
// one of them. False when the graph has no such layers, or the rank would not help.
bool splitByRank(Graph& graph);

}  // namespace wick
