//   %y : Tensor = wick::conv2d_fused(%x, …)
//   %v : Tensor = aten::view(%y, %sizes)             nobody writes to either
//   %w : Tensor = aten::as_strided(%y, …)
// →
//   %y : Tensor = wick::conv2d_fused(%x, …)
//   %c : Tensor = aten::contiguous(%y, %row_major)   only for the sake of as_strided
//   %v : Tensor = aten::reshape(%c, %sizes)
//   %w : Tensor = aten::as_strided(%c, …)
#include "passes/keep_row_major.h"

#include <unordered_set>
#include <vector>

#include "ir/alias_db.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

const Symbol kFusedConvolution = Symbol::fromQualString("wick::conv2d_fused");

bool isOneOf(const Node* n, const std::unordered_set<Symbol>& kinds) {
  return kinds.count(n->kind()) != 0;
}

// Answers about one layer's result.
class Observers {
 public:
  explicit Observers(const AliasDb& aliases) : aliases_(aliases) {}

  // Whether a program can tell by the numbers, or by an error, that the value is not row-major.
  bool notice(const Value* v) {
    reach(v);
    while (!waiting_.empty()) {
      const Value* next = waiting_.back();
      waiting_.pop_back();
      for (const Use& use : next->uses()) {
        if (notices(use, next)) return true;
      }
    }
    return false;
  }

 private:
  void reach(const Value* v) {
    if (seen_.insert(v).second) waiting_.push_back(v);
  }

  bool notices(const Use& use, const Value* v) {
    static const std::unordered_set<Symbol> kStrides = atenSymbols(
        {"view", "view_as", "as_strided", "as_strided_", "stride", "is_contiguous", "unflatten",
         "_unsafe_view", "set_", "resize_", "storage_offset", "is_non_overlapping_and_dense"});
    static const std::unordered_set<Symbol> kMayCopy =
        atenSymbols({"reshape", "reshape_as", "flatten", "ravel", "contiguous"});
    static const std::unordered_set<Symbol> kRowMajor =
        atenSymbols({"contiguous", "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "layer_norm"});
    const Node* n = use.user;
    if (n->kind() == prim::Return) {
      const Node* owner = n->block()->owningNode();
      if (!owner) return false;
      // The first output of a loop's block is its condition.
      const size_t first = owner->kind() == prim::Loop ? 1 : 0;
      if (use.offset < first) return false;
      reach(owner->output(use.offset - first));
      if (first == 1) reach(n->block()->inputs()[use.offset]);
      return false;
    }
    if (n->kind() == prim::Loop && use.offset >= 2) {
      reach(n->blocks()[0]->inputs()[use.offset - 1]);
      reach(n->output(use.offset - 2));
      return false;
    }
    // Their results lie as their weights do.
    if (n->kind() == kFusedConvolution || isOneOf(n, kRowMajor)) return false;
    if (isOneOf(n, kStrides)) return true;
    // They give a copy here, and a view of row-major elements.
    if (isOneOf(n, kMayCopy) && (aliases_.hasWriters(v) || aliases_.hasWriters(n->output()))) {
      return true;
    }
    if (n->kind() == prim::CallFunction || n->kind() == prim::CallMethod || n->kind() == prim::fork)
      return true;
    for (const Value* out : n->outputs()) reach(out);
    return false;
  }

  const AliasDb& aliases_;
  std::unordered_set<const Value*> seen_;
  std::vector<const Value*> waiting_;
};

}  // namespace

size_t keepRowMajor(Graph& graph) {
  static const Symbol kView = Symbol::aten("view"), kViewAs = Symbol::aten("view_as");
  std::vector<Node*> layers, views;
  forEachNode(graph.block(), [&](Node* n) {
    if (n->kind() == kFusedConvolution) layers.push_back(n);
    const bool of_sizes = n->kind() == kView && n->inputs().size() == 2 &&
                          n->input(1)->type()->kind() == TypeKind::List;
    if (of_sizes || n->kind() == kViewAs) views.push_back(n);
  });
  if (layers.empty()) return 0;
  const AliasDb aliases(graph);
  // Gives the same elements, and a copy where there is no view.
  for (Node* view : views) {
    if (aliases.hasWriters(view->input(0)) || aliases.hasWriters(view->output())) continue;
    const Symbol kind = Symbol::aten(view->kind() == kView ? "reshape" : "reshape_as");
    Node* made = graph.create(kind, view->inputs())->insertBefore(view);
    made->setRange(view->range());
    made->setInlinedFrom(view->inlinedFrom());
    made->output()->setType(view->output()->type());
    view->output()->replaceAllUsesWith(made->output());
    view->destroy();
  }
  size_t kept = 0;
  for (Node* layer : layers) {
    if (!Observers(aliases).notice(layer->output())) continue;
    Node* made = graph.create(Symbol::aten("contiguous"), {layer->output(), layer->output()});
    made->insertAfter(layer);
    made->setRange(layer->range());
    made->setInlinedFrom(layer->inlinedFrom());
    made->output()->setType(types::Tensor());
    layer->output()->replaceAllUsesWith(made->output());
    made->replaceInput(0, layer->output());
    const InsertPointGuard guard(made);
    made->replaceInput(1, graph.insertConstant(IValue(int64_t{0})));
    ++kept;
  }
  return kept;
}

}  // namespace wick
