// Writes short loops out.
#pragma once

#include "ir/graph.h"

namespace wick {

// What counts as small.
struct UnrollLimits {
  int64_t turns = 32;
  size_t body_nodes = 32;
  size_t nodes = 256;  // of all copies of a body
};

// Replaces a Loop by copies of its body when the number of iterations is a constant, nothing ends
// the loop early, and the result stays small; inner loops first. True when anything changed.
bool unrollLoops(Graph& graph);
bool unrollLoopsWithin(Graph& graph, const UnrollLimits& limits);
// This one, which is gone when the answer is true.
bool unrollLoop(Node* loop, const UnrollLimits& limits);

}  // namespace wick
