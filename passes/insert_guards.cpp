// Each profile node becomes a guard in its place.
//
//   = prim::profile[index=0](%x)             %y : Float(*) = prim::Guard[types=[Float(*)], …](%x)
//   %d : int = prim::dtype(%x)        →      %d : int = prim::dtype(%y)
#include "passes/insert_guards.h"

#include "passes/guard_nodes.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

void guard(Graph& graph, Node* profile, const TypeOfProfile& type_of) {
  Value* v = profile->input(0);
  const IValue& index = profile->ivalue(Symbol::attr("index"));
  TypePtr type = type_of(static_cast<size_t>(index.toInt()), v->type());
  if (!type || sameType(type, v->type()) || !type->isSubtypeOf(*v->type())) return;
  Node* made = graph.create(guardKind(), {v})->insertBefore(profile);
  made->setRange(profile->range());
  made->output()->setType(type);
  made->setAttribute(attr::types, std::vector<TypePtr>{std::move(type)});
  made->setAttribute(Symbol::attr("profiles"), IValue(makeList(types::Int(), {index})));
  const std::vector<Use> uses = v->uses();
  for (const Use& use : uses) {
    if (use.user != made && made->isBefore(use.user) && use.user->isInside(made->block())) {
      use.user->replaceInput(use.offset, made->output());
    }
  }
}

}  // namespace

void insertGuards(Graph& graph, const TypeOfProfile& type_of) {
  forEachNode(graph.block(), [&](Node* n) {
    if (n->kind() != profileKind()) return;
    if (!n->inputs().empty()) guard(graph, n, type_of);
    n->destroy();
  });
}

}  // namespace wick
