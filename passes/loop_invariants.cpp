// Inner loops first, so that a node can leave several of them.
//
//   %y = prim::Loop(%n, %true, %x)              %k : int = aten::mul(%a, %b)
//     block0(%i, %p):                           %y = prim::Loop(%n, %true, %x)
//       %k : int = aten::mul(%a, %b)      →       block0(%i, %p):
//       %q = aten::add(%p, %k)                      %q = aten::add(%p, %k)
//       -> (%true, %q)                              -> (%true, %q)
#include "passes/loop_invariants.h"

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

class Hoister {
 public:
  explicit Hoister(Graph& graph) : aliases_(graph) {}

  bool loop(Node* loop) {
    Block* body = loop->blocks()[0];
    bool changed = false;
    // Whether everything that stayed so far can neither raise nor be noticed otherwise: then an
    // error of the next node is the first thing that happens, in front of the loop as well.
    bool at_beginning = certainlyRuns(loop);
    for (auto it = body->nodes().begin(), end = body->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      bool safe = neverRaises(n);
      if ((safe || at_beginning) && isInvariant(n, body) &&
          WICK_MAY_OPTIMIZE("hoists {}", n->str())) {
        n->moveBefore(loop);
        changed = true;
      } else {
        at_beginning &= safe;
      }
    }
    return changed;
  }

 private:
  static bool certainlyRuns(const Node* loop) {
    return intOf(loop->input(0)).value_or(0) > 0 && boolOf(loop->input(1)).value_or(false);
  }

  bool isInvariant(const Node* n, const Block* body) const {
    if (!n->blocks().empty() || n->outputs().empty()) return false;
    if (n->kind() == prim::CreateObject || n->kind() == prim::unchecked_cast ||
        n->kind() == prim::unchecked_unwrap_optional || n->hasSideEffects() ||
        aliases_.hasOrderedEffects(n)) {
      return false;
    }
    for (const Value* v : n->inputs()) {
      const Node* definition = v->node();
      if (definition->block() == body) return false;
    }
    if (n->kind() == prim::Constant) return true;
    if (aliases_.hasWriters(n)) return false;
    for (const Value* v : n->outputs()) {
      if (!AliasDb::isMutable(v->type())) continue;
      if (aliases_.escapesScope(v) || identityIsObserved(v)) return false;
    }
    return true;
  }

  AliasDb aliases_;
};

}  // namespace

bool hoistLoopInvariants(Graph& graph) {
  if (mayChangeGradMode(graph.block())) return false;
  Hoister hoister(graph);
  return forEachNode(graph.block(),
                     [&](Node* n) { return n->kind() == prim::Loop && hoister.loop(n); }) != 0;
}

}  // namespace wick
