#include "serialization/exported/recorded_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/grad_mode.h"
#include "core/source_origin.h"
#include "core/value_conversions.h"
#include "ir/operator.h"

namespace wick::exported {
namespace {

// The values that no node behind a node of their block reads any more.
class LastUses {
 public:
  explicit LastUses(const Graph& graph) { visit(*graph.block()); }

  const std::vector<const Value*>& of(const Node* node) const {
    static const std::vector<const Value*> kNone;
    const auto found = released_.find(node);
    return found == released_.end() ? kNone : found->second;
  }

 private:
  using Values = std::unordered_set<const Value*>;

  // Returns the values from outside that the block reads.
  Values visit(const Block& block) {
    Values made(block.inputs().begin(), block.inputs().end());
    for (const Node* node : block.nodes())
      made.insert(node->outputs().begin(), node->outputs().end());
    // From the end to the begin: a value that was not met yet has no readers behind the node.
    const std::vector<const Node*> nodes(block.nodes().begin(), block.nodes().end());
    Values met(block.outputs().begin(), block.outputs().end());
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      Values read((*node)->inputs().begin(), (*node)->inputs().end());
      for (const Block* inner : (*node)->blocks()) read.merge(visit(*inner));
      read.insert((*node)->outputs().begin(), (*node)->outputs().end());
      for (const Value* value : read) {
        if (met.insert(value).second && made.contains(value)) released_[*node].push_back(value);
      }
    }
    std::erase_if(met, [&](const Value* value) { return made.contains(value); });
    return met;
  }

  std::unordered_map<const Node*, std::vector<const Value*>> released_;
};

// The run itself, with the values that are alive.
class ExampleRun {
 public:
  ExampleRun(const Graph& graph, std::unordered_map<const Value*, RecordedValue>& recorded)
      : last_uses_(graph), recorded_(recorded) {}

  IValue run(const Graph& graph, std::vector<IValue> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      set(graph.inputs()[i], std::exchange(arguments[i], IValue()));
    }
    runBlock(*graph.block());
    return live_.at(graph.outputs().at(0));
  }

 private:
  const IValue& valueOf(const Value* value) const { return live_.at(value); }

  void set(const Value* value, IValue made) {
    recorded_[value] = RecordedValue::of(made);
    live_[value] = std::move(made);
  }

  // A value that another one already is.
  void setAs(const Value* value, const Value* other) {
    recorded_[value] = recorded_.at(other);
    live_[value] = valueOf(other);
  }

  std::vector<IValue> inputsOf(const Node& node) const {
    std::vector<IValue> out;
    for (const Value* input : node.inputs()) out.push_back(valueOf(input));
    return out;
  }

  void runBlock(const Block& block) {
    for (const Node* node : block.nodes()) {
      try {
        runNode(*node);
      } catch (const RuntimeError& error) {
        if (std::string_view(error.brief()).starts_with("export: ")) throw;
        throwRuntimeError("export: the example fails: {}\n{}", error.brief(),
                          userRange(node->range()).highlight());
      }
      for (const Value* value : last_uses_.of(node)) live_.erase(value);
    }
  }

  // Drops what the block made.
  void leave(const Block& block) {
    for (const Value* input : block.inputs()) live_.erase(input);
    for (const Node* node : block.nodes()) {
      for (const Value* output : node->outputs()) live_.erase(output);
    }
  }

  void runIf(const Node& node) {
    const bool chosen = valueOf(node.input(0)).toBool();
    const Block* taken = node.blocks()[chosen ? 0 : 1];
    const Block* other = node.blocks()[chosen ? 1 : 0];
    // The other side first: its values must not be those of the results. It may be unable to run.
    try {
      runBlock(*other);
    } catch (const RuntimeError&) {
    }
    leave(*other);
    runBlock(*taken);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      setAs(node.output(i), taken->outputs()[i]);
    }
    leave(*taken);
  }

  // A Loop: most, begins, values; the body gets the number of the iteration and the values.
  void runLoop(const Node& node) {
    const Block* body = node.blocks()[0];
    const int64_t most = valueOf(node.input(0)).toInt();
    bool goes_on = valueOf(node.input(1)).toBool();
    std::vector<IValue> carried = inputsOf(node);
    carried.erase(carried.begin(), carried.begin() + 2);
    constexpr int64_t kMost = 1'000'000;
    // The body runs at least once, so that its values are known.
    for (int64_t i = 0; i == 0 || (goes_on && i < most); ++i) {
      if (i == kMost) throwRuntimeError("a loop does not end within {} iterations", kMost);
      const bool counts = goes_on && i < most;
      set(body->inputs()[0], IValue(i));
      for (size_t k = 0; k < carried.size(); ++k) {
        set(body->inputs()[k + 1], counts ? std::exchange(carried[k], IValue()) : carried[k]);
      }
      runBlock(*body);
      if (counts) {
        goes_on = valueOf(body->outputs()[0]).toBool();
        for (size_t k = 0; k < carried.size(); ++k) carried[k] = valueOf(body->outputs()[k + 1]);
      }
      leave(*body);
      if (!counts) break;
    }
    for (size_t k = 0; k < carried.size(); ++k) set(node.output(k), std::move(carried[k]));
  }

  void runNode(const Node& node);
  void runOperator(const Node& node, std::vector<IValue> inputs);

  const LastUses last_uses_;
  std::unordered_map<const Value*, RecordedValue>& recorded_;
  std::unordered_map<const Value*, IValue> live_;
};

void ExampleRun::runNode(const Node& node) {
  const Symbol kind = node.kind();
  if (kind == prim::Constant) {
    return set(node.output(), node.hasAttribute(attr::value) ? node.ivalue(attr::value) : IValue());
  }
  if (kind == prim::If) return runIf(node);
  if (kind == prim::Loop) return runLoop(node);
  if (kind == prim::unchecked_cast) return setAs(node.output(), node.input(0));
  if (kind == prim::Uninitialized) return set(node.output(), IValue());
  std::vector<IValue> inputs = inputsOf(node);
  if (kind == prim::TupleConstruct) {
    set(node.output(), IValue(makeRef<TupleObject>(std::move(inputs))));
  } else if (kind == prim::ListConstruct) {
    set(node.output(), IValue(makeRef<ListObject>(node.output()->type()->as<ListType>()->element(),
                                                  std::move(inputs))));
  } else if (kind == prim::DictConstruct) {
    const auto* type = node.output()->type()->as<DictType>();
    auto dict = makeRef<DictObject>(type->key(), type->value());
    for (size_t i = 0; i + 1 < inputs.size(); i += 2) dict->set(inputs[i], inputs[i + 1]);
    set(node.output(), IValue(std::move(dict)));
  } else if (kind == prim::TupleUnpack || kind == prim::ListUnpack) {
    const auto& elements = inputs[0].elements();
    if (elements.size() != node.outputs().size()) throwRuntimeError("a list of another length");
    for (size_t i = 0; i < elements.size(); ++i) set(node.output(i), elements[i]);
  } else if (kind == prim::TupleIndex) {
    set(node.output(), inputs[0].elements().at(static_cast<size_t>(inputs[1].toInt())));
  } else {
    runOperator(node, std::move(inputs));
  }
}

void ExampleRun::runOperator(const Node& node, std::vector<IValue> inputs) {
  const Symbol kind = node.kind();
  const Operator* op = node.maybeOperator();
  if (kind == prim::GetAttr || kind == prim::SetAttr) {
    throwRuntimeError("export: the program writes to the attribute '{}' of a module\n{}",
                      node.ivalue(attr::name).toString(), userRange(node.range()).highlight());
  }
  if (!op) {
    throwRuntimeError("export: {} has no form in exported programs\n{}", kind.qualString(),
                      userRange(node.range()).highlight());
  }
  // A list that changes and is given back is not looked at again: loops may change it often.
  const bool gives_list_back = node.outputs().size() == 1 && !inputs.empty() &&
                               inputs[0].isList() && !node.output()->hasUses();
  const ListObject* list = gives_list_back ? &inputs[0].toList() : nullptr;
  std::vector<IValue> results(node.outputs().size());
  op->call(inputs.data(), inputs.size(), results.data(), results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    if (list && results[i].isList() && &results[i].toList() == list) {
      setAs(node.output(i), node.input(0));
    } else {
      set(node.output(i), std::move(results[i]));
    }
  }
}

}  // namespace

RecordedTensor::RecordedTensor(const Tensor& tensor)
    : sizes(tensor.sizes().begin(), tensor.sizes().end()),
      strides(tensor.strides().begin(), tensor.strides().end()),
      dtype(tensor.dtype()),
      device(tensor.device()),
      requires_grad(tensor.requiresGrad()),
      is_strided(tensor.isStrided()) {
  if (is_strided && tensor.dim() == 0) number = tensor.detach().clone();
}

RecordedValue RecordedValue::of(const IValue& value) {
  RecordedValue out;
  if (value.isTensor() && value.toTensor().defined()) {
    out.kind = Kind::Tensor;
    out.is_plain = false;
    out.tensor = std::make_shared<const RecordedTensor>(value.toTensor());
    return out;
  }
  if (!value.isList() && !value.isTuple() && !value.isDict()) {
    if (!value.isTensor()) out.plain = value;
    return out;
  }
  out.kind = value.isList() ? Kind::List : value.isTuple() ? Kind::Tuple : Kind::Dict;
  if (value.isDict()) {
    for (const auto& [key, element] : value.items()) {
      out.keys.push_back(key);
      out.elements.push_back(of(element));
    }
    out.is_plain = false;
    return out;
  }
  for (const IValue& element : value.elements()) {
    out.elements.push_back(of(element));
    out.is_plain = out.is_plain && out.elements.back().is_plain;
  }
  if (!out.is_plain) return out;
  // Lists may change later.
  std::vector<IValue> elements;
  for (const RecordedValue& element : out.elements) elements.push_back(element.plain);
  out.plain = value.isTuple()
                  ? IValue(makeRef<TupleObject>(std::move(elements), value.toTuple().named))
                  : IValue(makeRef<ListObject>(value.toList().element_type, std::move(elements)));
  return out;
}

const RecordedValue* RecordedValue::at(const IValue& key) const {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].repr() == key.repr()) return &elements[i];
  }
  return nullptr;
}

bool operator==(const RecordedValue& a, const RecordedValue& b) {
  if (a.kind != b.kind || a.is_plain != b.is_plain) return false;
  if (a.is_plain) return a.plain.repr() == b.plain.repr();
  if (a.isTensor()) {
    return a.tensor->sizes == b.tensor->sizes && a.tensor->strides == b.tensor->strides &&
           a.tensor->dtype == b.tensor->dtype && a.tensor->device == b.tensor->device;
  }
  const auto is_same_key = [](const IValue& x, const IValue& y) { return x.repr() == y.repr(); };
  return a.elements == b.elements && std::ranges::equal(a.keys, b.keys, is_same_key);
}

RecordedRun::RecordedRun(const Graph& graph, std::vector<IValue> arguments) {
  WICK_ASSERT(arguments.size() == graph.inputs().size(), "{} arguments for {} inputs",
              arguments.size(), graph.inputs().size());
  const GradModeGuard no_grad(false);
  result_ = RecordedValue::of(ExampleRun(graph, values_).run(graph, std::move(arguments)));
}

const RecordedValue* RecordedRun::find(const Value* value) const {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace wick::exported
