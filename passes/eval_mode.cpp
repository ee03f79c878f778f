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
  static const std::unordered_set<Symbol> kKinds = [] {
    std::unordered_set<Symbol> kinds;
    for (const char* name :
         {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"}) {
      kinds.insert(Symbol::aten(name));
      kinds.insert(Symbol::aten(std::string(name) + "_"));
    }
    return kinds;
  }();
  return kKinds.count(n->kind()) != 0 && n->inputs().size() == 3;
}

bool removeIn(Block* b) {
  bool changed = false;
  for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
    Node* n = *it;
    ++it;
    for (Block* sub : n->blocks()) changed |= removeIn(sub);
    if (!isDropout(n)) continue;
    std::optional<double> p = floatOf(n->input(1));
    if (!p || !(*p >= 0 && *p <= 1)) continue;  // raises
    if (boolOf(n->input(2)) != std::optional<bool>(false) && *p != 0) continue;
    if (!WICK_MAY_OPTIMIZE("removes {}", n->str())) continue;
    replaceValue(n->output(), n->input(0));
    n->destroy();
    changed = true;
  }
  return changed;
}

// Which input says whether the layer trains, of layers that can do without.
std::optional<size_t> trainingInput(const Node* n) {
  if (isDropout(n)) return 2;
  const Operator* op = n->blocks().empty() ? n->maybeOperator() : nullptr;
  if (!op || !op->writeCondition()) return std::nullopt;
  // What such a layer writes in training it reads outside of it.
  for (size_t i = 0; i < n->inputs().size(); ++i) {
    if ((op->unannotatedArguments() >> i & 1) != 0 && isNoneConstant(n->input(i))) {
      return std::nullopt;
    }
  }
  return op->writeCondition();
}

bool convertIn(Graph& graph, Block* b) {
  bool changed = false;
  for (Node* n : b->nodes()) {
    for (Block* sub : n->blocks()) changed |= convertIn(graph, sub);
    std::optional<size_t> training = trainingInput(n);
    if (!training || boolOf(n->input(*training)) == std::optional<bool>(false)) continue;
    if (!WICK_MAY_OPTIMIZE("ends training of {}", n->str())) continue;
    InsertPointGuard guard(n);
    RangeGuard range(&graph, n->range());
    n->replaceInput(*training, graph.insertConstant(IValue(false)));
    changed = true;
  }
  return changed;
}

}  // namespace

bool removeDropout(Graph& graph) {
  return removeIn(graph.block());
}

bool convertToEval(Graph& graph) {
  bool changed = convertIn(graph, graph.block());
  return removeDropout(graph) || changed;
}

}  // namespace wick
