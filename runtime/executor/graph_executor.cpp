#include "runtime/executor/graph_executor.h"

#include "ir/depth.h"
#include "passes/constant_propagation.h"
#include "passes/guard_nodes.h"
#include "passes/peephole.h"
#include "passes/pipeline.h"
#include "passes/propagate_types.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/object_order.h"

namespace wick {

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
