// The passes that every function goes through before it runs.
#pragma once

#include "ir/graph.h"

namespace wick {

// Optimizes the graph in place without changing any result: calls inlined, constants propagated,
// dead code removed. Compiles callees that are not compiled yet (CompileError).
void runPipeline(Graph& graph);

}  // namespace wick
