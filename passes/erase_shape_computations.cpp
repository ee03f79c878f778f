// The types hold wherever they stand, for propagateTypes states no sizes of tensors whose metadata
// somebody may write. An int is known by its number or its symbol (ir/symbolic_sizes.h); a block
// sees the ints of the blocks around it that come before.
//
//   %n : int = aten::size(%x, %zero)              %n : int = aten::size(%x, %zero)
//   %y : Float(SS(-1), 4) = aten::relu(%x)    →   %y : Float(SS(-1), 4) = aten::relu(%x)
//   %m : int = aten::size(%y, %zero)              users of %m read %n
#include "passes/erase_shape_computations.h"

#include <unordered_map>
#include <unordered_set>

#include "core/optimization_limit.h"
#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"
#include "passes/propagate_types.h"

namespace wick {

namespace {

// The tensor that has as many dimensions as the layer's result, however many these are; null when
// there is none.
Value* sameRank(const Node* n) {
  static const std::unordered_set<Symbol> kLayers = atenSymbols({"conv1d",
                                                                 "conv2d",
                                                                 "conv3d",
                                                                 "batch_norm",
                                                                 "group_norm",
                                                                 "instance_norm",
                                                                 "layer_norm",
                                                                 "max_pool1d",
                                                                 "max_pool2d",
                                                                 "max_pool3d",
                                                                 "avg_pool1d",
                                                                 "avg_pool2d",
                                                                 "avg_pool3d",
                                                                 "adaptive_avg_pool1d",
                                                                 "adaptive_avg_pool2d",
                                                                 "adaptive_avg_pool3d",
                                                                 "dropout",
                                                                 "dropout_",
                                                                 "softmax",
                                                                 "log_softmax",
                                                                 "gelu",
                                                                 "hardswish",
                                                                 "contiguous",
                                                                 "clone",
                                                                 "transpose",
                                                                 "linear"});
  if (n->outputs().size() != 1 || n->inputs().empty() || !factsOf(n->input(0))) return nullptr;
  static const Symbol kLinear = Symbol::aten("linear");
  if (n->kind() == kLinear) {  // of a matrix as weight, and a bias that is a vector
    const TensorFacts* weight = factsOf(n->input(1));
    const TensorFacts* bias = factsOf(n->input(2));
    bool plain = weight && weight->dim == std::optional<size_t>(2) &&
                 (isNoneConstant(n->input(2)) || (bias && bias->dim == std::optional<size_t>(1)));
    return plain ? n->input(0) : nullptr;
  }
  if (kLayers.count(n->kind()) != 0) return n->input(0);
  // A pointwise operator that reads only one tensor, or one twice.
  const Operator* op = n->maybeOperator();
  if (!op || op->form() == Operator::Form::Out || !op->record().scalar) return nullptr;
  for (const Value* v : n->inputs()) {
    if (factsOf(v) && v != n->input(0)) return nullptr;
  }
  return n->input(0);
}

class Eraser {
 public:
  explicit Eraser(const Graph& graph) : ranks_stay_(!mayChangeMetadata(graph)) {}

  bool block(Block* b) {
    bool changed = false;
    std::vector<int64_t> added;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      for (Block* sub : n->blocks()) changed |= block(sub);
      changed |= followRank(n);
      changed |= erase(n, added);
    }
    for (int64_t symbol : added) first_.erase(symbol);
    return changed;
  }

 private:
  // The rank of a layer's result is asked of the tensor that it comes from in the end. What two
  // tensors of one source add up to has that source too.
  bool followRank(Node* n) {
    if (!ranks_stay_) return false;
    if (n->kind() == aten::dim && n->inputs().size() == 1) {
      Value* source = sourceOf(n->input(0));
      if (source == n->input(0) || !WICK_MAY_OPTIMIZE("follows {}", n->str())) return false;
      n->replaceInput(0, source);
      return true;
    }
    if (Value* from = sameRank(n)) {
      sources_[n->output()] = sourceOf(from);
    } else if ((n->kind() == aten::add || n->kind() == aten::add_ || n->kind() == aten::mul) &&
               factsOf(n->output()) && factsOf(n->input(0)) && factsOf(n->input(1)) &&
               sourceOf(n->input(0)) == sourceOf(n->input(1))) {
      sources_[n->output()] = sourceOf(n->input(0));
    }
    return false;
  }
  Value* sourceOf(Value* v) const {
    auto it = sources_.find(v);
    return it == sources_.end() ? v : it->second;
  }

  bool erase(Node* n, std::vector<int64_t>& added) {
    if (!n->blocks().empty() || n->kind() == prim::Constant) return false;
    if (castsToItself(n) && WICK_MAY_OPTIMIZE("removes {}", n->str())) {
      replaceValue(n->output(), n->input(0));
      n->destroy();
      return true;
    }
    if (n->kind() == prim::ListUnpack) return ints(n, added);
    if (n->outputs().size() != 1 || n->inputs().empty()) return false;
    std::optional<IValue> answer = answerFromType(n);
    if (!answer) answer = comparison(n);
    if (!answer) answer = sizeList(n);
    if (!answer) return ints(n, added);
    if (!WICK_MAY_OPTIMIZE("answers {}", n->str())) return false;
    replaceByConstant(n, *answer);
    return true;
  }

  // A cast that changes nothing returns its argument itself, so users may read that whatever they
  // do with it.
  static bool castsToItself(const Node* n) {
    static const std::unordered_set<Symbol> kCasts =
        atenSymbols({"to", "type_as", "cpu", "_cast_Byte", "_cast_Char", "_cast_Double",
                     "_cast_Float", "_cast_Int", "_cast_Long", "_cast_Short", "_cast_Half"});
    if (kCasts.count(n->kind()) == 0 || n->outputs().size() != 1) return false;
    const TensorFacts* from = factsOf(n->input(0));
    const TensorFacts* to = factsOf(n->output());
    if (!from || !to || !from->dtype || from->dtype != to->dtype) return false;
    for (const char* name : {"memory_format", "layout", "pin_memory"}) {
      const Value* v = argumentOf(*n, name);
      if (v && !isNoneConstant(v)) return false;
    }
    if (const Value* copy = argumentOf(*n, "copy"); copy && boolOf(copy) != false) return false;
    bool names_device = n->kind() == Symbol::aten("cpu") || argumentOf(*n, "other");
    if (const Value* device = argumentOf(*n, "device"); device && !isNoneConstant(device)) {
      // On `cpu:0`, which tensors call `cpu`, a copy is made.
      std::optional<IValue> named = constantOf(device);
      if (!named || !named->isDevice() || from->device != named->toDevice()) return false;
      names_device = true;
    }
    return !names_device || (from->device && from->device == to->device);
  }

  // Of two sizes that are the same, and of a size with zero.
  static std::optional<IValue> comparison(const Node* n) {
    if (n->inputs().size() != 2) return std::nullopt;
    Symbol kind = n->kind();
    bool equality = kind == aten::eq || kind == aten::ne;
    bool order = kind == aten::lt || kind == aten::le || kind == aten::gt || kind == aten::ge;
    if (!equality && !order) return std::nullopt;
    for (const Value* v : n->inputs()) {
      if (v->type()->kind() != TypeKind::Int) return std::nullopt;
    }
    Size a = sizeValue(n->input(0));
    Size b = sizeValue(n->input(1));
    if (a && a == b) return IValue(kind == aten::eq || kind == aten::le || kind == aten::ge);
    if (b == Size(0) && isNeverNegative(a)) {
      if (kind == aten::lt) return IValue(false);
      if (kind == aten::ge) return IValue(true);
    }
    return std::nullopt;
  }

  // aten::size(x) of constant sizes, when nobody can tell the list from a constant.
  static std::optional<IValue> sizeList(const Node* n) {
    if (n->kind() != aten::size || n->inputs().size() != 1) return std::nullopt;
    const TensorFacts* facts = factsOf(n->input(0));
    if (!facts || !facts->sizes || !isOnlyReadList(n->output()) ||
        identityIsObserved(n->output())) {
      return std::nullopt;
    }
    DimVector sizes;
    for (Size s : *facts->sizes) {
      if (!s || *s < 0) return std::nullopt;
      sizes.push_back(*s);
    }
    return IValue(makeIntList(sizes));
  }

  bool ints(Node* n, std::vector<int64_t>& added) {
    // A quotient is kept, because it may raise.
    static const Symbol kFloorDiv = Symbol::aten("floordiv");
    if (n->kind() == kFloorDiv) return false;
    bool changed = false;
    for (Value* v : n->outputs()) {
      if (v->type()->kind() != TypeKind::Int || !v->hasUses()) continue;
      Size s = sizeValue(v);
      // Arithmetic with numbers is constant propagation's.
      bool arithmetic = n->kind() == aten::add || n->kind() == aten::sub || n->kind() == aten::mul;
      if (!s || (*s >= 0 && arithmetic)) continue;
      if (*s < 0) {
        auto [it, is_new] = first_.emplace(*s, v);
        if (is_new) {
          added.push_back(*s);
          continue;
        }
      }
      if (!WICK_MAY_OPTIMIZE("knows {}", v->debugName())) continue;
      Value* known = *s < 0 ? first_.at(*s) : nullptr;
      if (!known) {
        InsertPointGuard guard(n);
        RangeGuard range(n->graph(), n->range());
        known = n->graph()->insertConstant(IValue(*s));
      }
      replaceValue(v, known);
      changed = true;
    }
    return changed;
  }

  bool ranks_stay_;
  std::unordered_map<const Value*, Value*> sources_;  // a tensor's, when it is not itself
  std::unordered_map<int64_t, Value*> first_;         // the first int in scope with this symbol
};

}  // namespace

bool eraseShapeComputations(Graph& graph) {
  SymbolicSizes sizes(lowestSymbol(graph));
  propagateTypes(graph, sizes);
  SymbolicSizes::Scope scope(sizes);
  bool changed = false;
  withStackFor(graph, [&] { changed = Eraser(graph).block(graph.block()); });
  return changed;
}

}  // namespace wick
