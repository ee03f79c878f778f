#include "runtime/executor/graph_executor.h"

#include <algorithm>
#include <unordered_set>

#include "core/slot_access.h"
#include "ir/depth.h"
#include "passes/constant_propagation.h"
#include "passes/guard_nodes.h"
#include "passes/node_traits.h"
#include "passes/peephole.h"
#include "passes/pipeline.h"
#include "passes/propagate_types.h"
#include "passes/training_layout.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/object_order.h"

namespace wick {

namespace {

// Values that are looked at in search of one that requires a gradient.
constexpr size_t kMostSearched = 100'000;

bool requiresGradient(const IValue& value, std::unordered_set<const RefCounted*>& met,
                      size_t& searched) {
  if (value.isTensor()) {
    const auto& tensor = *static_cast<const TensorImpl*>(value.rawObject());
    return tensor.requires_grad || tensor.history;
  }
  if (!value.isCounted() || ++searched > kMostSearched) return searched > kMostSearched;
  const auto any = [&](const auto& values) {
    return std::ranges::any_of(values,
                               [&](const IValue& e) { return requiresGradient(e, met, searched); });
  };
  if (value.isList() || value.isTuple()) {
    const std::vector<IValue>& elements = value.elements();
    // The elements of a list are of one kind.
    if (elements.empty() || (value.isList() && !elements[0].isCounted() && !elements[0].isNone())) {
      return false;
    }
    return met.insert(value.rawObject()).second && any(elements);
  }
  if (value.isDict()) {
    return met.insert(value.rawObject()).second &&
           !value.toDict().all(
               [&](const IValue&, const IValue& v) { return !requiresGradient(v, met, searched); });
  }
  if (!value.isObject()) return false;
  const Object& object = value.toObject();
  if (!met.insert(&object).second) return false;
  for (size_t i = 0; i < object.type()->attributes().size(); ++i) {
    if (requiresGradient(readSlot(object, i), met, searched)) return true;
  }
  return false;
}

// Whether the graph marks tensors as requiring gradients, or asks for gradients.
bool beginsGradients(const Block* block) {
  static const std::unordered_set<Symbol> kKinds = {Symbol::aten("grad"), Symbol::aten("backward"),
                                                    Symbol::aten("retain_grad")};
  for (const Node* node : block->nodes()) {
    if (kKinds.count(node->kind()) != 0 || makesLeaf(node)) return true;
    for (const Block* inner : node->blocks()) {
      if (beginsGradients(inner)) return true;
    }
  }
  return false;
}

}  // namespace

GraphExecutor::GraphExecutor(GraphFunction& function) : function_(function) {}
GraphExecutor::~GraphExecutor() = default;

GraphExecutor& GraphExecutor::of(GraphFunction& function) {
  void* attached = function.attached();
  if (!attached) {
    attached = function.attachment([&] { return std::make_shared<GraphExecutor>(function); });
  }
  return *static_cast<GraphExecutor*>(attached);
}

// The mutex must be held.
const Graph& GraphExecutor::required() {
  if (!required_) {
    function_.ensureDefined();
    std::shared_ptr<Graph> graph = function_.graph()->copy();
    runPhase(*graph, Phase::Required);
    installObjectOrder();
    required_ = std::move(graph);
  }
  return *required_;
}

const Code& GraphExecutor::buildGeneral() {
  std::lock_guard lock(mutex_);
  if (!code_) {
    std::shared_ptr<Graph> graph = required().copy();
    runPhase(*graph, Phase::DerivativePreserving);
    runPhase(*graph, Phase::PostDerivative);
    withStackFor(*graph, [&] { formKernelGroups(*graph); });
    code_ = Code::build(std::move(graph), function_.name());
    general_.store(code_.get(), std::memory_order_release);
  }
  return *code_;
}

bool GraphExecutor::wantsGradients(std::span<const IValue> arguments) {
  int begins = begins_gradients_.load(std::memory_order_relaxed);
  if (begins < 0) {
    std::lock_guard lock(mutex_);
    function_.ensureDefined();
    std::shared_ptr<Graph> graph = function_.graph()->copy();
    runPhase(*graph, Phase::Required);
    begins = beginsGradients(graph->block()) ? 1 : 0;
    begins_gradients_.store(begins, std::memory_order_relaxed);
  }
  if (begins != 0) return true;
  if (!recordsGradients()) return false;
  std::unordered_set<const RefCounted*> met;
  size_t searched = 0;
  return std::ranges::any_of(arguments,
                             [&](const IValue& v) { return requiresGradient(v, met, searched); });
}

const Code& GraphExecutor::recordedCode() {
  if (const Code* code = recorded_.load(std::memory_order_acquire)) return *code;
  std::lock_guard lock(mutex_);
  if (!recorded_code_) {
    function_.ensureDefined();
    std::shared_ptr<Graph> graph = function_.graph()->copy();
    runPhase(*graph, Phase::Required);
    installObjectOrder();
    runPhase(*graph, Phase::DerivativePreserving);
    if (optimizationLevel() != OptimizationLevel::None) layOutForTraining(*graph);
    // Groups for kernels leave calls whose tensors require gradients to their operators; what
    // computes besides, as an optimizer's steps do, is fused as everywhere.
    withStackFor(*graph, [&] {
      formDifferentiableGraphs(*graph);
      formKernelGroups(*graph);
    });
    recorded_code_ = Code::build(std::move(graph), function_.name());
    recorded_.store(recorded_code_.get(), std::memory_order_release);
  }
  return *recorded_code_;
}

// Decides whether there are plans at all; when there are none, makes the only Code.
void GraphExecutor::prepare() {
  {
    std::lock_guard lock(mutex_);
    if (only_.load() || places_.load()) return;
    const Graph& graph = required();
    OptimizationLevel level = optimizationLevel();
    bool may_gain = level == OptimizationLevel::Stress || asksForTypes(graph);
    if (level != OptimizationLevel::None && may_gain && !mayChangeTypes(graph)) {
      owned_places_ = std::make_unique<const ArgumentPlaces>(graph);
      places_.store(owned_places_.get(), std::memory_order_release);
      return;
    }
  }
  const Code& general = code();
  std::lock_guard lock(mutex_);
  required_.reset();
  only_.store(&general, std::memory_order_release);
}

std::shared_ptr<Graph> GraphExecutor::typedGraph(const ArgumentSpec& spec) const {
  std::shared_ptr<Graph> graph = required_->copy();
  withStackFor(*graph, [&] {
    refine(*graph, spec);
    // Branches that the types decide go, for what they would merge is unknown.
    bool changed = simplifyPeepholes(*graph);
    changed |= propagateConstants(*graph);
    if (changed) propagateTypes(*graph);
  });
  return graph;
}

void GraphExecutor::refine(Graph& graph, const ArgumentSpec& spec) const {
  owned_places_->refine(graph, spec.keys());
  propagateTypes(graph);
}

ExecutionPlan* GraphExecutor::findPlan(const ArgumentSpec& spec) const {
  size_t count = num_plans_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (plans_[i]->spec() == spec) return plans_[i].get();
  }
  return nullptr;
}

const Code& GraphExecutor::choose(std::span<const IValue> arguments) {
  const ArgumentPlaces* places = places_.load(std::memory_order_acquire);
  if (!places) {
    prepare();
    if (const Code* only = only_.load(std::memory_order_acquire)) return *only;
    places = places_.load(std::memory_order_acquire);
  }
  ArgumentSpec spec(*places, arguments);
  if (ExecutionPlan* plan = findPlan(spec)) return plan->enter();
  ExecutionPlan* plan = nullptr;
  {
    std::lock_guard lock(plans_mutex_);
    plan = findPlan(spec);
    size_t count = num_plans_.load(std::memory_order_relaxed);
    if (!plan && count < kMaxPlans) {
      plans_[count] = std::make_unique<ExecutionPlan>(*this, std::move(spec));
      plan = plans_[count].get();
      num_plans_.store(count + 1, std::memory_order_release);
    }
  }
  return plan ? plan->enter() : code();
}

GraphExecutor::Statistics GraphExecutor::statistics() const {
  Statistics sum;
  sum.plans = num_plans_.load(std::memory_order_acquire);
  for (size_t i = 0; i < sum.plans; ++i) {
    ExecutionPlan::Counts counts = plans_[i]->counts();
    sum.codes += counts.made;
    sum.hits += counts.hits;
    sum.profiled += counts.profiled;
    sum.bail_outs += counts.bail_outs;
  }
  return sum;
}

}  // namespace wick
