//   %d : int = aten::dim(%x)
//   %bad : bool = aten::ne(%d, %four)
//    = prim::If(%bad)
//     block0():
//        = prim::RaiseException(%message, %class)
//       -> ()
//     block1():
//       -> ()
//   %y : Tensor = aten::relu(%x)
// →
//   …
//   %g : Tensor(*, *, *, *) = prim::Guard(%x)
//   %y : Tensor = aten::relu(%g)
#include "passes/checked_ranks.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/guard_nodes.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

struct RankCheck {
  Value* tensor;
  size_t rank;
};

// The rank that follows when the condition is `holds`.
std::optional<RankCheck> rankCheckOf(const Value* condition, bool holds) {
  const Node* test = condition->node();
  while (test->kind() == aten::__not__) {
    holds = !holds;
    test = test->input(0)->node();
  }
  const bool equal = test->kind() == aten::eq ? holds : test->kind() == aten::ne && !holds;
  if (!equal || test->inputs().size() != 2) return std::nullopt;
  for (size_t i : {0, 1}) {
    const Node* const dim = test->input(i)->node();
    const std::optional<int64_t> rank = intOf(test->input(1 - i));
    const bool asks = dim->kind() == aten::dim && dim->inputs().size() == 1;
    if (asks && rank && *rank >= 0 && *rank <= static_cast<int64_t>(kMaxDims)) {
      return RankCheck{dim->input(0), static_cast<size_t>(*rank)};
    }
  }
  return std::nullopt;
}

class RankGuards {
 public:
  explicit RankGuards(Graph& graph) : graph_(graph) {}

  void block(Block* b) {
    const size_t outer = undo_.size();
    for (Node* n : b->nodes()) {
      if (made_.contains(n)) continue;
      readThroughGuards(n);
      if (n->kind() == prim::If) {
        branch(n);
      } else {
        for (Block* inner : n->blocks()) block(inner);
      }
    }
    forget(outer);
  }

  std::vector<Node*> guards;

 private:
  void branch(Node* n) {
    for (size_t i : {0, 1}) {
      const size_t outer = undo_.size();
      if (const auto check = rankCheckOf(n->input(0), i == 0)) {
        Node* const guard = guardFor(*check);
        n->blocks()[i]->prependNode(guard);
      }
      block(n->blocks()[i]);
      forget(outer);
    }
    const bool first = alwaysRaises(n->blocks()[0]);
    if (first == alwaysRaises(n->blocks()[1])) return;
    if (const auto check = rankCheckOf(n->input(0), !first)) guardFor(*check)->insertAfter(n);
  }

  Node* guardFor(const RankCheck& check) {
    Value* tensor = check.tensor;
    while (made_.contains(tensor->node())) tensor = tensor->node()->input(0);
    TensorFacts facts;
    facts.dim = check.rank;
    Node* const guard = graph_.create(guardKind(), {tensor});
    guard->output()->setType(TensorType::create(facts));
    made_.insert(guard);
    guards.push_back(guard);
    undo_.emplace_back(tensor, std::exchange(known_[tensor], guard->output()));
    return guard;
  }

  void readThroughGuards(Node* n) {
    if (known_.empty()) return;
    for (size_t i = 0; i < n->inputs().size(); ++i) {
      const auto known = known_.find(n->input(i));
      if (known != known_.end()) n->replaceInput(i, known->second);
    }
  }

  void forget(size_t outer) {
    for (; undo_.size() > outer; undo_.pop_back()) {
      const auto& [tensor, before] = undo_.back();
      if (before) {
        known_[tensor] = before;
      } else {
        known_.erase(tensor);
      }
    }
  }

  Graph& graph_;
  std::unordered_map<Value*, Value*> known_;  // what users read now instead of a tensor
  std::vector<std::pair<Value*, Value*>> undo_;
  std::unordered_set<const Node*> made_;
};

}  // namespace

std::vector<Node*> insertCheckedRanks(Graph& graph) {
  RankGuards walk(graph);
  withStackFor(graph, [&] { walk.block(graph.block()); });
  return std::move(walk.guards);
}

void removeCheckedRanks(const std::vector<Node*>& guards) {
  for (auto guard = guards.rbegin(); guard != guards.rend(); ++guard) removeGuard(*guard);
}

}  // namespace wick
