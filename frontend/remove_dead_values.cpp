#include "frontend/remove_dead_values.h"

#include <vector>

namespace wick {

namespace {

bool onlyMakesAValue(Symbol kind) {
  return kind == prim::Constant || kind == prim::Uninitialized || kind == prim::TupleConstruct ||
         kind == prim::unchecked_cast;
}

bool isUnused(const Node* n) {
  for (const Value* v : n->outputs()) {
    if (v->hasUses()) return false;
  }
  return true;
}

void sweep(Block* block) {
  // Backwards, so that a value's readers have gone before it is looked at.
  std::vector<Node*> nodes;
  for (Node* n : block->reverseNodes()) nodes.push_back(n);
  for (Node* n : nodes) {
    if (onlyMakesAValue(n->kind()) && isUnused(n)) {
      n->destroy();
      continue;
    }
    // All uses have been seen: what was an untyped `[]` is a list like any other.
    if (n->kind() == prim::ListConstruct) n->removeAttribute(Symbol::attr("empty_literal"));
    if (n->kind() == prim::If) {
      for (size_t i = n->outputs().size(); i-- > 0;) {
        if (n->output(i)->hasUses()) continue;
        n->eraseOutput(i);
        for (Block* b : n->blocks()) b->eraseOutput(i);
      }
    }
    for (Block* b : n->blocks()) sweep(b);
  }
}

}  // namespace

void removeDeadValues(Graph& graph) {
  sweep(graph.block());
}

}  // namespace wick
