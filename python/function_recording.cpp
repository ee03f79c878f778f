#include "python/function_recording.h"

#include <algorithm>

#include "autograd/tape.h"
#include "capture/world.h"
#include "core/grad_mode.h"
#include "ir/function_capsule.h"
#include "python/fake_devices.h"
#include "runtime/ops/call.h"

namespace wick::python {
namespace {

using capture::breakGraph;

bool isDefinedIn(const Value* value, const Block& block) {
  if (value->node() == block.paramNode()) return true;
  for (const Block* at = value->node()->block(); at; at = at->owningBlock()) {
    if (at == &block) return true;
  }
  return false;
}

// Appends the values that the block uses and does not define, in order of first use.
void addOuter(const Block& block, const Block& within, std::vector<Value*>& outer) {
  const auto add = [&](Value* value) {
    if (isDefinedIn(value, within) || std::ranges::find(outer, value) != outer.end()) return;
    outer.push_back(value);
  };
  for (const Node* node : block.nodes()) {
    for (Value* each : node->inputs()) add(each);
    for (const Block* inner : node->blocks()) addOuter(*inner, within, outer);
  }
  for (Value* each : block.outputs()) add(each);
}

bool drawsNumbers(const Block& block) {
  return std::ranges::any_of(block.nodes(), [](const Node* node) {
    return node->isNondeterministic() || std::ranges::any_of(node->blocks(), [](const Block* each) {
             return drawsNumbers(*each);
           });
  });
}

// Puts a copy of a constant into the graph; null for other values.
Value* copyOfConstant(Graph& graph, Value* value) {
  if (value->node()->kind() != prim::Constant) return nullptr;
  const auto constant = constantOf(value);
  if (!constant) return nullptr;
  Node* const made = value->type()->kind() == TypeKind::None
                         ? graph.createNone()
                         : graph.createConstant(*constant, value->type());
  return graph.insertNode(made)->output();
}

Value* tupleOf(Graph& graph, const std::vector<Value*>& elements) {
  return graph.insertNode(graph.createTuple(elements))->output();
}

void setResult(Graph& graph, Value* result) {
  while (!graph.outputs().empty()) graph.block()->eraseOutput(graph.outputs().size() - 1);
  graph.registerOutput(result);
  nameDevices(graph, *graph.block());
  if (hasFakeConstants(*graph.block())) {
    breakGraph("a function with a derivative of its own uses a tensor that was made out of sight");
  }
}

}  // namespace

void FunctionRecording::begin() {
  if (holder_) breakGraph("a derivative that calls a function with a derivative of its own");
  Graph& graph = tracer_.graph();
  // It is no part of the graph, but its values must not be freed while the tracer knows them.
  holder_ = graph.create(prim::If, std::span<Value* const>(), 0);
  holders_.push_back(holder_);
  holder_->addBlock();
  holder_->addBlock();
  watchKnown();
  outer_ = tracer_.enter(holder_->blocks()[0]);
}

std::vector<Tensor> FunctionRecording::beginDerivative(const std::vector<Tensor>& saved,
                                                       const std::vector<Tensor>& results) {
  checkWrites();
  forward_ = tracer_.leave(outer_);
  Block* const derivative = holder_->blocks()[1];
  outer_ = tracer_.enter(derivative);
  watched_.emplace_back();
  for (const Tensor& each : saved) {
    watch(each);
    tracer_.bindResult(derivative->addInput(types::Tensor()), each);
  }
  std::vector<Tensor> gradients;
  for (const Tensor& each : results) {
    gradients.push_back(
        Tensor::emptyStrided(each.sizes(), each.strides(), each.dtype(), each.device()));
    watch(gradients.back());
    tracer_.bindResult(derivative->addInput(types::Tensor()), gradients.back());
  }
  return gradients;
}

void FunctionRecording::watch(const Tensor& tensor) {
  const Ref<Storage>& memory = tensor.impl()->storage;
  watched_.back().emplace_back(memory, memory->version());
}

void FunctionRecording::watchKnown() {
  watched_.emplace_back();
  for (const auto& [memory, version] : inputs_) {
    watched_.back().emplace_back(memory, memory->version());
  }
  for (const Node* node : tracer_.graph().nodes()) {
    for (const Value* each : node->outputs()) {
      if (const auto tensor = tracer_.tensorOf(each)) watch(*tensor);
    }
  }
}

void FunctionRecording::checkWrites() {
  Writes watched = std::move(watched_.back());
  watched_.pop_back();
  // Inputs may have come since.
  for (const auto& each : inputs_) {
    const auto isIt = [&](const auto& known) { return known.first.get() == each.first.get(); };
    if (std::ranges::none_of(watched, isIt)) watched.push_back(each);
  }
  if (std::ranges::any_of(watched,
                          [](const auto& each) { return each.first->version() != each.second; })) {
    breakGraph(holder_ ? "a function with a derivative of its own writes to a tensor from outside"
                       : "a checkpoint writes to a tensor from outside");
  }
}

std::shared_ptr<Graph> FunctionRecording::forwardGraph(const FunctionParts& parts,
                                                       std::vector<Value*>& arguments) {
  Block* const block = holder_->blocks()[0];
  for (const auto* all : {&parts.results, &parts.saved}) {
    for (const Tensor& each : *all) {
      Value* const value = forward_.find(each);
      if (!value) breakGraph("a function gives or saves a tensor that was made out of sight");
      block->registerOutput(value);
    }
  }
  auto graph = std::make_shared<Graph>();
  Values known;
  for (const Tensor& each : parts.arguments) {
    Value* const value = tracer_.find(each);
    if (!value) breakGraph("an argument of a function that was made out of sight");
    arguments.push_back(value);
    known.try_emplace(value, graph->addInput("", value->type()));
  }
  std::vector<Value*> outer;
  addOuter(*block, *block, outer);
  for (Value* each : outer) {
    if (known.count(each) != 0) continue;
    Value* inside = copyOfConstant(*graph, each);
    if (!inside) {
      inside = graph->addInput("", each->type());
      arguments.push_back(each);
    }
    known[each] = inside;
  }
  graph->block()->cloneFrom(block, known);
  const std::vector<Value*> all = graph->outputs();
  const auto split = all.begin() + static_cast<std::ptrdiff_t>(parts.results.size());
  Value* const results = tupleOf(*graph, {all.begin(), split});
  Value* const saved = tupleOf(*graph, {split, all.end()});
  setResult(*graph, tupleOf(*graph, {results, saved}));
  return graph;
}

void FunctionRecording::endDerivative(const FunctionParts& parts) {
  Block* const block = holder_->blocks()[1];
  checkWrites();
  for (const Tensor& each : parts.gradients) {
    if (!each.defined()) continue;
    Value* const value = tracer_.find(each);
    if (!value) breakGraph("a derivative gives a tensor that was made out of sight");
    block->registerOutput(value);
  }
  if (drawsNumbers(*block)) breakGraph("a derivative draws random numbers");
  tracer_.leave(outer_);
}

std::shared_ptr<Graph> FunctionRecording::backwardGraph(const FunctionParts& parts,
                                                        const TypePtr& saved, size_t num_others) {
  Block* const block = holder_->blocks()[1];
  auto graph = std::make_shared<Graph>();
  Values known;
  std::vector<Value*> outer;
  addOuter(*block, *block, outer);
  for (Value* each : outer) {
    known[each] = copyOfConstant(*graph, each);
    if (!known[each]) breakGraph("a derivative uses a tensor that was not saved for it");
  }
  graph->block()->cloneFrom(block, known);
  // One tuple instead of all that was saved.
  Value* const tuple = graph->block()->insertInput(0, saved);
  if (!parts.saved.empty()) {
    Node* const unpack = graph->block()->prependNode(graph->createTupleUnpack(tuple));
    for (size_t i = 0; i < parts.saved.size(); ++i) {
      graph->inputs()[1]->replaceAllUsesWith(unpack->output(i));
      graph->block()->eraseInput(1);
    }
  }
  std::vector<Value*> all;
  size_t next = 0;
  for (const Tensor& each : parts.gradients) {
    all.push_back(each.defined() ? graph->outputs()[next++]
                                 : graph->insertNode(graph->createNone())->output());
  }
  for (size_t i = 0; i < num_others; ++i) {
    all.push_back(graph->insertNode(graph->createNone())->output());
  }
  setResult(*graph, tupleOf(*graph, all));
  return graph;
}

// Fakes like the results, which depend on all arguments with gradients by one node.
std::vector<Tensor> FunctionRecording::resultsOf(const FunctionParts& parts) const {
  static const OperatorHandle kAbs("aten::abs", ""), kSum("aten::sum", ""),
      kAdd("aten::add", "Tensor");
  const GradModeGuard on(true);
  Tensor source;
  for (const Tensor& each : parts.arguments) {
    if (!autograd::requiresGradient(each)) continue;
    const Tensor part = kSum(kAbs(each), IValue());
    source = source.defined() ? Tensor(kAdd(source, part)) : part;
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < parts.results.size(); ++i) {
    const Tensor& as = parts.results[i];
    if (isComplex(as.dtype())) breakGraph("a function with a derivative gives complex numbers");
    Tensor made = Tensor::emptyStrided(as.sizes(), as.strides(), as.dtype(), as.device());
    if (parts.differentiable[i] && isFloating(as.dtype())) {
      made = kAdd(made, source);
      if (made.dtype() != as.dtype() || !std::ranges::equal(made.strides(), as.strides())) {
        breakGraph("a function with a derivative gives a tensor whose elements overlap");
      }
    }
    results.push_back(std::move(made));
  }
  return results;
}

void FunctionRecording::noteAliases(const FunctionParts& parts, const std::vector<Tensor>& results,
                                    int64_t step) {
  for (size_t i = 0; i < results.size(); ++i) {
    const Ref<Storage>& memory = parts.results[i].impl()->storage;
    for (size_t j = 0; j < i; ++j) {
      if (parts.results[j].impl()->storage.get() == memory.get()) {
        breakGraph("a function with a derivative gives several tensors on the same memory");
      }
    }
    const auto first = tracer_.firstOn(memory.get());
    if (!first || !tracer_.find(*first)) continue;  // made within the function
    aliases_.push_back({results[i], memory, memory->version(), step});
  }
}

void FunctionRecording::check(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                              bool views) const {
  const auto isAmong = [](const Storage* memory, const std::vector<Tensor>& tensors) {
    return std::ranges::any_of(
        tensors, [&](const Tensor& each) { return each.impl()->storage.get() == memory; });
  };
  for (size_t i = 0; i < aliases_.size(); ++i) {
    const Alias& alias = aliases_[i];
    bool written = alias.fake.impl()->storage->version() != 0;
    bool outside = false;
    // The memory may be that of the result of an earlier call.
    const Storage* memory = alias.memory.get();
    for (size_t j = i + 1; j-- > 0;) {
      if (j < i && aliases_[j].fake.impl()->storage.get() != memory) continue;
      memory = aliases_[j].memory.get();
      written |= memory->version() != aliases_[j].version;
      outside |= isAmong(memory, inputs) || isAmong(memory, outputs);
    }
    const bool shown = views && outside && isAmong(alias.fake.impl()->storage.get(), outputs);
    if (!written && !shown) continue;
    throw capture::GraphBreak{
        "a function with a derivative of its own gives a view of a tensor from outside",
        {},
        alias.step};
  }
}

std::vector<Tensor> FunctionRecording::end(const FunctionParts& parts, int64_t step) {
  std::vector<Tensor> results = resultsOf(parts);
  Graph& graph = tracer_.graph();
  endDerivative(parts);
  std::vector<Value*> arguments;
  const std::shared_ptr<Graph> forward = forwardGraph(parts, arguments);
  const auto type = std::dynamic_pointer_cast<const TupleType>(forward->outputs()[0]->type());
  const std::shared_ptr<Graph> backward =
      backwardGraph(parts, type->contained()[1], arguments.size() - parts.arguments.size());
  std::vector<int64_t> without;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!parts.differentiable[i]) without.push_back(static_cast<int64_t>(i));
  }
  const auto capsule = [&](const char* name, const std::shared_ptr<Graph>& of) {
    return graph.insertConstant(IValue::capsule(makeRef<FunctionCapsule>(name, of)),
                                types::Capsule());
  };
  std::vector<Value*> inputs{capsule("forward", forward), capsule("backward", backward),
                             graph.insertConstant(IValue(makeIntList(without)))};
  inputs.insert(inputs.end(), arguments.begin(), arguments.end());
  Node* const node = graph.create(Symbol::fromQualString("wick::custom_function"), inputs);
  node->setOperator(OperatorRegistry::instance().find(node->kind(), ""));
  node->setAttribute(attr::Subgraph, forward);
  node->output()->setType(types::Any());
  graph.insertNode(node);
  Node* const cast = graph.insertNode(graph.create(prim::unchecked_cast, {node->output()}));
  cast->output()->setType(type->contained()[0]);
  Node* const unpack = graph.insertNode(graph.createTupleUnpack(cast->output()));
  holder_ = nullptr;
  noteAliases(parts, results, step);
  for (size_t i = 0; i < results.size(); ++i) tracer_.bindResult(unpack->output(i), results[i]);
  return results;
}

void FunctionRecording::finish() {
  for (Node* each : holders_) each->destroy();
  holders_.clear();
}

}  // namespace wick::python
