#include "python/constant_results.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/grad_mode.h"
#include "ir/call_layer.h"
#include "ir/graph.h"
#include "lazy/stand_in.h"

namespace wick::python {
namespace {

constexpr int64_t kMostElements = 4096;
constexpr size_t kMostNodes = 200;

// Computes values of a graph, as far as they are constant.
class Constants {
 public:
  explicit Constants(tracing::Tracer& tracer) : tracer_(tracer) {}

  // Returns nothing for a value that is not constant.
  std::optional<IValue> compute(const Value* value) {
    if (const auto known = values_.find(value); known != values_.end()) return known->second;
    if (!asked_.insert(value).second) return std::nullopt;
    const Node* const node = value->node();
    if (++num_nodes_ > kMostNodes || !isSmall(value)) return std::nullopt;
    if (node->kind() == prim::Constant) return keep(value, constantOf(value));
    if (!node->blocks().empty()) return std::nullopt;
    std::vector<IValue> arguments;
    for (const Value* each : node->inputs()) {
      const std::optional<IValue> found = compute(each);
      if (!found) return std::nullopt;
      arguments.push_back(*found);
    }
    if (node->kind() == prim::ListConstruct) {
      const TypePtr& element = value->type()->contained()[0];
      return keep(value, IValue(makeList(element, std::move(arguments))));
    }
    if (node->kind() == prim::ListUnpack) {
      const std::vector<IValue> elements = arguments[0].elements();
      if (elements.size() != node->outputs().size()) return std::nullopt;
      return keepAll(*node, elements, value);
    }
    const Operator* const op = node->maybeOperator();
    if (!op || op->schema().isMutable() || node->isNondeterministic()) return std::nullopt;
    std::vector<IValue> results(node->outputs().size());
    op->callKernel(arguments.data(), arguments.size(), results.data(), results.size());
    return keepAll(*node, results, value);
  }

  // Returns whether an operator of the graph writes to memory of computed tensors.
  bool isWritten() const {
    for (const Node* node : tracer_.graph().nodes()) {
      if (!node->blocks().empty()) return true;
      const FunctionSchema* const schema = node->maybeSchema();
      if (!schema || !schema->isMutable()) continue;
      for (const Value* each : node->inputs()) {
        const auto fake = tracer_.tensorOf(each);
        if (fake && memory_.count(fake->impl()->storage.get()) != 0) return true;
      }
    }
    return false;
  }

 private:
  bool isSmall(const Value* value) {
    if (value->type()->kind() != TypeKind::Tensor) return true;
    const std::optional<Tensor> fake = tracer_.tensorOf(value);
    if (!fake) return value->node()->kind() == prim::Constant;
    memory_.insert(fake->impl()->storage.get());
    return fake->numel() <= kMostElements;
  }
  std::optional<IValue> keep(const Value* value, std::optional<IValue> found) {
    if (found && found->isDevice()) found = IValue(lazy::stoodFor(found->toDevice()));
    if (!found ||
        (found->isTensor() && found->toTensor().defined() && !found->toTensor().device().isCpu())) {
      return std::nullopt;
    }
    return values_[value] = *found;
  }
  std::optional<IValue> keepAll(const Node& node, const std::vector<IValue>& results,
                                const Value* wanted) {
    std::optional<IValue> found;
    for (size_t i = 0; i < results.size(); ++i) {
      const auto kept = keep(node.output(i), results[i]);
      if (node.output(i) == wanted) found = kept;
    }
    return found;
  }

  tracing::Tracer& tracer_;
  std::unordered_map<const Value*, IValue> values_;
  std::unordered_set<const Value*> asked_;  // those that are not in values_ are no constants
  std::unordered_set<const Storage*> memory_;
  size_t num_nodes_ = 0;
};

}  // namespace

std::optional<Tensor> constantResult(tracing::Tracer& tracer, const Tensor& fake) {
  const Value* const value = tracer.find(fake);
  if (!value || fake.numel() > kMostElements) return std::nullopt;
  const CallLayerScope no_trace(CallLayerSlot::Trace, nullptr),
      no_fakes(CallLayerSlot::Lazy, nullptr);
  const GradModeGuard no_gradients(false);
  Constants constants(tracer);
  try {
    const std::optional<IValue> found = constants.compute(value);
    if (!found || !found->isTensor() || constants.isWritten()) return std::nullopt;
    return found->toTensor();
  } catch (const RuntimeError&) {
    // The graph raises it when it runs.
    return std::nullopt;
  }
}

}  // namespace wick::python
