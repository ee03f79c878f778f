// One walk forwards: by the time a node is reached, its inputs are as constant as they will be.
//
//   %2 : int = aten::add(%c1, %c1)          →   %2 : int = prim::Constant[value=2]()
//   %y = prim::If(%true) block0 … block1        (the nodes of block0)
#include "passes/constant_propagation.h"

#include <algorithm>

#include "core/error.h"
#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

// A folded tensor lives as long as the program; larger ones are recomputed instead.
constexpr uint64_t kMaxFoldedElements = int64_t{1} << 24;

// What one run of the pass may make of constants. Lists and tuples of constants share their parts:
// lines like `a = [a, a]` name 2^n values, which everything that prints, hashes and compares
// constants would walk over. Values are counted as often as they are reached, sixteen bytes of text
// as one.
class FoldBudget {
 public:
  // Whether it is worth while to compute something of this type.
  bool allows(const Type& type) const {
    switch (type.kind()) {
      case TypeKind::Int:
      case TypeKind::Float:
      case TypeKind::Bool:
      case TypeKind::None:
      case TypeKind::Complex:
      case TypeKind::Device:
        return true;
      case TypeKind::Tensor:
        return elements_left_ > 0;
      default:
        return values_left_ > 0;
    }
  }
  // Whether the result of a fold may be kept. Looking at it is paid for in any case.
  bool take(const IValue& result) {
    if (result.isTensor()) {
      // What has no memory at strides is not printed and compared as constants are.
      if (!result.toTensor().isStrided()) return false;
      const auto elements = static_cast<uint64_t>(result.toTensor().numel());
      const bool fits = elements <= kMaxFoldedElements && elements <= elements_left_;
      elements_left_ -= std::min(elements_left_, elements);
      return fits;
    }
    if (!result.isString() && !result.isList() && !result.isTuple() && !result.isDict())
      return true;
    const uint64_t most = std::min(kMostOfOne, values_left_);
    uint64_t counted = 0;
    count(result, most, counted);
    values_left_ -= std::min(values_left_, counted);
    return counted <= most;
  }

 private:
  static constexpr uint64_t kMostOfOne = uint64_t{1} << 18;

  // Stops soon after `most`. What stands flat in a value that is too large cost as much to make.
  static void count(const IValue& v, uint64_t most, uint64_t& counted) {
    ++counted;
    if (v.isString()) counted += v.toString().size() / 16;
    if (v.isDict()) {
      v.toDict().all([&](const IValue& key, const IValue& value) {
        count(key, most, counted);
        count(value, most, counted);
        return counted <= most;
      });
    }
    if (!v.isList() && !v.isTuple()) return;
    if (v.elements().size() > most) counted += v.elements().size();
    for (const IValue& e : v.elements()) {
      if (counted > most) return;
      count(e, most, counted);
    }
  }

  uint64_t values_left_ = uint64_t{1} << 22;
  uint64_t elements_left_ = uint64_t{1} << 27;
};

class Folder {
 public:
  explicit Folder(Graph& graph) : graph_(graph), aliases_(graph) {}

  bool run() {
    block(graph_.block());
    return changed_;
  }

 private:
  void block(Block* b) {
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      if (node->kind() == prim::If) {
        branch(node, it);
      } else if (node->kind() == prim::Loop) {
        loop(node);
      } else {
        for (Block* sub : node->blocks()) block(sub);
        fold(node);
      }
    }
  }

  void destroy(Node* node) {
    aliases_.removeNode(node);
    node->destroy();
    changed_ = true;
  }

  // ---- control flow ----

  void branch(Node* node, NodeIterator& next) {
    std::optional<bool> condition = boolOf(node->input(0));
    if (!condition ||
        !WICK_MAY_OPTIMIZE("the condition {} is {}", node->input(0)->debugName(), *condition)) {
      for (Block* sub : node->blocks()) block(sub);
      joinEqualOutputs(node);
      return;
    }
    Block* taken = node->blocks()[*condition ? 0 : 1];
    Node* first = nullptr;
    while (!taken->empty()) {
      Node* moved = *taken->nodes().begin();
      if (!first) first = moved;
      moved->moveBefore(node);
    }
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      node->output(i)->replaceAllUsesWith(taken->outputs()[i]);
    }
    if (first) next = NodeIterator(first);  // the walk goes on with what was moved out
    destroy(node);
  }

  // Outputs that are one value from outside, or one immutable constant, whichever branch is taken.
  // Whether one may stand for the other; what is known of tensors may differ.
  static bool alike(const Value* a, const Value* b) {
    return sameType(unshapedType(a->type()), unshapedType(b->type()));
  }

  static bool isNone(const Value* v) { return v->type()->kind() == TypeKind::None; }

  void joinEqualOutputs(Node* node) {
    Block* then = node->blocks()[0];
    Block* otherwise = node->blocks()[1];
    for (size_t i = node->outputs().size(); i-- > 0;) {
      Value* a = then->outputs()[i];
      Value* b = otherwise->outputs()[i];
      Value* out = node->output(i);
      if (!out->hasUses()) continue;
      if (isNone(a) && isNone(b)) {
        if (isNone(out)) continue;
        if (!WICK_MAY_OPTIMIZE("{} is None in both branches", out->debugName())) return;
        Node* none = graph_.createConstant(IValue(), types::None())->insertBefore(node);
        out->replaceAllUsesWith(none->output());
        changed_ = true;
        continue;
      }
      if (!alike(a, out)) continue;
      if (a == b) {
        if (!WICK_MAY_OPTIMIZE("{} is {} in both branches", out->debugName(), a->debugName()))
          return;
        out->replaceAllUsesWith(a);
        changed_ = true;
      } else if (std::optional<IValue> c = constantOf(a); c && !AliasDb::isMutable(out->type())) {
        std::optional<IValue> other = constantOf(b);
        if (!other || !sameConstant(*c, *other) || !alike(b, out)) continue;
        if (!WICK_MAY_OPTIMIZE("{} is one constant in both branches", out->debugName())) return;
        Node* constant = graph_.createConstant(*c, out->type())->insertBefore(node);
        out->replaceAllUsesWith(constant->output());
        changed_ = true;
      }
    }
  }

  void loop(Node* node) {
    std::optional<int64_t> trips = intOf(node->input(0));
    std::optional<bool> start = boolOf(node->input(1));
    bool never = (trips && *trips <= 0) || (start && !*start);
    if (never && WICK_MAY_OPTIMIZE("a loop never runs")) {
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        node->output(i)->replaceAllUsesWith(node->input(i + 2));
      }
      destroy(node);
      return;
    }
    Block* body = node->blocks()[0];
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      Value* carried = body->inputs()[i + 1];
      Value* start_value = node->input(i + 2);
      TypePtr start_type = unshapedType(start_value->type());
      if (body->outputs()[i + 1] != carried ||
          !sameType(unshapedType(carried->type()), start_type)) {
        continue;
      }
      if (!WICK_MAY_OPTIMIZE("a loop carries {} unchanged", carried->debugName())) break;
      changed_ |= carried->uses().size() > 1 || node->output(i)->hasUses();
      carried->replaceAllUsesWith(start_value);
      body->replaceOutput(i + 1, carried);
      if (sameType(unshapedType(node->output(i)->type()), start_type)) {
        node->output(i)->replaceAllUsesWith(start_value);
      }
    }
    block(body);
  }

  // ---- values ----

  void fold(Node* node) {
    if (node->kind() == prim::Constant || node->outputs().empty()) return;
    std::vector<IValue> inputs;
    for (Value* v : node->inputs()) {
      std::optional<IValue> c = constantOf(v);
      if (!c || v->type()->kind() == TypeKind::Function) return;
      inputs.push_back(std::move(*c));
    }
    for (const Value* v : node->outputs()) {
      if (!budget_.allows(*v->type())) return;
    }
    std::vector<IValue> results(node->outputs().size());
    if (!evaluate(node, inputs, results)) return;
    for (size_t i = 0; i < results.size(); ++i) {
      if (AliasDb::isMutable(node->output(i)->type()) && !mayBeShared(node->output(i))) return;
      if (!budget_.take(results[i])) return;
    }
    if (!WICK_MAY_OPTIMIZE("folds {}", node->str())) return;
    replace(node, results);
  }

  // Every run of the program will use the one object: nobody may write it, nor get hold of it.
  bool mayBeShared(const Value* v) const {
    return !aliases_.hasWriters(v) && !identityIsObserved(v) &&
           (!aliases_.escapesScope(v) || isOnlyRead(v));
  }

  bool evaluate(Node* node, std::vector<IValue>& inputs, std::vector<IValue>& results) {
    Symbol kind = node->kind();
    if (kind == prim::TupleConstruct || kind == prim::NamedTupleConstruct) {
      results[0] = makeTuple(std::move(inputs), namedTuple(node->output()->type()));
    } else if (kind == prim::TupleUnpack || kind == prim::ListUnpack) {
      const std::vector<IValue>& elements = inputs.at(0).elements();
      if (elements.size() != results.size()) return false;
      results = elements;
    } else if (kind == prim::TupleIndex) {
      const std::vector<IValue>& elements = inputs.at(0).elements();
      int64_t index = inputs.at(1).toInt();
      if (index < 0) index += static_cast<int64_t>(elements.size());
      if (index < 0 || index >= static_cast<int64_t>(elements.size())) return false;
      results[0] = elements[index];
    } else if (kind == prim::ListConstruct) {
      const auto* list = node->output()->type()->as<ListType>();
      if (!list) return false;
      results[0] = makeList(list->element(), std::move(inputs));
    } else {
      return compute(node, inputs, results);
    }
    return true;
  }

  static std::shared_ptr<const TupleType> namedTuple(const TypePtr& type) {
    const TupleType* tuple = type->as<TupleType>();
    return tuple && tuple->isNamed() ? std::static_pointer_cast<const TupleType>(type) : nullptr;
  }

  bool compute(Node* node, std::vector<IValue>& inputs, std::vector<IValue>& results) {
    const Operator* op = node->maybeOperator();
    if (!op || !node->blocks().empty() || node->hasSideEffects() || node->isNondeterministic())
      return false;
    if (op->schema().isVarret() || aliases_.hasWriters(node)) return false;
    // Which device that is may change while the program runs.
    const auto isCurrentDevice = [](const IValue& v) {
      return v.isDevice() && v.toDevice().isCuda() && v.toDevice().index < 0;
    };
    if (std::any_of(inputs.begin(), inputs.end(), isCurrentDevice)) return false;
    try {
      op->call(inputs.data(), inputs.size(), results.data(), results.size());
    } catch (const RuntimeError&) {
      return false;
    }
    // A constant would not be reached by gradients.
    return std::ranges::none_of(results, [](const IValue& v) {
      return v.isTensor() && v.toTensor().defined() && v.toTensor().requiresGrad();
    });
  }

  void replace(Node* node, std::vector<IValue>& results) {
    RangeGuard range(&graph_, node->range());
    for (size_t i = 0; i < results.size(); ++i) {
      Value* out = node->output(i);
      Node* constant =
          graph_.createConstant(std::move(results[i]), out->type())->insertBefore(node);
      aliases_.addAlias(constant->output(), out);
      replaceValue(out, constant->output());
    }
    destroy(node);
  }

  Graph& graph_;
  AliasDb aliases_;
  FoldBudget budget_;
  bool changed_ = false;
};

}  // namespace

bool propagateConstants(Graph& graph) {
  return Folder(graph).run();
}

}  // namespace wick
