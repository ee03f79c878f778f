#include "serialization/exported/recorded_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/grad_mode.h"
#include "core/source_origin.h"
#include "core/value_conversions.h"
#include "ir/operator.h"

namespace wick::exported {

namespace {

// Numbers are read from tensors of few elements.
constexpr int64_t kFewElements = 64;

}  // namespace

Tensor LayoutTensors::withoutElements(const Tensor& tensor) {
  const bool is_plain = tensor.defined() && tensor.kind() == TensorKind::Dense;
  if (!is_plain || tensor.numel() <= kFewElements) return tensor;
  int64_t last = 0;  // element
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  const size_t bytes = static_cast<size_t>(last + 1) * tensor.itemSize();
  const Device device = tensor.device();
  Ref<Storage>& memory = memory_[{device.type, device.index}];
  if (!memory || memory->bytes() < bytes) {
    memory = Storage::allocate(std::max(bytes, memory ? 2 * memory->bytes() : 0), device);
  }
  return Tensor::fromStorage(memory, tensor.dtype(), tensor.sizes(), tensor.strides(), 0);
}

IValue LayoutTensors::withoutElements(const IValue& value) {
  if (value.isTensor()) return IValue(withoutElements(value.toTensor()));
  if (!value.isList() && !value.isTuple()) return value;
  std::vector<IValue> elements;
  for (const IValue& element : value.elements()) elements.push_back(withoutElements(element));
  if (value.isTuple())
    return IValue(makeRef<TupleObject>(std::move(elements), value.toTuple().named));
  return IValue(makeRef<ListObject>(value.toList().element_type, std::move(elements)));
}

RecordedRun::RecordedRun(const Graph& graph, const std::vector<IValue>& arguments,
                         LayoutTensors& layouts) {
  WICK_ASSERT(arguments.size() == graph.inputs().size(), "{} arguments for {} inputs",
              arguments.size(), graph.inputs().size());
  const GradModeGuard no_grad(false);
  for (size_t i = 0; i < arguments.size(); ++i) values_[graph.inputs()[i]] = arguments[i];
  runGraph(graph, layouts);
}

void RecordedRun::runGraph(const Graph& graph, LayoutTensors& layouts) {
  std::unordered_map<const Node*, std::vector<const Value*>> last_used;
  std::unordered_map<const Value*, const Node*> last_user;
  // In order, so that the last entry stays.
  const std::function<void(const Block&, const Node*)> visit = [&](const Block& block,
                                                                   const Node* outer) {
    for (const Node* node : block.nodes()) {
      const Node* const at = outer ? outer : node;
      for (const Value* input : node->inputs()) last_user[input] = at;
      for (const Value* output : node->outputs()) last_user.emplace(output, at);
      for (const Block* inner : node->blocks()) {
        for (const Value* input : inner->inputs()) last_user.emplace(input, at);
        for (const Value* output : inner->outputs()) last_user[output] = at;
        visit(*inner, at);
      }
    }
  };
  visit(*graph.block(), nullptr);
  for (const Value* output : graph.outputs()) last_user.erase(output);
  for (const auto& [value, node] : last_user) last_used[node].push_back(value);
  const auto release = [&](const Value* value) {
    const auto found = values_.find(value);
    // A constant is what it is.
    if (found == values_.end() || value->node()->kind() == prim::Constant) return;
    found->second = layouts.withoutElements(found->second);
  };
  for (const Node* node : graph.nodes()) {
    runAt(*node);
    for (const Value* value : last_used[node]) release(value);
  }
  for (const Value* output : graph.outputs()) release(output);
}

const IValue* RecordedRun::find(const Value* value) const {
  const auto found = values_.find(value);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<IValue> RecordedRun::inputsOf(const Node& node) const {
  std::vector<IValue> out;
  for (const Value* input : node.inputs()) out.push_back(values_.at(input));
  return out;
}

void RecordedRun::runBlock(const Block& block) {
  for (const Node* node : block.nodes()) runAt(*node);
}

void RecordedRun::runAt(const Node& node) {
  try {
    runNode(node);
  } catch (const RuntimeError& error) {
    if (std::string_view(error.brief()).starts_with("export: ")) throw;
    throwRuntimeError("export: the example fails: {}\n{}", error.brief(),
                      userRange(node.range()).highlight());
  }
}

void RecordedRun::runControlFlow(const Node& node) {
  if (node.kind() == prim::If) {
    const bool chosen = values_.at(node.input(0)).toBool();
    const Block* taken = node.blocks()[chosen ? 0 : 1];
    // The other side first: its values must not be those of the results. It may be unable to run.
    try {
      runBlock(*node.blocks()[chosen ? 1 : 0]);
    } catch (const RuntimeError&) {
    }
    runBlock(*taken);
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      values_[node.output(i)] = values_.at(taken->outputs()[i]);
    }
    return;
  }
  // A Loop: most, begins, values; the body gets the number of the iteration and the values.
  const Block* body = node.blocks()[0];
  const int64_t most = values_.at(node.input(0)).toInt();
  bool goes_on = values_.at(node.input(1)).toBool();
  std::vector<IValue> carried = inputsOf(node);
  carried.erase(carried.begin(), carried.begin() + 2);
  constexpr int64_t kMost = 1'000'000;
  // The body runs at least once, so that its values are known.
  for (int64_t i = 0; i == 0 || (goes_on && i < most); ++i) {
    if (i == kMost) throwRuntimeError("a loop does not end within {} iterations", kMost);
    const bool counts = goes_on && i < most;
    values_[body->inputs()[0]] = IValue(i);
    for (size_t k = 0; k < carried.size(); ++k) values_[body->inputs()[k + 1]] = carried[k];
    runBlock(*body);
    if (!counts) break;
    goes_on = values_.at(body->outputs()[0]).toBool();
    for (size_t k = 0; k < carried.size(); ++k) carried[k] = values_.at(body->outputs()[k + 1]);
  }
  for (size_t k = 0; k < carried.size(); ++k) values_[node.output(k)] = carried[k];
}

void RecordedRun::runNode(const Node& node) {
  const Symbol kind = node.kind();
  if (kind == prim::Constant) {
    if (node.hasAttribute(attr::value)) {
      values_[node.output()] = node.ivalue(attr::value);
    } else {
      values_[node.output()] = IValue();
    }
    return;
  }
  if (kind == prim::If || kind == prim::Loop) return runControlFlow(node);
  if (kind == prim::unchecked_cast) {
    values_[node.output()] = values_.at(node.input(0));
    return;
  }
  if (kind == prim::Uninitialized) {
    values_[node.output()] = IValue();
    return;
  }
  std::vector<IValue> inputs = inputsOf(node);
  if (kind == prim::TupleConstruct) {
    values_[node.output()] = IValue(makeRef<TupleObject>(std::move(inputs)));
  } else if (kind == prim::ListConstruct) {
    values_[node.output()] = IValue(
        makeRef<ListObject>(node.output()->type()->as<ListType>()->element(), std::move(inputs)));
  } else if (kind == prim::DictConstruct) {
    const auto* type = node.output()->type()->as<DictType>();
    auto dict = makeRef<DictObject>(type->key(), type->value());
    for (size_t i = 0; i + 1 < inputs.size(); i += 2) dict->set(inputs[i], inputs[i + 1]);
    values_[node.output()] = IValue(std::move(dict));
  } else if (kind == prim::TupleUnpack || kind == prim::ListUnpack) {
    const auto& elements = inputs[0].elements();
    if (elements.size() != node.outputs().size()) throwRuntimeError("a list of another length");
    for (size_t i = 0; i < elements.size(); ++i) values_[node.output(i)] = elements[i];
  } else if (kind == prim::TupleIndex) {
    values_[node.output()] = inputs[0].elements().at(static_cast<size_t>(inputs[1].toInt()));
  } else {
    const Operator* op = node.maybeOperator();
    if (kind == prim::GetAttr || kind == prim::SetAttr) {
      throwRuntimeError("export: the program writes to the attribute '{}' of a module\n{}",
                        node.ivalue(attr::name).toString(), userRange(node.range()).highlight());
    }
    if (!op) {
      throwRuntimeError("export: {} has no form in exported programs\n{}", kind.qualString(),
                        userRange(node.range()).highlight());
    }
    std::vector<IValue> results(node.outputs().size());
    op->call(inputs.data(), inputs.size(), results.data(), results.size());
    for (size_t i = 0; i < results.size(); ++i) values_[node.output(i)] = std::move(results[i]);
  }
}

}  // namespace wick::exported
