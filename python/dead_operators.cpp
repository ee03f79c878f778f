#include "python/dead_operators.h"

#include <algorithm>
#include <unordered_set>

#include "passes/node_traits.h"

namespace wick::python {

std::vector<const Node*> deadOperators(const Graph& graph, const std::vector<Value*>& outputs) {
  std::unordered_set<const Node*> live;
  std::vector<const Node*> open;
  const auto reach = [&](const Node* node) {
    if (live.insert(node).second) open.push_back(node);
  };
  for (const Value* each : outputs) reach(each->node());
  for (const Node* node : graph.nodes()) {
    const FunctionSchema* const schema = node->maybeSchema();
    if (!node->blocks().empty() || node->isNondeterministic() || (schema && schema->isMutable())) {
      reach(node);
    }
  }
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    for (const Value* each : node->inputs()) reach(each->node());
  }
  std::vector<const Node*> dead;
  for (const Node* node : graph.nodes()) {
    if (!live.contains(node) && node->kind() != prim::Constant && node->maybeOperator()) {
      dead.push_back(node);
    }
  }
  return dead;
}

bool mayRaiseBySizes(const Node* node) {
  static const std::unordered_set<Symbol> kNever =
      atenSymbols({"size", "numel", "permute", "transpose", "t", "unsqueeze", "flatten", "detach",
                   "contiguous", "clone", "numpy_T", "alias"});
  if (kNever.contains(node->kind())) return false;
  const auto operands = std::ranges::count_if(
      node->inputs(), [](const Value* each) { return each->type()->kind() == TypeKind::Tensor; });
  if (node->maybeOperator()->record().scalar && operands == 1) return false;
  return std::ranges::any_of(
      node->outputs(), [](const Value* each) { return each->type()->kind() != TypeKind::Int; });
}

}  // namespace wick::python
