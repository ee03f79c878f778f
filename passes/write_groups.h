// Gathers operators that write to one tensor, one after the other, into prim::FusionGroup nodes.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace wick {

struct WriteGroupOptions {
  // Whether the node computes every element from the elements at the same position, and gives a new
  // tensor, or writes it to its first input.
  std::function<bool(const Node*)> computes;
  std::function<bool(const Node*)> writes;
  // Whether the node gives a new tensor and also writes to arguments: worth a kernel by itself,
  // with those that compute from its result behind it.
  std::function<bool(const Node*)> updates = nullptr;
};

// Moves two or more neighbours of a block into a group when at least one of them writes and all
// that write do so to the same tensor (single nodes that update, too); constants are copied in.
// What was called the result of a write is called by the tensor's own name afterwards. Nothing
// changes its order, so no aliases are asked for. To be called behind formFusionGroups(). Linear.
void formWriteGroups(Graph& graph, const WriteGroupOptions& options);

}  // namespace wick
