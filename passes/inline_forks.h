// Replaces forks by what they run.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace wick {

// A fork that was replaced.
struct InlinedFork {
  size_t number;               // among all of the graph, in order, from 0
  std::vector<Value*> inputs;  // what it was given
};

// Replaces each prim::fork whose future is nowhere but in aten::wait by the nodes of its body, and the
// waits by its results: what the program computes if each function runs at once when it is forked.
// Calls within bodies are inlined (passes/inline_calls.h). Other forks stay, as do those that would make the
// graph too large, and those that `wanted` does not name. Run like this, errors come earlier.
std::vector<InlinedFork> inlineForks(Graph& graph,
                                     const std::function<bool(const Node*)>& wanted = {});

}  // namespace wick
