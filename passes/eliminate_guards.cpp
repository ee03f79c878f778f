// What follows from one guard needs no second one: types are propagated forwards through guards.
//
//   %y : Float(*) = prim::Guard[types=[Float(*)]](%x)       %y : Float(*) = prim::Guard[…](%x)
//   %r : Tensor = aten::relu(%y)                      →     %r : Float(*) = aten::relu(%y)
//   %s : Float(*) = prim::Guard[types=[Float(*)]](%r)       (users of %s read %r)
#include "passes/eliminate_guards.h"

#include "core/optimization_limit.h"
#include "passes/guard_nodes.h"
#include "passes/node_traits.h"
#include "passes/propagate_types.h"

namespace wick {

namespace {

void reduce(Node* guard) {
  std::vector<TypePtr> types = guard->typesAttribute(attr::types);
  std::vector<IValue> profiles = guard->ivalue(Symbol::attr("profiles")).elements();
  for (size_t i = types.size(); i-- > 0;) {
    if (!guard->input(i)->type()->isSubtypeOf(*types[i])) continue;
    if (!WICK_MAY_OPTIMIZE("drops a guard of {}", guard->input(i)->debugName())) continue;
    guard->output(i)->replaceAllUsesWith(guard->input(i));
    guard->eraseOutput(i);
    guard->removeInput(i);
    types.erase(types.begin() + static_cast<std::ptrdiff_t>(i));
    profiles.erase(profiles.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (types.empty()) return guard->destroy();
  guard->setAttribute(attr::types, std::move(types));
  guard->setAttribute(Symbol::attr("profiles"),
                      IValue(makeList(types::Int(), std::move(profiles))));
}

}  // namespace

void eliminateGuards(Graph& graph) {
  propagateTypes(graph);
  forEachNode(graph.block(), [](Node* n) {
    if (n->kind() == guardKind()) reduce(n);
  });
}

}  // namespace wick
