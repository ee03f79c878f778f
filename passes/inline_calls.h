// Replaces calls of script functions and methods by the bodies of their callees.
#pragma once

#include "ir/graph.h"

namespace wick {

// Inlines every prim::CallFunction and prim::CallMethod whose callee is known when compiling,
// callees of callees included. Calls through interfaces stay, and calls that would make the graph
// grow beyond 100,000 nodes, or that stand within 1,000 others. Inlined nodes remember the call
// (Node::inlinedFrom), so that errors show the script's call stack. Compiles callees that are not
// compiled yet (CompileError).
void inlineCalls(Graph& graph);

// How many blocks the node stands in, the graph's own among them.
size_t blockLevel(const Node* node);

}  // namespace wick
