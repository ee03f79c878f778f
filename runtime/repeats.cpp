#include "runtime/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/tensor_kind.h"
#include "ir/alias_db.h"
#include "ir/depth.h"
#include "ir/function.h"
#include "ir/graph.h"
#include "ir/operator.h"
#include "passes/inline_calls.h"
#include "passes/inline_forks.h"
#include "runtime/fusion/site_derivative.h"

namespace wick {

namespace {

// Operators with effects that end with the call, or that the call does not survive. What there was to
// warn of was told by the calls that were run.
bool isForgotten(const Operator& op) {
  static const std::unordered_set<std::string> kNames = {"aten::grad",
                                                         "aten::warn",
                                                         "aten::is_grad_enabled",
                                                         "aten::set_grad_enabled",
                                                         "prim::RaiseException",
                                                         "aten::_assert_async"};
  return kNames.contains(op.schema().name());
}

std::string effectOfOperator(const AliasDb& aliases, const Node* node, const Operator& op) {
  if (node->isNondeterministic()) return "draws random numbers";
  if (op.has(kSideEffects) && !isForgotten(op)) return fmt::format("calls {}", op.schema().name());
  if (!node->blocks().empty() || !aliases.writesOutside(node)) return {};
  if (op.has(kChangesMetadata)) {
    return fmt::format("changes more of a tensor than its elements ({})", op.schema().name());
  }
  const uint64_t written = op.writtenArguments(*node);
  for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
    if ((written >> i & 1) == 0) continue;
    if (node->input(i)->type()->kind() != TypeKind::Tensor) {
      return fmt::format("changes a {} that outlives it", node->input(i)->type()->annotation());
    }
  }
  return {};
}

// Whether the node is about an object of torch.no_grad() and its like, made in this call: they bring the
// mode back.
bool isGradientSwitch(const Node* node) {
  if (node->inputs().empty()) return false;
  const Value* object = node->input(0);
  return object->node()->kind() == prim::CreateObject &&
         object->type()->annotation().starts_with("__torch__.torch.autograd.grad_mode.");
}

std::string effectOf(const AliasDb& aliases, const Block* block) {
  static const Symbol kPrint = Symbol::prim("Print"), kEnter = Symbol::prim("Enter"),
                      kExit = Symbol::prim("Exit");
  for (const Node* node : block->nodes()) {
    const Symbol kind = node->kind();
    const bool switches = isGradientSwitch(node);
    if (kind == prim::SetAttr && !switches) return "sets an attribute";
    if ((kind == kEnter || kind == kExit) && !switches) return "enters a context of its own";
    if (kind == kPrint) return "prints";
    if (kind == prim::fork) return "forks";
    if (kind == prim::CallFunction || kind == prim::CallMethod) {
      return "calls what is not known before it runs";
    }
    // The elements of a constant of the CPU would not be written again.
    if (kind == prim::Constant && aliases.hasWriters(node->output())) return "writes to a constant";
    for (const Block* inner : node->blocks()) {
      std::string found = effectOf(aliases, inner);
      if (!found.empty()) return found;
    }
    if (const Operator* op = node->maybeOperator()) {
      std::string found = effectOfOperator(aliases, node, *op);
      if (!found.empty()) return found;
    }
  }
  return {};
}

bool writesOutside(const AliasDb& aliases, const Block* block) {
  return std::ranges::any_of(block->nodes(), [&](const Node* node) {
    return (node->blocks().empty() && aliases.writesOutside(node)) ||
           std::ranges::any_of(node->blocks(),
                               [&](const Block* b) { return writesOutside(aliases, b); });
  });
}

// Walks over what an object holds. Depth and number are bounded: programs make any.
class StateWalk {
 public:
  explicit StateWalk(std::vector<IValue>& state) : state_(state) {}

  bool add(const IValue& value, int depth) {
    if (!counts(1) || depth > kDeepest) return false;
    if (value.isObject()) return add(value.toObject(), depth);
    note(static_cast<int64_t>(value.tag()));
    switch (value.tag()) {
      case IValue::Tag::Tensor:
        return addTensor(value.toTensor());
      case IValue::Tag::None:
        return true;
      case IValue::Tag::Int:
      case IValue::Tag::Double:
      case IValue::Tag::Bool:
        state_.push_back(value);
        return true;
      case IValue::Tag::String:
        state_.push_back(value);
        return counts(value.toString().size());
      case IValue::Tag::Enum:
        return add(value.toEnum().value, depth + 1);
      case IValue::Tag::List:
      case IValue::Tag::Tuple:
        note(static_cast<int64_t>(value.elements().size()));
        return std::ranges::all_of(value.elements(),
                                   [&](const IValue& e) { return add(e, depth + 1); });
      case IValue::Tag::Dict:
        note(static_cast<int64_t>(value.toDict().size()));
        return value.toDict().all([&](const IValue& key, const IValue& held) {
          return add(key, depth + 1) && add(held, depth + 1);
        });
      default:
        return false;
    }
  }
  bool add(const Object& object, int depth) {
    const auto& attributes = object.type()->attributes();
    // Which class it is of decides what calls do where an interface is declared.
    note(reinterpret_cast<int64_t>(object.type().get()));
    for (size_t i = 0; i < attributes.size(); ++i) {
      if (!add(object.slot(i), depth + 1)) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kMost = 20000;  // values, characters and dimensions
  static constexpr int kDeepest = 64;

  bool counts(size_t more) {
    seen_ += more;
    return seen_ <= kMost;
  }
  void note(int64_t number) { state_.emplace_back(number); }
  bool addTensor(const Tensor& t) {
    note(t.defined());
    if (!t.defined()) return true;
    const SiteDerivative::Factory* gradients = SiteDerivative::factory();
    if (t.kind() != TensorKind::Dense || t.impl()->is_conj ||
        (gradients && !gradients->ends_quietly(t))) {
      return false;
    }
    state_.emplace_back(t);
    return counts(t.sizes().size());
  }

  std::vector<IValue>& state_;
  size_t seen_ = 0;
};

}  // namespace

std::string lastingEffect(const GraphFunction& function) {
  const std::shared_ptr<Graph> graph = function.graph()->copy();
  std::string found;
  inlineCalls(*graph);
  inlineForks(*graph);
  withStackFor(*graph, [&] {
    const AliasDb aliases(*graph);
    found = effectOf(aliases, graph->block());
  });
  return found;
}

std::vector<bool> forksBeside(const Graph& original) {
  const std::shared_ptr<Graph> graph = original.copy();
  const std::vector<InlinedFork> forks = inlineForks(*graph);
  std::vector<bool> beside;
  withStackFor(*graph, [&] {
    const AliasDb aliases(*graph);
    if (forks.empty() || writesOutside(aliases, graph->block()) ||
        !effectOf(aliases, graph->block()).empty()) {
      return;
    }
    beside.resize(forks.back().number + 1);
    for (const InlinedFork& fork : forks) {
      beside[fork.number] = std::ranges::none_of(
          fork.inputs, [&](const Value* given) { return aliases.hasWriters(given); });
    }
  });
  return beside;
}

bool collectState(const Object& object, std::vector<IValue>& state) {
  return StateWalk(state).add(object, 0);
}

}  // namespace wick
