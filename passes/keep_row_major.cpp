//   %y : Tensor = wick::conv2d_fused(%x, …)
//   %v : Tensor = aten::view(%y, %sizes)             nobody writes to either
//   %w : Tensor = aten::as_strided(%y, …)
// →
//   %y : Tensor = wick::conv2d_fused(%x, …)
//   %c : Tensor = aten::contiguous(%y, %row_major)   only for the sake of as_strided
//   %v : Tensor = aten::reshape(%c, %sizes)
//   %w : Tensor = aten::as_strided(%c, …)
// An input of the program may lie in channels-last order itself, so that layers give that order without this optimization,
// too; a branch decides between the two.
#include "passes/keep_row_major.h"

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/alias_db.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

const Symbol kFusedConvolution = Symbol::fromQualString("wick::conv2d_fused");

// Calls reach(source) for the values in whose order the node of a value may give it.
template <class F>
void forSources(Value* v, const F& reach) {
  Node* const n = v->node();
  if (n->kind() == prim::Param) {
    Node* const owner = n->block()->owningNode();
    if (!owner || owner->kind() != prim::Loop || v->offset() == 0) return;
    reach(owner->input(v->offset() + 1));
    reach(n->block()->outputs()[v->offset()]);
  } else if (n->kind() == prim::If) {
    for (Block* b : n->blocks()) reach(b->outputs()[v->offset()]);
  } else if (n->kind() == prim::Loop) {
    reach(n->input(v->offset() + 2));
    reach(n->blocks()[0]->outputs()[v->offset() + 1]);
  } else {
    for (Value* input : n->inputs()) reach(input);
  }
}

// Finds the layers whose results a program can tell from row-major ones, by numbers or by an error: from the nodes that
// look at strides it walks back to the layers, once for all.
class Observers {
 public:
  // The nodes `spared` run only where layers give that order without this optimization, too.
  Observers(const AliasDb& aliases, const std::unordered_set<const Node*>& spared)
      : aliases_(aliases), spared_(spared) {}

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
    if (has(n, kReadsStrides)) return !spared_.contains(n);
    // They give a copy here, and a view of row-major elements.
    if (has(n, kMayCopy)) return aliases_.hasWriters(v) || aliases_.hasWriters(n->output());
    return n->kind() == prim::CallFunction || n->kind() == prim::CallMethod ||
           n->kind() == prim::fork;
  }

  void walkBack(Value* v) {
    if (v->node()->kind() == kFusedConvolution) {
      layers_.push_back(v->node());
    } else if (!has(v->node(), kRowMajor)) {
      forSources(v, [&](Value* source) { reach(source); });
    }
  }

  const AliasDb& aliases_;
  const std::unordered_set<const Node*>& spared_;
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
    } else if (n->kind() != kFusedConvolution && !has(n, kRowMajor)) {
      for (const Value* out : n->outputs()) reach(out, moved || has(n, kMovesElements));
    }
  }

  std::unordered_map<const Value*, bool> moved_;  // for each value that has to do with a layer
  std::vector<const Value*> waiting_;
};

// Finds the tensors whose channels-last order layers pass on, without this optimization too: inputs of the program, and what
// it puts into that order itself.
class Origins {
 public:
  explicit Origins(const Graph& graph) {
    forEachNode(graph.block(), [&](const Node* n) {
      if (n->kind() == kFusedConvolution) reach(n->input(0));
    });
    while (!waiting_.empty()) {
      Value* v = waiting_.back();
      waiting_.pop_back();
      walkBack(v);
    }
  }

  // Makes a value before a node that says whether one of those that are there has that order, and is not row-major as well.
  // Null where none is there.
  Value* areOrdered(Graph& graph, Node* at) const {
    static const Symbol kIsContiguous = Symbol::aten("is_contiguous"),
                        kNot = Symbol::aten("__not__"), kAnd = Symbol::aten("__and__"),
                        kOr = Symbol::aten("__or__");
    const InsertPointGuard guard(at);
    const auto made = [&](Symbol kind, std::vector<Value*> inputs) {
      Node* n = graph.insertNode(graph.create(kind, std::move(inputs)));
      n->setRange(at->range());
      n->output()->setType(types::Bool());
      return n->output();
    };
    Value* any = nullptr;
    for (Value* origin : found_) {
      if (!isThere(origin, at)) continue;
      Value* format = graph.insertConstant(IValue(kChannelsLast));
      Value* ordered = made(kAnd, {made(kIsContiguous, {origin, format}),
                                   made(kNot, {made(kIsContiguous, {origin})})});
      any = any ? made(kOr, {any, ordered}) : ordered;
    }
    return any;
  }

 private:
  static constexpr int64_t kChannelsLast = 2;

  void reach(Value* v) {
    if (seen_.insert(v).second) waiting_.push_back(v);
  }
  void walkBack(Value* v) {
    Node* const n = v->node();
    if (n->kind() == kFusedConvolution) return reach(n->input(0));
    const bool input = n->kind() == prim::Param && !n->block()->owningNode();
    if (v->type()->kind() == TypeKind::Tensor && (input || asksForOrder(*n))) {
      found_.push_back(v);
    } else if (!has(n, kRowMajor)) {
      forSources(v, [&](Value* source) { reach(source); });
    }
  }
  static bool asksForOrder(const Node& n) {
    const FunctionSchema* const schema = n.maybeSchema();
    const auto i = schema ? schema->argumentIndex("memory_format") : std::nullopt;
    if (!i || *i >= n.inputs().size()) return false;
    const auto format = constantOf(n.input(*i));
    return format && format->isInt() && format->toInt() == kChannelsLast;
  }
  static bool isThere(const Value* v, const Node* at) {
    const Block* const block = v->node()->block();
    if (v->node()->kind() == prim::Param) return true;
    while (at && at->block() != block) at = at->block()->owningNode();
    return at && v->node()->isBefore(at);
  }

  std::vector<Value*> found_, waiting_;
  std::unordered_set<const Value*> seen_;
};

// Makes a branch without sides before a node, whose result has the type of the node's.
Node* insertChoice(Graph& graph, Value* condition, Node* at) {
  Node* const choice = graph.create(prim::If, {condition}, 1);
  choice->insertBefore(at);
  choice->setRange(at->range());
  choice->output()->setType(at->output()->type());
  return choice;
}
// Adds a side that gives the value; the node, if there is one, moves into it.
void addSide(Node* choice, Value* result, Node* node) {
  Block* const side = choice->addBlock();
  if (node) node->moveBefore(side->returnNode());
  side->registerOutput(result);
}

// Gives views the elements that they have without this optimization: a copy where there is no view. Returns the views that
// are left, for inputs in channels-last order.
std::unordered_set<const Node*> relaxViews(Graph& graph, const std::vector<Node*>& views,
                                           const AliasDb& aliases, const Origins& origins) {
  const MovedValues moved(graph);
  std::unordered_set<const Node*> left;
  for (Node* view : views) {
    if (aliases.hasWriters(view->input(0)) || aliases.hasWriters(view->output()) ||
        moved.holds(view->input(0))) {
      continue;
    }
    const bool alike = view->kind() == Symbol::aten("view_as");
    Node* made = graph.create(Symbol::aten(alike ? "reshape_as" : "reshape"), view->inputs());
    made->insertBefore(view);
    made->setRange(view->range());
    made->setInlinedFrom(view->inlinedFrom());
    made->output()->setType(view->output()->type());
    if (Value* const ordered = origins.areOrdered(graph, made)) {
      Node* const choice = insertChoice(graph, ordered, view);
      view->output()->replaceAllUsesWith(choice->output());
      addSide(choice, view->output(), view);
      addSide(choice, made->output(), made);
      left.insert(view);
      continue;
    }
    view->output()->replaceAllUsesWith(made->output());
    view->destroy();
  }
  return left;
}

}  // namespace

bool areLayersChannelsLast(const Graph& graph) {
  static const Symbol kConvolution = Symbol::aten("conv2d");
  bool any = false, all = true;
  forEachNode(graph.block(), [&](const Node* n) {
    const auto weight = n->kind() == kConvolution ? constantOf(n->input(1)) : std::nullopt;
    if (!weight || !weight->isTensor() || !weight->toTensor().defined()) return;
    const Tensor t = weight->toTensor();
    any = true;
    all &= t.isContiguous(MemoryFormat::ChannelsLast) && !t.isContiguous();
  });
  return any && all;
}

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
  const Origins origins(graph);
  const std::unordered_set<const Node*> left = relaxViews(graph, views, aliases, origins);
  const std::vector<Node*> observed = Observers(aliases, left).observed(graph);
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
    if (Value* const ordered = origins.areOrdered(graph, made)) {
      Node* const choice = insertChoice(graph, ordered, made);
      made->output()->replaceAllUsesWith(choice->output());
      addSide(choice, layer->output(), nullptr);
      addSide(choice, made->output(), made);
    }
  }
  return observed.size();
}

}  // namespace wick
