// The marking and sweeping is that of ir/dead_code.h; here stands what is a root.
//
//   %a = aten::relu(%x)               →   (gone)
//   %z = aten::zeros(%size, …)            (gone)
//   %w = aten::add_(%z, %one, %one)       (gone: only this graph ever saw %z, and nobody reads it)
//   %v = aten::add_(%x, %one, %one)       %v = aten::add_(%x, %one, %one)
#include "passes/dead_code_elimination.h"

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/dead_code.h"

namespace wick {

void eliminateDeadCode(Graph& graph) {
  if (!WICK_MAY_OPTIMIZE("removes dead code")) return;
  AliasDb aliases(graph);
  DeadCodeRules rules;
  rules.aliases = &aliases;
  rules.keeps = [&](const Node* n) {
    return aliases.hasOrderedEffects(n) || aliases.writesOutside(n);
  };
  removeDeadCode(graph, rules);
}

}  // namespace wick
