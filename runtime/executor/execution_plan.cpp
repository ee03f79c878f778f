#include "runtime/executor/execution_plan.h"

#include "core/log.h"
#include "ir/depth.h"
#include "ir/verifier.h"
#include "passes/bail_outs.h"
#include "passes/eliminate_guards.h"
#include "passes/guard_nodes.h"
#include "passes/insert_guards.h"
#include "passes/insert_profiles.h"
#include "passes/move_guards.h"
#include "passes/pipeline.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/executor/plan_profile.h"
#include "runtime/fusion/form_groups.h"

namespace wick {

namespace {

// Runs that begin with a profile when none of them comes to its end.
constexpr size_t kMaxProfiledStarts = 8;

void optimizeTyped(Graph& graph) {
  runPhase(graph, Phase::DerivativePreserving);
  runPhase(graph, Phase::PostDerivative);
  withStackFor(graph, [&] { formKernelGroups(graph); });
}

bool isStress() {
  return optimizationLevel() == OptimizationLevel::Stress;
}

}  // namespace

ExecutionPlan::ExecutionPlan(GraphExecutor& executor, ArgumentSpec spec)
    : executor_(executor), spec_(std::move(spec)) {}
ExecutionPlan::~ExecutionPlan() = default;

void ExecutionPlan::use(std::shared_ptr<const Code> code, Stage stage) {
  codes_.push_back(std::move(code));
  stage_ = stage;
  needs_work_.store(stage == Stage::Profiling, std::memory_order_relaxed);
  code_.store(codes_.back().get(), std::memory_order_release);
}

const Code& ExecutionPlan::work() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) {
    const Code* code = code_.load(std::memory_order_acquire);
    return code ? *code : executor_.code();
  }
  switch (stage_) {
    case Stage::New:
      begin();
      break;
    case Stage::Profiling:
      if (profile_->finishedRuns() >= kProfiledRuns || ++profiled_starts_ > kMaxProfiledStarts) {
        optimize();
      }
      break;
    case Stage::Guarded:
      // Too many runs left.
      if (++remakes_ <= kMaxRemakes) {
        optimize();
      } else {
        settle(executor_.typedGraph(spec_));
      }
      break;
    case Stage::Settled:
      needs_work_.store(false, std::memory_order_relaxed);
      break;
  }
  return *code_.load(std::memory_order_relaxed);
}

void ExecutionPlan::begin() {
  std::shared_ptr<Graph> graph = executor_.typedGraph(spec_);
  size_t values =
      insertProfiles(*graph, isStress() ? ProfileChoice::Everything : ProfileChoice::Useful);
  profiled_ = std::move(graph);
  if (values == 0) return settle(std::move(profiled_));
  profile_ = std::make_shared<PlanProfile>(values);
  std::shared_ptr<Graph> profiling = profiled_->copy();
  optimizeTyped(*profiling);
  GRAPH_DUMP("profiling:", *profiling);
  use(Code::build(std::move(profiling), executor_.function().name(),
                  std::make_shared<Profiling>(profile_)),
      Stage::Profiling);
}

void ExecutionPlan::optimize() {
  std::shared_ptr<Graph> graph = profiled_->copy();
  std::shared_ptr<const BailOutPoints> points;
  withStackFor(*graph, [&] {
    insertGuards(*graph, [&](size_t value, const TypePtr& declared) {
      return profile_->typeOf(value, declared);
    });
    moveGuards(*graph);
    coalesceGuards(*graph);
    eliminateGuards(*graph);
    GRAPH_DUMP("guarded:", *graph);
    points = insertBailOuts(*graph);
    executor_.refine(*graph, spec_);
    if (isStress()) verify(*graph);
  });
  if (points->points.empty()) return settle(executor_.typedGraph(spec_));
  optimizeTyped(*graph);
  if (!isStress()) {
    std::shared_ptr<Graph> without = executor_.typedGraph(spec_);
    optimizeTyped(*without);
    // Suppositions from which nothing follows are not worth their checks.
    if (sameComputation(*without, *graph)) return settle(std::move(without));
  }
  GRAPH_DUMP("optimized with guards:", *graph);
  use(Code::build(std::move(graph), executor_.function().name(),
                  std::make_shared<BailOuts>(std::move(points), executor_.function().name(),
                                             profile_, needs_work_)),
      Stage::Guarded);
}

// For good, without suppositions.
void ExecutionPlan::settle(std::shared_ptr<Graph> graph) {
  optimizeTyped(*graph);
  GRAPH_DUMP("specialized:", *graph);
  const Code& general = executor_.code();
  if (!isStress() && sameComputation(*general.graph(), *graph)) {
    use(general.shared_from_this(), Stage::Settled);
  } else {
    use(Code::build(std::move(graph), executor_.function().name()), Stage::Settled);
  }
  profiled_.reset();
  // Nothing tells calls apart.
  if (spec_.keys().empty()) executor_.only_.store(codes_.back().get(), std::memory_order_release);
}

ExecutionPlan::Counts ExecutionPlan::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts{hits_.sum(), profile_ ? profile_->finishedRuns() : 0, 0, codes_.size()};
  for (const auto& code : codes_) {
    if (const auto* outs = dynamic_cast<const BailOuts*>(code->speculation())) {
      counts.bail_outs += outs->taken();
    }
  }
  return counts;
}

}  // namespace wick
