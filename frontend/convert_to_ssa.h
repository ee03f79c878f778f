// Conversion to SSA: variables as prim::Load and prim::Store become values, block inputs and
// outputs.
#pragma once

#include <memory>

#include "ir/graph.h"

namespace wick {

// On entry the graph holds prim::Load[name] and prim::Store[name], prim::BreakStmt,
// prim::ContinueStmt and prim::ReturnStmt. A prim::Loop has one of two forms:
//   for:    inputs (trip count, condition), one block with the condition as its only output;
//   while:  input (trip count), a body block without outputs, and a second block, the condition
//   block,
//           whose only output is the condition. It is copied to before the loop, to the end of the
//           body and to every `continue`.
// Variables that are stored inside become carried values and outputs. A branch that leaves by an
// exit must have stored every variable that the other branch defines and that is read afterwards
// (prim::Uninitialized does); the emitter reports variables that are not defined on every path.
// On return there are no loads, stores, condition blocks, breaks and continues;
// prim::LoopContinuation and prim::ReturnStmt remain for transformExits. Throws CompileError when a
// variable's types on two paths do not unify.
void convertToSSA(const std::shared_ptr<Graph>& graph);

// Whether a variable's name may name its value in printed IR: temporaries of printed source ("_12")
// and names that no program can spell may not.
bool isMeaningfulName(const std::string& name);

}  // namespace wick
