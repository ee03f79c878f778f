// A dropout that does nothing returns its argument itself, so its users may read that whatever they
// do with it.
//
//   %f : bool = prim::Constant[value=False]()
//   %y : Tensor = aten::dropout(%x, %p, %f)    →   users of %y read %x
#include "passes/eval_mode.h"

#include <unordered_set>

#include "core/optimization_limit.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

bool isDropout(const Node* n) {
  static const std::unordered_set<Symbol> kKinds =
      atenSymbols({"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout",
                   "dropout_", "feature_dropout_", "alpha_dropout_", "feature_alpha_dropout_"});
  return kKinds.count(n->kind()) != 0 && n->inputs().size() == 3;
}

bool remove(Node* n) {
  if (!isDropout(n)) return false;
  std::optional<double> p = floatOf(n->input(1));
  if (!p || !(*p >= 0 && *p <= 1)) return false;  // raises
  if (boolOf(n->input(2)) != std::optional<bool>(false) && *p != 0) return false;
  if (!WICK_MAY_OPTIMIZE("removes {}", n->str())) return false;
  replaceValue(n->output(), n->input(0));
  n->destroy();
  return true;
}

}  // namespace

bool removeDropout(Graph& graph) {
  return forEachNode(graph.block(), remove) != 0;
}

}  // namespace wick
