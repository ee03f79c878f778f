//   %y : Tensor = wick::conv2d_fused(%x, …)
//   %v : Tensor = aten::view(%y, %sizes)             nobody writes to either
//   %w : Tensor = aten::as_strided(%y, …)
// →
//   %y : Tensor = wick::conv2d_fused(%x, …)
//   %c : Tensor = aten::contiguous(%y, %row_major)   only for the sake of as_strided
//   %v : Tensor = aten::reshape(%c, %sizes)
//   %w : Tensor = aten::as_strided(%c, …)
#include "passes/keep_row_major.h"

#include <unordered_map>
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

// Operators that give row-major results, whatever they are given.
const std::unordered_set<Symbol>& rowMajorKinds() {
  static const std::unordered_set<Symbol> kinds = atenSymbols(
      {"contiguous", "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "layer_norm"});
  return kinds;
}

// Finds the layers whose results a program can tell from row-major ones, by numbers or by an error: from the nodes that
// look at strides it walks back to the layers, once for all.
class Observers {
 public:
  explicit Observers(const AliasDb& aliases) : aliases_(aliases) {}

  std::vector<Node*> observed(Graph& graph) {
    forEachNode(graph.block(), [&](const Node* n) {
      for (Value* v : n->inputs()) {
        if (looksAt(n, v)) reach(v);
      }
    });
    while (!waiting_.empty()) {
      Value* v = waiting_.back();
      waiting_.pop_back();
      walkBack(v);
    }
    return std::move(layers_);
  }

 private:
  void reach(Value* v) {
    if (seen_.insert(v).second) waiting_.push_back(v);
  }

  bool looksAt(const Node* n, const Value* v) const {
    static const std::unordered_set<Symbol> kStrides = atenSymbols(
        {"view", "view_as", "as_strided", "as_strided_", "stride", "is_contiguous", "unflatten",
         "_unsafe_view", "set_", "resize_", "storage_offset", "view_as_complex"});
    static const std::unordered_set<Symbol> kMayCopy =
        atenSymbols({"reshape", "reshape_as", "flatten", "ravel", "contiguous"});
    if (isOneOf(n, kStrides)) return true;
    // They give a copy here, and a view of row-major elements.
    if (isOneOf(n, kMayCopy)) return aliases_.hasWriters(v) || aliases_.hasWriters(n->output());
    return n->kind() == prim::CallFunction || n->kind() == prim::CallMethod ||
           n->kind() == prim::fork;
  }

  // From a value to those whose strides it may have.
  void walkBack(Value* v) {
    Node* n = v->node();
    if (n->kind() == prim::Param) {
      Node* owner = n->block()->owningNode();
      if (!owner || owner->kind() != prim::Loop || v->offset() == 0) return;
      reach(owner->input(v->offset() + 1));
      reach(n->block()->outputs()[v->offset()]);
    } else if (n->kind() == kFusedConvolution) {
      layers_.push_back(n);
    } else if (n->kind() == prim::If) {
      for (Block* b : n->blocks()) reach(b->outputs()[v->offset()]);
    } else if (n->kind() == prim::Loop) {
      reach(n->input(v->offset() + 2));
      reach(n->blocks()[0]->outputs()[v->offset() + 1]);
    } else if (!isOneOf(n, rowMajorKinds())) {
      for (Value* input : n->inputs()) reach(input);
    }
  }

  const AliasDb& aliases_;
  std::unordered_set<const Value*> seen_;
  std::vector<Value*> waiting_;
  std::vector<Node*> layers_;
};

// Finds the values that are, without this optimization, views of layers' results in another order of dimensions or of a part
// of the elements. They may have no view of other sizes, so that aten::view must raise.
class MovedValues {
 public:
  explicit MovedValues(const Graph& graph) {
    forEachNode(graph.block(), [&](const Node* n) {
      if (n->kind() == kFusedConvolution) reach(n->output(), false);
    });
    while (!waiting_.empty()) {
      const Value* v = waiting_.back();
      waiting_.pop_back();
      const bool moved = holds(v);
      for (const Use& use : v->uses()) follow(use, moved);
    }
  }
  bool holds(const Value* v) const {
    const auto it = moved_.find(v);
    return it != moved_.end() && it->second;
  }

 private:
  void reach(const Value* v, bool moved) {
    const auto [it, added] = moved_.try_emplace(v, moved);
    if (!added && (it->second || !moved)) return;
    it->second = moved;
    waiting_.push_back(v);
  }

  // From a value to those that may have its strides.
  void follow(const Use& use, bool moved) {
    static const std::unordered_set<Symbol> kMovers = atenSymbols({"permute",
                                                                   "transpose",
                                                                   "t",
                                                                   "mT",
                                                                   "T",
                                                                   "mH",
                                                                   "H",
                                                                   "numpy_T",
                                                                   "adjoint",
                                                                   "movedim",
                                                                   "moveaxis",
                                                                   "swapaxes",
                                                                   "swapdims",
                                                                   "select",
                                                                   "slice",
                                                                   "narrow",
                                                                   "expand",
                                                                   "expand_as",
                                                                   "broadcast_to",
                                                                   "broadcast_tensors",
                                                                   "chunk",
                                                                   "split",
                                                                   "split_with_sizes",
                                                                   "tensor_split",
                                                                   "hsplit",
                                                                   "vsplit",
                                                                   "dsplit",
                                                                   "unbind",
                                                                   "unfold",
                                                                   "diagonal",
                                                                   "unsafe_chunk",
                                                                   "unsafe_split",
                                                                   "rot90"});
    const Node* n = use.user;
    if (n->kind() == prim::Return) {
      const Node* owner = n->block()->owningNode();
      if (!owner) return;
      if (owner->kind() == prim::If) reach(owner->output(use.offset), moved);
      if (owner->kind() == prim::Loop && use.offset > 0) {
        reach(owner->output(use.offset - 1), moved);
        reach(owner->blocks()[0]->inputs()[use.offset], moved);
      }
    } else if (n->kind() == prim::Loop) {
      if (use.offset < 2) return;
      reach(n->output(use.offset - 2), moved);
      reach(n->blocks()[0]->inputs()[use.offset - 1], moved);
    } else if (n->kind() != kFusedConvolution && !isOneOf(n, rowMajorKinds())) {
      for (const Value* out : n->outputs()) reach(out, moved || isOneOf(n, kMovers));
    }
  }

  std::unordered_map<const Value*, bool> moved_;  // for each value that has to do with a layer
  std::vector<const Value*> waiting_;
};

}  // namespace

size_t keepRowMajor(Graph& graph) {
  static const Symbol kView = Symbol::aten("view"), kViewAs = Symbol::aten("view_as");
  bool any = false;
  std::vector<Node*> views;
  forEachNode(graph.block(), [&](Node* n) {
    any = any || n->kind() == kFusedConvolution;
    const bool of_sizes = n->kind() == kView && n->inputs().size() == 2 &&
                          n->input(1)->type()->kind() == TypeKind::List;
    if (of_sizes || n->kind() == kViewAs) views.push_back(n);
  });
  if (!any) return 0;
  const AliasDb aliases(graph);
  const MovedValues moved(graph);
  // Gives the same elements, and a copy where there is no view.
  for (Node* view : views) {
    if (aliases.hasWriters(view->input(0)) || aliases.hasWriters(view->output()) ||
        moved.holds(view->input(0))) {
      continue;
    }
    const Symbol kind = Symbol::aten(view->kind() == kView ? "reshape" : "reshape_as");
    Node* made = graph.create(kind, view->inputs())->insertBefore(view);
    made->setRange(view->range());
    made->setInlinedFrom(view->inlinedFrom());
    made->output()->setType(view->output()->type());
    view->output()->replaceAllUsesWith(made->output());
    view->destroy();
  }
  const std::vector<Node*> observed = Observers(aliases).observed(graph);
  for (Node* layer : observed) {
    Node* made = graph.create(Symbol::aten("contiguous"), {layer->output(), layer->output()});
    made->insertAfter(layer);
    made->setRange(layer->range());
    made->setInlinedFrom(layer->inlinedFrom());
    made->output()->setType(types::Tensor());
    layer->output()->replaceAllUsesWith(made->output());
    made->replaceInput(0, layer->output());
    const InsertPointGuard guard(made);
    made->replaceInput(1, graph.insertConstant(IValue(int64_t{0})));
  }
  return observed.size();
}

}  // namespace wick
