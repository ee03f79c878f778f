// The exit transform: early returns, breaks and continues become conditions and block outputs.
#pragma once

#include <memory>

#include "ir/graph.h"

namespace wick {

// Removes prim::LoopContinuation (targets the innermost loop) and prim::ReturnStmt (targets the
// closure or the graph). Code after a possible exit is guarded by an If; paths that surely raise
// need no guard, and values never read come from prim::Uninitialized. `with` bodies keep their Exit
// node on every path. CompileError at the graph's current range when the guards would nest deeper
// than kMaxBlockDepth (ir/depth.h).
void transformExits(const std::shared_ptr<Graph>& graph);

}  // namespace wick
