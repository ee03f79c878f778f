#include "python/captured_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "capture/compiled_call.h"
#include "core/device_backend.h"
#include "core/generator_state.h"
#include "core/grad_mode.h"
#include "passes/dead_code_elimination.h"
#include "python/call_plan.h"
#include "python/eager.h"
#include "python/interrupts.h"
#include "python/script.h"
#include "python/tensor_object.h"
#include "runtime/call.h"

namespace wick::python {
namespace {

using capture::Object;

// Returns whether the condition holds for a node of the block or of the blocks within.
template <class Condition>
bool anyNode(const Block& block, const Condition& condition) {
  for (const Node* node : block.nodes()) {
    if (condition(*node)) return true;
    for (const Block* inner : node->blocks()) {
      if (anyNode(*inner, condition)) return true;
    }
    if (node->findAttribute(attr::Subgraph) &&
        anyNode(*node->subgraph(attr::Subgraph)->block(), condition)) {
      return true;
    }
  }
  return false;
}

// The state that a run may change: the inputs' memory, which counts its writes, and random numbers.
// These are put back when nothing else has changed.
class Memory {
 public:
  Memory(bool impure, std::span<const Object> inputs) {
    if (!impure) return;
    generator_ = GeneratorState::of(defaultGenerator());
    for (const Object& each : inputs) {
      storages_.push_back(tensorIn(each.get()).impl()->storage);
      versions_.push_back(storages_.back()->version());
    }
  }
  bool isTouched() const {
    for (size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i]->version() != versions_[i]) return true;
    }
    if (generator_) generator_->restore(defaultGenerator());
    return false;
  }

 private:
  std::vector<Ref<Storage>> storages_;
  std::vector<uint32_t> versions_;
  std::optional<GeneratorState> generator_;
};

// Returns whether inputs share memory that the engine takes for several memories, as of tensors on one array.
bool shareUnseenMemory(std::span<const Object> inputs) {
  struct Range {
    const Storage* memory;
    uintptr_t begin, end;
  };
  std::vector<Range> ranges;
  for (const Object& each : inputs) {
    const Ref<Storage>& memory = tensorIn(each.get()).impl()->storage;
    if (!memory || memory->bytes() == 0) continue;
    const auto begin = reinterpret_cast<uintptr_t>(memory->data());
    ranges.push_back({memory.get(), begin, begin + memory->bytes()});
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  for (size_t i = 1; i < ranges.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (ranges[k].memory != ranges[i].memory && ranges[i].begin < ranges[k].end) return true;
    }
  }
  return false;
}

// A graph, whichever way it is run.
class Captured : public capture::CapturedGraph {
 public:
  explicit Captured(ScriptGraph script) : script_(std::move(script)) {}

  void run(std::span<const Object> inputs, std::vector<Object>& outputs,
           bool& touched) const override {
    if (script_.writes && shareUnseenMemory(inputs)) {
      PyErr_SetString(PyExc_RuntimeError,
                      "an input that is written shares memory with another one");
      throw capture::PythonError();
    }
    const Memory memory(script_.impure, inputs);
    const bool grad_mode = gradEnabled();
    try {
      compute(inputs, outputs);
    } catch (const capture::PythonError&) {
      setGradEnabled(grad_mode);
      touched = !mayRunPlainly() || memory.isTouched();
      throw;
    } catch (...) {
      setGradEnabled(grad_mode);
      touched = !mayRunPlainly() || memory.isTouched();
      throwAsPlainError();
    }
  }
  std::string text() const override { return script_.function->graph()->str(); }
  std::string contents() const override { return contentsOf(*script_.function->graph()); }
  bool isImpure() const override { return script_.impure; }
  bool writes() const override { return script_.writes; }
  int64_t numWrongGuesses() const override { return script_.guesses ? script_.guesses->wrong : 0; }
  std::vector<int64_t> actualSizes() const override {
    return script_.guesses ? script_.guesses->actual : std::vector<int64_t>();
  }
  std::vector<int64_t> measured(std::span<const Object> inputs) const override {
    if (!script_.guesses) return {};
    try {
      return script_.guesses->measured(*script_.function->graph(), tensorsOf(inputs));
    } catch (const RuntimeError&) {
      return {};
    }
  }
  int numOperators() const override { return script_.num_operators; }
  Object object() const override {
    return Object::checked(scriptFunctionObject(script_.function, script_.unit));
  }
  std::shared_ptr<CapturedGraph> operatorByOperator() const override;
  std::shared_ptr<CapturedGraph> calling(Object function) const override;

 protected:
  // Returns whether an error may be left to the program, which runs plainly then.
  virtual bool mayRunPlainly() const { return true; }
  // Appends the outputs. May throw anything.
  virtual void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const {
    std::vector<IValue> values;
    values.reserve(inputs.size());
    for (const Object& each : inputs) values.emplace_back(tensorIn(each.get()));
    IValue result;
    {
      const RunOptions options = interruptibleRun();
      const std::shared_ptr<void> owner = script_.unit;
      try {
        const WithoutGil others;
        result = callFunction(*script_.function, std::move(values), {}, options, &owner);
      } catch (const RuntimeError&) {
        const auto& guesses = script_.guesses;
        if (guesses) guesses->learn(*script_.function->graph(), tensorsOf(inputs));
        throw;
      }
    }
    append(result, inputs, outputs);
  }
  void append(const IValue& result, std::span<const Object> inputs,
              std::vector<Object>& outputs) const {
    if (script_.guesses) script_.guesses->check(tensorsOf(inputs), result.elements());
    const size_t before = outputs.size();
    for (const IValue& each : result.elements()) {
      const Tensor tensor = each.toTensor();
      const std::span<const Object> others(outputs.data() + before, outputs.size() - before);
      Object known = knownObject(tensor, inputs, others);
      outputs.push_back(known ? std::move(known) : Object::checked(tensorObject(tensor)));
    }
    outputs.resize(outputs.size() - script_.num_hidden);
  }

  const ScriptGraph script_;

 private:
  static std::vector<Tensor> tensorsOf(std::span<const Object> objects) {
    std::vector<Tensor> tensors;
    for (const Object& each : objects) tensors.push_back(tensorIn(each.get()));
    return tensors;
  }
  // Returns the input or the output before it that a result is itself, where a branch decides that;
  // null where it is none of them.
  Object knownObject(const Tensor& result, std::span<const Object> inputs,
                     std::span<const Object> outputs) const {
    if (script_.joined.empty()) return {};
    const bool joined = script_.joined[outputs.size()];
    for (size_t i = 0; joined && i < inputs.size(); ++i) {
      if (tensorIn(inputs[i].get()).impl() == result.impl()) return inputs[i];
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if ((joined || script_.joined[i]) && tensorIn(outputs[i].get()).impl() == result.impl()) {
        return outputs[i];
      }
    }
    return {};
  }
};

class OperatorByOperator : public Captured {
 public:
  OperatorByOperator(const Captured& graph, std::unique_ptr<CallPlan> plan)
      : Captured(graph), plan_(std::move(plan)) {}

 protected:
  void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const override {
    std::vector<IValue> slots(plan_->num_slots);
    for (size_t i = 0; i < inputs.size(); ++i) slots[i] = tensorIn(inputs[i].get());
    IValue result;
    {
      const Interruptible interruptible;
      const WithoutGil others;
      result = plan_->run(slots.data());
    }
    append(result, inputs, outputs);
  }

 private:
  std::unique_ptr<CallPlan> plan_;
};

class CalledFunction : public Captured {
 public:
  CalledFunction(const Captured& graph, Object function)
      : Captured(graph), callable_(std::move(function)) {}

 protected:
  // Errors of a backend are shown to those who wrote it.
  bool mayRunPlainly() const override { return false; }
  void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const override {
    std::vector<PyObject*> arguments;
    for (const Object& each : inputs) arguments.push_back(each.get());
    const size_t before = outputs.size();
    const Object result = capture::callPlainly(callable_.get(), arguments, nullptr);
    const Object all = Object::checked(
        PySequence_Fast(result.get(), "a backend's function gives a tuple or list of tensors"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); ++i) {
      outputs.push_back(Object::share(PySequence_Fast_GET_ITEM(all.get(), i)));
      tensorOf(outputs.back().get(), "a result of a backend's function");
    }
    const size_t expected = script_.numOutputs() - script_.num_hidden;
    if (outputs.size() - before != expected) {
      raise(PyExc_ValueError,
            fmt::format("a backend's function gave {} tensors, the graph has {} results",
                        outputs.size() - before, expected));
    }
  }

 private:
  Object callable_;
};

std::shared_ptr<capture::CapturedGraph> Captured::operatorByOperator() const {
  std::unique_ptr<CallPlan> plan =
      planOf(*script_.function->graph(), std::numeric_limits<uint16_t>::max());
  return plan ? std::make_shared<OperatorByOperator>(*this, std::move(plan)) : nullptr;
}

std::shared_ptr<capture::CapturedGraph> Captured::calling(Object function) const {
  return std::make_shared<CalledFunction>(*this, std::move(function));
}

void appendConstants(const Block& block, std::string& text) {
  for (const Node* node : block.nodes()) {
    for (const Block* inner : node->blocks()) appendConstants(*inner, text);
    const auto value = node->kind() == prim::Constant ? constantOf(node->output()) : std::nullopt;
    if (!value || !value->isTensor() || !value->toTensor().defined()) continue;
    const Tensor tensor = value->toTensor();
    text += tensor.describe();
    // Others are the same one where they are the same at all.
    const bool plain = (tensor.device().isCpu() || tensor.device().isCuda()) &&
                       tensor.kind() == TensorKind::Dense && tensor.isContiguous() &&
                       tensor.numel() > 0;
    if (plain) {
      const Tensor elements = moveTo(tensor, Device());
      text.append(static_cast<const char*>(elements.rawData()),
                  static_cast<size_t>(elements.numel()) * elements.itemSize());
    } else {
      text += fmt::format("{}", static_cast<const void*>(tensor.impl()));
    }
  }
}

}  // namespace

std::string contentsOf(const Graph& graph) {
  std::string text = graph.str();
  appendConstants(*graph.block(), text);
  return text;
}

int countOperators(const Block& block) {
  int count = 0;
  for (const Node* node : block.nodes()) {
    if (node->maybeOperator() && node->kind() != prim::Constant) ++count;
    for (const Block* inner : node->blocks()) count += countOperators(*inner);
  }
  return count;
}

namespace {

int64_t sizeAt(const Tensor& tensor, int64_t dim) {
  if (dim == Guesses::kElement) return tensor.item<int64_t>();
  return dim == Guesses::kNumel ? tensor.numel() : tensor.size(dim);
}

// Runs a graph that no other run will need. Optimizes nothing where it holds operators alone.
IValue runOnce(const std::shared_ptr<Graph>& graph, std::vector<IValue> inputs) {
  const auto plan = planOf(*graph, std::numeric_limits<uint16_t>::max());
  if (plan) {
    inputs.resize(plan->num_slots);
    return plan->run(inputs.data());
  }
  CompilationUnit unit;
  return callFunction(*unit.createFunction("__torch__.size", graph), std::move(inputs), {});
}

// Returns some outputs of a graph, without what only the others need.
std::vector<Tensor> outputsAlone(const Graph& graph, const std::vector<size_t>& indices,
                                 std::span<const Tensor> inputs) {
  const std::shared_ptr<Graph> alone = graph.copy();
  const std::vector<Value*> all(alone->outputs()[0]->node()->inputs().begin(),
                                alone->outputs()[0]->node()->inputs().end());
  alone->block()->eraseOutput(0);
  std::vector<Value*> wanted;
  for (const size_t index : indices) wanted.push_back(all[index]);
  alone->registerOutput(alone->insertNode(alone->createTuple(wanted))->output());
  eliminateDeadCode(*alone);
  const GradModeGuard no_gradients(false);
  const IValue result = runOnce(alone, std::vector<IValue>(inputs.begin(), inputs.end()));
  std::vector<Tensor> found;
  for (const IValue& each : result.elements()) found.push_back(each.toTensor());
  return found;
}
// Operators run on as many elements when the next graph is recorded.
void bound(std::vector<int64_t>& sizes) {
  constexpr int64_t kMost = int64_t{1} << 16;
  for (int64_t& each : sizes) each = std::min(each, kMost);
}

Tensor outputAlone(const Graph& graph, size_t index, std::span<const Tensor> inputs) {
  return outputsAlone(graph, {index}, inputs)[0];
}

}  // namespace

void Guesses::check(std::span<const Tensor> inputs, std::span<const IValue> outputs) const {
  std::vector<int64_t> values(static_cast<size_t>(sizes.numSymbols()), -1);
  for (const Place& each : places) {
    const Tensor tensor = each.input ? inputs[each.index] : outputs[each.index].toTensor();
    values[static_cast<size_t>(each.symbol)] = sizeAt(tensor, each.dim);
  }
  const bool all = std::ranges::all_of(truths, [&](const Truth& each) {
    return outputs[each.index].toTensor().item<bool>() == each.expected;
  });
  if (all && sizes.guessesHold(values)) return;
  note(std::move(values));
  throw RuntimeError("elements decide otherwise than the graph supposes");
}

std::vector<int64_t> Guesses::measured(const Graph& graph, std::span<const Tensor> inputs) const {
  std::vector<int64_t> values(static_cast<size_t>(sizes.numSymbols()), -1);
  std::vector<size_t> indices;
  for (const Place& each : places) {
    if (!each.input) indices.push_back(each.index);
  }
  if (indices.empty()) return values;
  const std::vector<Tensor> found = outputsAlone(graph, indices, inputs);
  size_t next = 0;
  for (const Place& each : places) {
    if (!each.input) values[static_cast<size_t>(each.symbol)] = sizeAt(found[next++], each.dim);
  }
  bound(values);
  return values;
}

void Guesses::learn(const Graph& graph, std::span<const Tensor> inputs) const {
  std::vector<int64_t> values(static_cast<size_t>(sizes.numSymbols()), -1);
  // Sizes behind a wrong guess may be impossible to compute.
  try {
    for (const Place& each : places) {
      const Tensor tensor =
          each.input ? inputs[each.index] : outputAlone(graph, each.index, inputs);
      values[static_cast<size_t>(each.symbol)] = sizeAt(tensor, each.dim);
    }
    for (const Truth& each : truths) {
      if (outputAlone(graph, each.index, inputs).item<bool>() == each.expected) continue;
      return note(std::move(values));
    }
  } catch (const RuntimeError&) {
    note(std::move(values));
    return;
  }
  if (!sizes.guessesHold(values)) note(std::move(values));
}

void Guesses::note(std::vector<int64_t> values) const {
  bound(values);
  ++wrong;
  actual = std::move(values);
}

size_t ScriptGraph::numOutputs() const {
  return function->graph()->outputs()[0]->node()->inputs().size();
}

ScriptGraph scriptGraph(std::shared_ptr<Graph> graph, std::vector<std::shared_ptr<void>> owners) {
  ScriptGraph made;
  made.unit = std::make_shared<CompilationUnit>();
  made.num_operators = countOperators(*graph->block());
  made.random =
      anyNode(*graph->block(), [](const Node& node) { return node.isNondeterministic(); });
  made.impure = made.random || anyNode(*graph->block(), [](const Node& node) {
                  const FunctionSchema* const schema = node.maybeSchema();
                  return schema && schema->isMutable();
                });
  made.function = made.unit->createFunction("__torch__.captured", graph);
  made.owners = std::move(owners);
  return made;
}

void throwAsPlainError() {
  try {
    throw;
  } catch (const RuntimeError& error) {
    try {
      throw RuntimeError(error.brief(), error.className());
    } catch (const RuntimeError&) {
      setPythonError();
    }
  } catch (...) {
    setPythonError();
  }
  throw capture::PythonError();
}

std::shared_ptr<capture::CapturedGraph> ownGraph(ScriptGraph script) {
  return std::make_shared<Captured>(std::move(script));
}

}  // namespace wick::python
