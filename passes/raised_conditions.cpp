//   %bad : bool = aten::ne(%d, %four)
//    = prim::If(%bad)
//     block0():
//        = prim::RaiseException(%message, %class)     after it, users of %bad read False
//       -> ()                                         and users of %d read 4
//     block1():
//       -> ()
//
//   %y : bool = prim::If(%c)
//     block0():
//       -> (%c)                                      reads True
//     block1():
//       -> (%c)                                      reads False
#include "passes/raised_conditions.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/optimization_limit.h"
#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

// The nodes and blocks of a graph, numbered in the order in which they stand there. Walking up from a
// node would take as many steps as blocks are around it, which in a chain of thousands of branches
// within branches are as many for each user of each condition.
class Places {
 public:
  explicit Places(const Graph& graph) { number(graph.block()); }

  bool isInside(const Node* node, const Block* block) const {
    const Span& span = blocks_.at(block);
    const size_t at = nodes_.at(node);
    return span.first <= at && at < span.end;
  }
  // Whether the user stands behind `branch` in its block, or in blocks nested there.
  bool standsBehind(const Node* user, const Node* branch) const {
    return isInside(user, branch->block()) &&
           nodes_.at(user) >= blocks_.at(branch->blocks().back()).end;
  }

 private:
  struct Span {
    size_t first, end;
  };

  void number(const Block* block) {
    const size_t first = count_;
    for (const Node* node : block->nodes()) {
      nodes_.emplace(node, count_++);
      for (const Block* inner : node->blocks()) number(inner);
    }
    nodes_.emplace(block->returnNode(), count_++);
    blocks_.emplace(block, Span{first, count_});
  }

  std::unordered_map<const Node*, size_t> nodes_;
  std::unordered_map<const Block*, Span> blocks_;
  size_t count_ = 0;
};

class Refiner {
 public:
  explicit Refiner(Graph& graph)
      : graph_(graph), steps_left_(kStepsPerNode * graph.nodeCount() + kFreeSteps) {}

  bool block(Block* b) {
    bool changed = false;
    for (Node* n : b->nodes()) {
      if (n->kind() == prim::If) {
        changed |= condition(n, true, n->blocks()[0]);
        changed |= condition(n, false, n->blocks()[1]);
      }
      for (Block* sub : n->blocks()) changed |= block(sub);
      if (n->kind() != prim::If) continue;
      bool first = alwaysRaises(n->blocks()[0]);
      if (first == alwaysRaises(n->blocks()[1])) continue;
      changed |= condition(n, !first, nullptr);
    }
    return changed;
  }

 private:
  // The condition of `branch` was `holds`, or the program does not get to `where`: one of its
  // blocks, or what stands behind it (null).
  bool condition(Node* branch, bool holds, Block* where) {
    Value* c = branch->input(0);
    bool changed = replaceAt(branch, where, c, IValue(holds));
    const Node* test = c->node();
    while (test->kind() == aten::__not__) {
      holds = !holds;
      changed |= replaceAt(branch, where, test->input(0), IValue(holds));
      test = test->input(0)->node();
    }
    bool equal = test->kind() == aten::eq ? holds : test->kind() == aten::ne && !holds;
    if (!equal || test->inputs().size() != 2) return changed;
    for (size_t i : {0, 1}) {
      Value* v = test->input(i);
      std::optional<int64_t> number = intOf(test->input(1 - i));
      bool is_int = v->type()->kind() == TypeKind::Int;
      if (number && is_int) changed |= replaceAt(branch, where, v, IValue(*number));
    }
    return changed;
  }

  bool replaceAt(Node* branch, Block* where, Value* v, IValue known) {
    // Asking about very many users after very many branches would take quadratic time.
    constexpr size_t kMaxUsers = 1000;
    if (v->node()->kind() == prim::Constant || v->uses().size() > kMaxUsers) return false;
    std::vector<Use> there;
    for (const Use& use : v->uses()) {
      if (steps_left_ == 0) return false;
      --steps_left_;
      if (!places_) places_.emplace(graph_);
      const bool knows =
          where ? places_->isInside(use.user, where) : places_->standsBehind(use.user, branch);
      if (knows) there.push_back(use);
    }
    if (there.empty() || !WICK_MAY_OPTIMIZE("knows {} by a branch", v->debugName())) return false;
    RangeGuard range(&graph_, branch->range());
    Node* constant = graph_.createConstant(std::move(known), v->type());
    where ? where->prependNode(constant) : constant->insertAfter(branch);
    for (const Use& use : there) use.user->replaceInput(use.offset, constant->output());
    return true;
  }

  static constexpr size_t kStepsPerNode = 64;
  static constexpr size_t kFreeSteps = size_t{1} << 20;
  Graph& graph_;
  std::optional<Places> places_;  // of what is there already: constants that come use nothing
  size_t steps_left_;
};

}  // namespace

bool useRaisedConditions(Graph& graph) {
  bool changed = false;
  withStackFor(graph, [&] { changed = Refiner(graph).block(graph.block()); });
  return changed;
}

}  // namespace wick
