// Values are judged from the last to the first, each after all that is computed from it.
//
//   %y = aten::conv2d(%x, %w, …)                %l : Tensor = wick::training_layout(%x, %w)
//   %z = aten::relu(%y)                  →      %y = aten::conv2d(%l, %w, …)
//   %v = aten::mean(%z, %dims, …)               %z = aten::relu(%y)
//                                               %v = aten::mean(%z, %dims, …)
#include "passes/training_layout.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

const Symbol kConv2d = Symbol::aten("conv2d");

// Give numbers, or row-major tensors whatever lies where in their operands.
bool forgets(const Node* n) {
  static const std::unordered_set<Symbol> kFacts = {Symbol::fromQualString("prim::dtype"),
                                                    Symbol::fromQualString("prim::device"),
                                                    Symbol::fromQualString("prim::layout"),
                                                    Symbol::fromQualString("prim::is_cuda"),
                                                    Symbol::aten("__is__"),
                                                    aten::__isnot__,
                                                    aten::size,
                                                    aten::dim,
                                                    Symbol::aten("numel"),
                                                    Symbol::aten("is_floating_point"),
                                                    Symbol::aten("is_complex")};
  // Of all elements.
  static const std::unordered_set<Symbol> kTotals = atenSymbols({"mean", "sum"});
  return kFacts.contains(n->kind()) || (has(n, kRowMajor) && !has(n, kMayCopy)) ||
         (kTotals.contains(n->kind()) && n->inputs().size() == 2);
}

// Compute results that may lie in memory as their operands do.
bool passesOn(const Node* n) {
  if (n->kind() == prim::ListConstruct || n->kind() == prim::unchecked_cast) return true;
  const Operator* op = n->maybeOperator();
  if (!op || n->kind() == aten::dropout) return false;
  const bool in_place = op->form() == Operator::Form::Inplace;
  if (op->form() != Operator::Form::Base && !in_place) return false;
  return op->record().scalar || op->has(kKeepsOrder);
}

class Layouts {
 public:
  explicit Layouts(Graph& graph) : graph_(graph) {}

  // Judges what the block computes.
  void block(Block* b) {
    for (auto it = b->reverseNodes().begin(), end = b->reverseNodes().end(); it != end; ++it) {
      Node* n = *it;
      for (const Value* v : n->outputs()) {
        if (isUnnoticed(v)) unnoticed_.insert(v);
      }
      for (Block* sub : n->blocks()) block(sub);
      if (n->kind() == kConv2d && unnoticed_.count(n->output()) != 0 && trains(n)) {
        convolutions_.push_back(n);
      }
    }
  }

  size_t finish() {
    static const Symbol kLayout = Symbol::fromQualString("wick::training_layout");
    size_t changed = 0;
    for (Node* n : convolutions_) {
      if (!WICK_MAY_OPTIMIZE("lays out the input of {}", n->str())) continue;
      InsertPointGuard guard(n);
      RangeGuard range(&graph_, n->range());
      Node* made = graph_.insertNode(graph_.create(kLayout, {n->input(0), n->input(1)}));
      made->output()->setType(n->input(0)->type());
      n->replaceInput(0, made->output());
      ++changed;
    }
    return changed;
  }

 private:
  // Constants do not train.
  static bool trains(const Node* convolution) {
    return convolution->input(1)->node()->kind() != prim::Constant;
  }

  bool isWritten(const Value* v) {
    if (!aliases_) aliases_.emplace(graph_);
    return aliases_->hasWriters(v);
  }

  bool allUnnoticed(const Node* n) const {
    return std::ranges::all_of(n->outputs(),
                               [&](const Value* v) { return unnoticed_.count(v) != 0; });
  }

  // All users stand behind the value's node, so they have been judged.
  bool isUnnoticed(const Value* v) {
    return std::ranges::all_of(v->uses(), [&](const Use& use) {
      const Node* n = use.user;
      const Block* inside = n->block();
      if (inside && n == inside->returnNode()) {
        const Node* owner = inside->owningNode();
        return owner && owner->kind() == prim::If &&
               unnoticed_.count(owner->output(use.offset)) != 0;
      }
      if (!n->blocks().empty()) return false;
      if (forgets(n)) return true;
      if (passesOn(n)) return allUnnoticed(n);
      return has(n, kMayCopy) && allUnnoticed(n) && !isWritten(v) && !isWritten(n->output());
    });
  }

  Graph& graph_;
  std::optional<AliasDb> aliases_;
  std::unordered_set<const Value*> unnoticed_;
  std::vector<Node*> convolutions_;
};

}  // namespace

size_t layOutForTraining(Graph& graph) {
  if (!anyNode(graph.block(), [](const Node* n) { return n->kind() == kConv2d; })) return 0;
  Layouts layouts(graph);
  layouts.block(graph.block());
  return layouts.finish();
}

}  // namespace wick
