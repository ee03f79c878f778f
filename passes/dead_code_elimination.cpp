// The marking and sweeping is that of ir/dead_code.h; here stands what is a root.
//
//   %a = aten::relu(%x)               →   (gone)
//   %z = aten::zeros(%size, …)            (gone)
//   %w = aten::add_(%z, %one, %one)       (gone: only this graph ever saw %z, and nobody reads it)
//   %v = aten::add_(%x, %one, %one)       %v = aten::add_(%x, %one, %one)
#include "passes/dead_code_elimination.h"

#include <algorithm>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/dead_code.h"

namespace wick {

namespace {

// Whether all that the node does is to give its results.
bool onlyComputes(const Node* n) {
  static const Symbol kMakers[] = {prim::Constant,      prim::TupleConstruct, prim::TupleUnpack,
                                   prim::ListConstruct, prim::DictConstruct,  prim::ListUnpack,
                                   prim::GetAttr,       prim::unchecked_cast};
  if (!n->blocks().empty()) return false;
  if (std::ranges::find(kMakers, n->kind()) != std::end(kMakers)) return true;
  return n->maybeOperator() && !n->hasSideEffects() && !n->isNondeterministic() && !callsScript(n);
}

// A line of nodes that only compute, as traces and lazy graphs are, needs no alias analysis: what
// nobody reads goes, the last first. False for other graphs.
bool removedFromLine(Graph& graph) {
  if (!std::ranges::all_of(graph.nodes(), onlyComputes)) return false;
  const NodeRange nodes = graph.block()->reverseNodes();
  for (auto it = nodes.begin(), end = nodes.end(); it != end;) {
    Node* n = *it;
    ++it;
    if (std::ranges::none_of(n->outputs(), &Value::hasUses)) n->destroy();
  }
  return true;
}

}  // namespace

void eliminateDeadCode(Graph& graph) {
  if (!WICK_MAY_OPTIMIZE("removes dead code") || removedFromLine(graph)) return;
  AliasDb aliases(graph);
  DeadCodeRules rules;
  rules.aliases = &aliases;
  rules.keeps = [&](const Node* n) {
    return aliases.hasOrderedEffects(n) || aliases.writesOutside(n);
  };
  removeDeadCode(graph, rules);
}

}  // namespace wick
