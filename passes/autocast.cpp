// A scope is an object of one of three classes that is entered and left in one block. The values
// that its __init__ stores say which device it is for, the dtype, and whether it is on at all. A
// scope within a scope changes only its own device's part.
//
//   %s : autocast = prim::CreateObject()
//    = prim::SetAttr[name="device"](%s, %cpu)
//    = prim::SetAttr[name="fast_dtype"](%s, %bfloat16)
//    = prim::SetAttr[name="_enabled"](%s, %true)
//   %e : autocast = prim::Enter(%s)
//   %z : Tensor = aten::mm(%x, %y)             →   %a = aten::_autocast_to_reduced_precision(%x, …)
//                                                  %b = aten::_autocast_to_reduced_precision(%y, …)
//                                                  %z = aten::mm(%a, %b)
//    = prim::Exit(%s)
//
// A tensor that is cast several times is cast once after common_subexpressions, and a weight that
// freezing made constant is cast once for all calls.
#include "passes/autocast.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

using Policy = CastPolicy;

// Whether a value is one of the three objects.
bool isScope(const Value* v) {
  if (v->type()->kind() != TypeKind::Class) return false;
  const std::string name = v->type()->str();
  return name == "__torch__.torch.amp.autocast_mode.autocast" ||
         name == "__torch__.torch.cpu.amp.autocast_mode.autocast" ||
         name == "__torch__.torch.cuda.amp.autocast_mode.autocast";
}

// A scope's arguments as they are after inlining: constants, and what is chosen by whether an
// optional one is None. Nothing is folded before the casts are there, for a product of constants
// within a scope is one of low precision.
const Value* resolved(const Value* v, int depth = 0);

std::optional<bool> conditionOf(const Value* v, int depth) {
  v = resolved(v, depth);
  if (!v) return std::nullopt;
  if (const std::optional<bool> known = boolOf(v)) return known;
  const Node* node = v->node();
  const bool is = node->kind() == Symbol::aten("__is__");
  if (!is && node->kind() != Symbol::aten("__isnot__")) {
    if (node->kind() != Symbol::aten("__not__")) return std::nullopt;
    const std::optional<bool> inner = conditionOf(node->input(0), depth + 1);
    return inner ? std::optional<bool>(!*inner) : std::nullopt;
  }
  const Value *a = resolved(node->input(0), depth + 1), *b = resolved(node->input(1), depth + 1);
  if (!a || !b) return std::nullopt;
  const std::optional<IValue> x = constantOf(a), y = constantOf(b);
  if (!x || !y || (!x->isNone() && !y->isNone())) return std::nullopt;
  return (x->isNone() && y->isNone()) == is;
}

// The value that `v` is in the end; null when that depends on the run.
const Value* resolved(const Value* v, int depth) {
  constexpr int kMaxDepth = 16;
  for (; depth < kMaxDepth; ++depth) {
    const Node* node = v->node();
    if (node->kind() == prim::unchecked_cast || node->kind() == prim::unchecked_unwrap_optional) {
      v = node->input(0);
    } else if (node->kind() == prim::If) {
      const std::optional<bool> holds = conditionOf(node->input(0), depth + 1);
      if (!holds) return nullptr;
      v = node->blocks()[*holds ? 0 : 1]->outputs()[v->offset()];
    } else {
      return v;
    }
  }
  return nullptr;
}

class Caster {
 public:
  explicit Caster(Graph& graph) : graph_(graph) {}

  void block(Block* b, AutocastState around) {
    struct Open {
      const Value* object;
      AutocastState before;
    };
    std::vector<Open> open;
    AutocastState now = around;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      if (node->kind() == prim::Enter && isScope(node->input(0))) {
        for (const Value* bound : node->outputs()) {
          WICK_CHECK(!bound->hasUses(), "autocast: `with autocast() as name` is not supported");
        }
        open.push_back({node->input(0), now});
        now = within(node->input(0), now);
        node->destroy();
      } else if (node->kind() == prim::Exit && isScope(node->input(0))) {
        WICK_CHECK(!open.empty() && open.back().object == node->input(0),
                   "autocast: a scope is left that was not the last to be entered");
        now = open.back().before;
        open.pop_back();
        for (Value* left : node->outputs()) {
          if (!left->hasUses()) continue;
          InsertPointGuard guard(node);
          left->replaceAllUsesWith(graph_.insertNode(graph_.createNone())->output());
        }
        node->destroy();
      } else if (node->kind() == Symbol::aten("is_autocast_enabled") ||
                 node->kind() == Symbol::aten("is_autocast_cpu_enabled")) {
        answer(node, node->kind() == Symbol::aten("is_autocast_enabled") ? now.cuda : now.cpu);
      } else {
        for (Block* inner : node->blocks()) block(inner, now);
        if (now.any()) cast(node, now);
      }
    }
    WICK_CHECK(open.empty(), "autocast: a scope is entered that is not left in the same block");
  }

 private:
  // What holds within the scope.
  static AutocastState within(const Value* object, AutocastState around) {
    WICK_CHECK(object->node()->kind() == prim::CreateObject,
               "autocast: a scope must be made where it is entered, as in `with "
               "torch.autocast(\"cpu\"):`");
    std::optional<bool> enabled;
    std::string device;
    std::optional<DType> dtype;
    for (const Use& use : object->uses()) {
      if (use.user->kind() != prim::SetAttr || use.offset != 0) continue;
      const std::string name = use.user->ivalue(attr::name).toString();
      const Value* stored = resolved(use.user->input(1));
      const std::optional<IValue> value = stored ? constantOf(stored) : std::nullopt;
      if (name == "_enabled") {
        WICK_CHECK(value && value->isBool(), "autocast: `enabled` must be a constant");
        enabled = value->toBool();
      } else if (name == "device") {
        WICK_CHECK(value && value->isString(), "autocast: the device must be a constant");
        device = value->toString();
      } else if (name == "fast_dtype") {
        if (stored && stored->node()->kind() == Symbol::aten("get_autocast_dtype")) continue;
        WICK_CHECK(value, "autocast: `dtype` must be a constant");
        if (value->isInt()) dtype = dtypeFromNumber(value->toInt());
        WICK_CHECK(value->isNone() || dtype, "autocast: {} is no dtype", value->repr());
      }
    }
    WICK_CHECK(enabled && !device.empty(), "autocast: a scope without device or `enabled`");
    WICK_CHECK(device == "cpu" || device == "cuda",
               "autocast: expected the device 'cpu' or 'cuda', got '{}'", device);
    AutocastState inside = around;
    (device == "cpu" ? inside.cpu : inside.cuda) = *enabled;
    if (dtype) (device == "cpu" ? inside.cpu_dtype : inside.cuda_dtype) = *dtype;
    return inside;
  }

  // A question whether autocast is on has its answer here, and is gone.
  void answer(Node* question, bool on) {
    InsertPointGuard guard(question);
    question->output()->replaceAllUsesWith(graph_.insertConstant(IValue(on)));
    question->destroy();
  }

  void cast(Node* node, const AutocastState& now) {
    WICK_CHECK(node->kind() != prim::CallFunction && node->kind() != prim::CallMethod,
               "autocast: calls within its scope must be known when compiling, not go by an "
               "interface or nest too deeply: {}",
               node->str());
    const Operator* const op = node->maybeOperator();
    const Policy policy = op ? castPolicyOf(*op) : Policy::None;
    if (policy == Policy::None) return;
    const FunctionSchema* schema = node->maybeSchema();
    if (schema && schema->isMutable()) return;
    if (policy == Policy::Widest && !readsFloat(node)) return;
    AutocastState wanted = now;
    if (policy == Policy::FullOnCuda) wanted.cpu = false;
    if (policy == Policy::FullOnCuda || policy == Policy::FullUnlessTold) {
      if (!wanted.any() || saysDType(node)) return;
    }
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      Value* const input = node->input(i);
      if (input->type()->kind() == TypeKind::Tensor) {
        node->replaceInput(i, casted(node, input, policy, wanted));
      } else if (isOptionalTensor(*input->type())) {
        node->replaceInput(i, castedIfThere(node, input, policy, wanted));
      }
    }
  }

  static bool isOptionalTensor(const Type& type) {
    const auto* optional = type.as<OptionalType>();
    return optional && optional->element()->kind() == TypeKind::Tensor;
  }

  // As the bias of a layer, which may have none.
  Value* castedIfThere(Node* user, Value* tensor, Policy policy, const AutocastState& now) {
    InsertPointGuard guard(user);
    RangeGuard range(&graph_, user->range());
    Value* const none = graph_.insertNode(graph_.createNone())->output();
    Node* const is_there = graph_.insertNode(graph_.create(aten::__isnot__, {tensor, none}));
    is_there->output()->setType(types::Bool());
    Node* const choice = graph_.insertNode(graph_.create(prim::If, {is_there->output()}, 0));
    Block* const there = choice->addBlock();
    {
      InsertPointGuard within(there);
      Node* const known = graph_.insertNode(graph_.create(prim::unchecked_cast, {tensor}));
      known->output()->setType(types::Tensor());
      there->registerOutput(castedHere(user, known->output(), policy, now));
    }
    choice->addBlock()->registerOutput(none);
    return choice->addOutput(tensor->type());
  }

  static bool saysDType(const Node* node) {
    const FunctionSchema* schema = node->maybeSchema();
    if (!schema) return false;
    const std::optional<size_t> i = schema->argumentIndex("dtype");
    if (!i || *i >= node->inputs().size()) return false;
    return node->input(*i)->type()->kind() != TypeKind::None;
  }

  // Whether a tensor may be float32, as far as its type tells.
  static bool readsFloat(const Node* node) {
    for (const Value* v : node->inputs()) {
      const TensorFacts* facts = factsOf(v);
      if (facts && (!facts->dtype || *facts->dtype == DType::Float)) return true;
    }
    return false;
  }

  Value* casted(Node* user, Value* tensor, Policy policy, const AutocastState& now) {
    InsertPointGuard guard(user);
    RangeGuard range(&graph_, user->range());
    return castedHere(user, tensor, policy, now);
  }
  Value* castedHere(const Node* user, Value* tensor, Policy policy, const AutocastState& now) {
    std::vector<Value*> inputs{tensor, graph_.insertConstant(IValue(now.cuda)),
                               graph_.insertConstant(IValue(now.cpu))};
    const bool reduced = policy == Policy::Reduced;
    if (reduced) {
      inputs.push_back(graph_.insertConstant(IValue(static_cast<int64_t>(now.cuda_dtype))));
      inputs.push_back(graph_.insertConstant(IValue(static_cast<int64_t>(now.cpu_dtype))));
    }
    static const Symbol kReduced = Symbol::aten("_autocast_to_reduced_precision");
    static const Symbol kFull = Symbol::aten("_autocast_to_full_precision");
    Node* made = graph_.insertNode(graph_.create(reduced ? kReduced : kFull, inputs));
    made->setInlinedFrom(user->inlinedFrom());
    return made->output();
  }

  Graph& graph_;
};

}  // namespace

CastPolicy castPolicyOf(const Operator& op) {
  WICK_CHECK(!op.has(kCastUnsafe),
             "{} is unsafe within autocast: take binary_cross_entropy_with_logits instead of a "
             "sigmoid and this",
             op.symbol().qualString());
  constexpr std::pair<OperatorFlags, CastPolicy> kPolicies[] = {
      {kCastReduced, CastPolicy::Reduced},
      {kCastFull, CastPolicy::Full},
      {kCastFullUnlessTold, CastPolicy::FullUnlessTold},
      {kCastFullOnCuda, CastPolicy::FullOnCuda},
      {kCastWidest, CastPolicy::Widest}};
  const auto* const found =
      std::ranges::find_if(kPolicies, [&](const auto& each) { return op.has(each.first); });
  return found == std::end(kPolicies) ? CastPolicy::None : found->second;
}

bool entersAutocast(const Graph& graph) {
  return anyNode(graph.block(), [](const Node* node) {
    return node->kind() == prim::Enter && isScope(node->input(0));
  });
}

bool insertAutocasts(Graph& graph) {
  if (!entersAutocast(graph)) return false;
  return insertAutocastsWithin(graph, AutocastState());
}

bool insertAutocastsWithin(Graph& graph, const AutocastState& around) {
  Caster(graph).block(graph.block(), around);
  return true;
}

}  // namespace wick
