// Removing what nobody needs: the one implementation behind the emitter's clean-up
// (frontend/ir_emitter.cpp) and the optimizer's (passes/dead_code_elimination.h).
#pragma once

#include <functional>

#include "ir/alias_db.h"
#include "ir/graph.h"

namespace wick {

struct DeadCodeRules {
  // Whether a node stays although nobody reads its outputs. Not asked for If and Loop.
  std::function<bool(const Node*)> keeps;
  // With it, a node also stays when it writes memory that a node which stays may read. Null when
  // `keeps` answers for all writers.
  const AliasDb* aliases = nullptr;
  // Whether If and Loop always stay.
  bool keeps_control_flow = false;
};

// Removes every node that does not stay and whose outputs no remaining node reads, unused outputs
// of Ifs, and carried values of Loops that only feed themselves. Linear.
void removeDeadCode(Graph& graph, const DeadCodeRules& rules);

// The emitter's rules: constants, uninitialized values and tuples that are unused go, unused
// outputs of Ifs, and carried values of Loops that only feed themselves. Operators stay even when
// unused, because running them may raise.
void removeDeadValues(Graph& graph);

}  // namespace wick
