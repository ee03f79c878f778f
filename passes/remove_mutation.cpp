// A walk through each block with the set of objects that nobody has used since they were made. The
// first user of a list decides: if it only adds to the list, the construct moves down to it and
// takes the element; otherwise the list leaves the set. No alias analysis is needed, since an
// object without users has no aliases.
//
//   %l = prim::ListConstruct(%a)
//   %b = aten::relu(%x)                       %b = aten::relu(%x)
//   %m = aten::append(%l, %b)           →     %l = prim::ListConstruct(%a, %b)
//
//   %t = aten::mul(%x, %y)                    %t = aten::mul(%x, %y)
//   %u = aten::relu_(%t)                →     %u = aten::relu(%t)
//   return (%t)                               return (%u)
#include "passes/remove_mutation.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

// Objects that were made in a block and that nothing used yet, there or in the blocks within. One
// table serves all blocks: what a node reads leaves it when the walk comes by, so that nobody walks
// over the inner blocks once more for each block around them.
class Untouched {
 public:
  void add(const Value* v) { values_[v] = v->node()->block(); }
  // Whether it was made in this block.
  bool contains(const Value* v, const Block* b) const {
    auto it = values_.find(v);
    return it != values_.end() && it->second == b;
  }
  void drop(const Value* v) { values_.erase(v); }
  void dropInputs(const Node* n) {
    for (const Value* v : n->inputs()) values_.erase(v);
  }

 private:
  std::unordered_map<const Value*, const Block*> values_;
};

class ListBuilder {
 public:
  bool block(Block* b) {
    bool changed = false;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      for (Block* sub : n->blocks()) changed |= block(sub);
      if (!n->inputs().empty() && lists_.contains(n->input(0), b) && merge(n)) {
        changed = true;
        continue;
      }
      lists_.dropInputs(n);
      if (n->kind() == prim::ListConstruct) lists_.add(n->output());
    }
    lists_.dropInputs(b->returnNode());
    return changed;
  }

 private:
  // Makes the node's write part of the list's construct.
  bool merge(Node* n) {
    Value* list = n->input(0);
    Node* made = list->node();
    // The list itself as an element, or given twice.
    if (std::count(n->inputs().begin(), n->inputs().end(), list) != 1) return false;
    if (!mayHold(n, list)) return false;
    if (!WICK_MAY_OPTIMIZE("takes a write into a list") || !write(n, made)) return false;
    made->moveBefore(n);
    for (size_t i = 1; i < n->inputs().size(); ++i) lists_.drop(n->input(i));
    for (Value* out : n->outputs()) out->replaceAllUsesWith(list);
    n->destroy();
    return true;
  }

  // Only a result that is the list itself can be replaced.
  static bool mayHold(const Node* n, const Value* list) {
    return std::all_of(n->outputs().begin(), n->outputs().end(),
                       [&](const Value* out) { return sameType(out->type(), list->type()); });
  }

  bool write(Node* n, Node* made) const {
    static const Symbol kExtend = Symbol::aten("extend");
    static const Symbol kInsert = Symbol::aten("insert");
    if (n->kind() == aten::append && n->inputs().size() == 2) {
      made->addInput(n->input(1));
      return true;
    }
    if ((n->kind() == kExtend || n->kind() == aten::add_) && n->inputs().size() == 2) {
      // The other list is read as it is here: what it was built with, when nobody used it yet.
      const Value* other = n->input(1);
      if (!lists_.contains(other, n->block())) return false;
      for (Value* v : other->node()->inputs()) made->addInput(v);
      return true;
    }
    auto size = static_cast<int64_t>(made->inputs().size());
    if ((n->kind() != kInsert && n->kind() != aten::_set_item) || n->inputs().size() != 3) {
      return false;
    }
    std::optional<int64_t> index = intOf(n->input(1));
    if (!index) return false;
    int64_t at = *index < 0 ? *index + size : *index;
    if (n->kind() == kInsert) {
      made->insertInput(std::clamp<int64_t>(at, 0, size), n->input(2));
      return true;
    }
    if (at < 0 || at >= size) return false;  // raises
    made->replaceInput(at, n->input(2));
    return true;
  }

  Untouched lists_;
};

// ---- tensors ----

// In-place operators whose result always has the dtype and the sizes of the tensor.
bool keepsDtype(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds =
      atenSymbols({"relu_", "neg_", "abs_", "round_", "floor_", "ceil_", "trunc_", "sign_",
                   "square_", "relu6_", "bitwise_not_"});
  return kKinds.count(kind) != 0;
}

// Arithmetic that keeps the dtype of a floating tensor when the other operands are numbers.
bool keepsFloatingDtype(Symbol kind) {
  static const std::unordered_set<Symbol> kKinds = atenSymbols(
      {"add_",       "sub_",        "mul_",      "div_",      "pow_",        "exp_",  "log_",
       "sqrt_",      "rsqrt_",      "sigmoid_",  "tanh_",     "sin_",        "cos_",  "clamp_",
       "clamp_min_", "clamp_max_",  "hardtanh_", "elu_",      "leaky_relu_", "silu_", "gelu_",
       "erf_",       "reciprocal_", "fmod_",     "remainder_"});
  return kKinds.count(kind) != 0;
}

bool isFloatingTensor(const Value* v) {
  const auto* type = v->type()->as<TensorType>();
  return type && type->facts().dtype && isFloating(*type->facts().dtype);
}

bool isPlainNumber(const Value* v) {
  return memoryKindsOf(*v->type()) == kNoMemory && v->type()->kind() != TypeKind::Complex &&
         v->type()->kind() != TypeKind::Number;
}

// Whether arithmetic of `self` with the value has the dtype and the sizes of `self`, as the static types
// say.
bool fitsInto(const Value* self, const Value* v) {
  const auto* into = self->type()->as<TensorType>();
  const auto* type = v->type()->as<TensorType>();
  if (!into || !type) return false;
  const TensorType::Facts &a = into->facts(), &b = type->facts();
  if (!a.dtype || a.dtype != b.dtype || !a.sizes || !b.sizes || b.sizes->size() > a.sizes->size()) {
    return false;
  }
  const size_t more = a.sizes->size() - b.sizes->size();
  for (size_t i = 0; i < b.sizes->size(); ++i) {
    const std::optional<int64_t> size = (*b.sizes)[i];
    if (!size || (size != 1 && size != (*a.sizes)[more + i])) return false;
  }
  return true;
}

class TensorRenamer {
 public:
  // `typed`: also arithmetic with tensors that fit, as far as types tell.
  TensorRenamer(Graph& graph, bool typed) : graph_(graph), typed_(typed) {}

  bool block(Block* b) {
    bool changed = false;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      for (Block* sub : n->blocks()) changed |= block(sub);
      if (!n->inputs().empty() && tensors_.contains(n->input(0), b)) {
        if (Node* made = functional(n)) {
          changed = true;
          tensors_.add(made->output());
          continue;
        }
      }
      tensors_.dropInputs(n);
      if (givesNewTensor(n)) tensors_.add(n->output());
    }
    tensors_.dropInputs(b->returnNode());
    return changed;
  }

 private:
  static bool givesNewTensor(const Node* n) {
    const Operator* op = n->blocks().empty() ? n->maybeOperator() : nullptr;
    if (!op || n->outputs().size() != 1 || op->has(kMayReturnArgument)) return false;
    if (n->output()->type()->kind() != TypeKind::Tensor) return false;
    const std::vector<Argument>& returns = op->schema().returns();
    return returns.size() == 1 && !returns[0].alias && returns[0].type->kind() == TypeKind::Tensor;
  }

  bool takesWhatFits(const Node* n) const {
    return std::all_of(n->inputs().begin() + 1, n->inputs().end(), [&](const Value* v) {
      return isPlainNumber(v) || (typed_ && fitsInto(n->input(0), v));
    });
  }

  // The node's counterpart without the write, in its place; null when it has none that is equal.
  Node* functional(Node* n) {
    const Operator* op = n->maybeOperator();
    bool keeps =
        keepsDtype(n->kind()) || (keepsFloatingDtype(n->kind()) && isFloatingTensor(n->input(0)));
    if (!op || !keeps || n->outputs().size() != 1 || !takesWhatFits(n)) return nullptr;
    // The operator would raise: what it writes is also what it reads.
    const bool refuses = op->has(kRefusesOverlap) || op->has(kRefusesPartialOverlap);
    if (refuses && std::ranges::count(n->inputs(), n->input(0)) > 1) return nullptr;
    std::string name(n->kind().qualString());
    name.pop_back();
    Symbol kind = Symbol::fromQualString(name);
    if (!OperatorRegistry::instance().find(kind, op->schema().overload())) return nullptr;
    InsertPointGuard guard(n);
    RangeGuard range(&graph_, n->range());
    Value* written = n->input(0);
    Node* made = graph_.create(kind, n->inputs())->insertBefore(n);
    made->output()->setType(written->type());
    if (!made->maybeOperator()) {
      made->destroy();
      return nullptr;
    }
    if (!WICK_MAY_OPTIMIZE("{} gives a new tensor", n->str())) {
      made->destroy();
      return nullptr;
    }
    replaceValue(n->output(), made->output());
    n->destroy();
    // All other users come later: the write was the first.
    written->replaceAllUsesAfterWith(made, made->output());
    return made;
  }

  Graph& graph_;
  const bool typed_;
  Untouched tensors_;
};

}  // namespace

bool removeListMutation(Graph& graph) {
  return ListBuilder().block(graph.block());
}

bool removeTensorMutation(Graph& graph) {
  return TensorRenamer(graph, false).block(graph.block());
}

bool removeTypedTensorMutation(Graph& graph) {
  return TensorRenamer(graph, true).block(graph.block());
}

}  // namespace wick
