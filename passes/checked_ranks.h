// Ranks of tensors that the program checks itself, as batch normalization does.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace wick {

// Lets users of a tensor read it through a Guard node whose type says its rank, where the program would have
// raised, or gone another way, for another rank. A graph may only run after removeCheckedRanks(). Linear.
std::vector<Node*> insertCheckedRanks(Graph& graph);
void removeCheckedRanks(const std::vector<Node*>& guards);

}  // namespace wick
