// Inner blocks first, so that a guard can leave several loops.
//
//   %a = prim::GetAttr[name="w"](%self)          %a = prim::GetAttr[name="w"](%self)
//   %x = aten::relu(%p)                          %b = prim::GetAttr[name="v"](%self)
//   %g = prim::Guard[…](%a)               →      %g, %h = prim::Guard[…](%a, %b)
//   %b = prim::GetAttr[name="v"](%self)          %x = aten::relu(%p)
//   %h = prim::Guard[…](%b)
#include "passes/move_guards.h"

#include <algorithm>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "passes/guard_nodes.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

class Mover {
 public:
  explicit Mover(Graph& graph) : aliases_(graph) {}

  void move(Node* guard) {
    for (Value* v : guard->inputs()) hoistRead(v->node());
    Block* b = guard->block();
    Node* owner = b->owningNode();
    Node* last = nullptr;
    bool changes = false;  // whether something that the block defines is guarded
    for (Value* v : guard->inputs()) {
      Node* definition = v->node();
      if (definition->block() != b) continue;
      changes = true;
      if (definition != b->paramNode() && (!last || last->isBefore(definition))) last = definition;
    }
    if (!changes && owner && owner->kind() == prim::Loop) {
      guard->moveBefore(owner);
      return move(guard);
    }
    Node* place = last ? last->next() : firstOf(b);
    while (place->kind() == guardKind() && place != guard) place = place->next();
    if (place != guard) guard->moveBefore(place);
  }

 private:
  // Moves a read of an attribute to where the object is defined.
  void hoistRead(Node* read) {
    if (read->kind() != prim::GetAttr || aliases_.hasWriters(read)) return;
    Node* object = read->input(0)->node();
    hoistRead(object);
    Block* b = object->block();
    Node* place = object == b->paramNode() ? firstOf(b) : object->next();
    while (place->kind() == prim::GetAttr && place != read) place = place->next();
    if (place != read) read->moveBefore(place);
  }

  static Node* firstOf(Block* b) { return b->returnNode()->next(); }

  AliasDb aliases_;
};

void append(Node* to, Node* guard) {
  std::vector<TypePtr> types = to->typesAttribute(attr::types);
  std::vector<IValue> profiles = to->ivalue(Symbol::attr("profiles")).elements();
  const auto& more = guard->typesAttribute(attr::types);
  const auto& more_profiles = guard->ivalue(Symbol::attr("profiles")).elements();
  for (size_t i = 0; i < guard->outputs().size(); ++i) {
    to->addInput(guard->input(i));
    Value* out = to->addOutput(more[i]);
    guard->output(i)->replaceAllUsesWith(out);
    types.push_back(more[i]);
    profiles.push_back(more_profiles[i]);
  }
  to->setAttribute(attr::types, std::move(types));
  to->setAttribute(Symbol::attr("profiles"), IValue(makeList(types::Int(), std::move(profiles))));
}

bool reads(const Node* n, const Node* other) {
  return std::any_of(n->inputs().begin(), n->inputs().end(),
                     [&](const Value* v) { return v->node() == other; });
}

void coalesce(Block* b) {
  Node* before = nullptr;
  for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
    Node* n = *it;
    ++it;
    for (Block* sub : n->blocks()) coalesce(sub);
    if (n->kind() != guardKind()) {
      before = nullptr;
    } else if (before && !reads(n, before) && WICK_MAY_OPTIMIZE("joins {}", n->str())) {
      append(before, n);
      n->destroy();
    } else {
      before = n;
    }
  }
}

}  // namespace

void moveGuards(Graph& graph) {
  Mover mover(graph);
  forEachNode(graph.block(), [&](Node* n) {
    if (n->kind() == guardKind() && WICK_MAY_OPTIMIZE("moves {}", n->str())) mover.move(n);
  });
}

void coalesceGuards(Graph& graph) {
  coalesce(graph.block());
}

}  // namespace wick
