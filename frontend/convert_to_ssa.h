// Conversion to SSA: variables as prim::Load and prim::Store become values, block inputs and
// outputs.
#pragma once

#include <memory>

#include "ir/graph.h"

namespace wick {

// On entry the graph holds prim::Load[name] and prim::Store[name], prim::BreakStmt,
// prim::ContinueStmt and prim::ReturnStmt; prim::Loop nodes have their condition either as the
// block's first output or, for while loops, in a second block (the condition block, whose only
// output is the condition). On return there are no loads, stores, condition blocks, breaks and
// continues; prim::LoopContinuation and prim::ReturnStmt remain for transformExits. Throws
// CompileError for a variable that is used where not every path has defined it, or whose type
// differs between the paths.
void convertToSSA(const std::shared_ptr<Graph>& graph);

}  // namespace wick
