#include "passes/pipeline.h"

#include <atomic>
#include <cstdlib>
#include <vector>

#include "core/budget.h"
#include "core/error.h"
#include "core/log.h"
#include "ir/depth.h"
#include "ir/verifier.h"
#include "passes/autocast.h"
#include "passes/common_subexpressions.h"
#include "passes/constant_pooling.h"
#include "passes/constant_propagation.h"
#include "passes/copy_loop_weights.h"
#include "passes/dead_code_elimination.h"
#include "passes/erase_shape_computations.h"
#include "passes/eval_mode.h"
#include "passes/fork_bodies.h"
#include "passes/inline_calls.h"
#include "passes/loop_invariants.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/raised_conditions.h"
#include "passes/remove_mutation.h"
#include "passes/unroll_loops.h"

namespace wick {

namespace {

// Forgets whether a pass changed anything, or how much.
template <auto pass>
void run(Graph& graph) {
  pass(graph);
}

// A fork's body is its own graph and gets the whole pipeline. In forks within forks within forks
// not: their graphs would be taken through it again with each one around them.
void optimizeForks(Graph& graph) {
  constexpr int kMaxNesting = 2;
  static thread_local int nesting = 0;
  if (nesting >= kMaxNesting) return;
  struct Nested {
    Nested() { ++nesting; }
    ~Nested() { --nesting; }
  } nested;
  optimizeForkBodies(graph, [](Graph& body) { runPipeline(body); });
}

// A pass that stands in these lists twice is meant by --stage where it first stands.

// Values become constants and lists literal before the rules of the next phase look at them. Casts
// come before anything is folded.
constexpr PipelinePass kRequired[] = {
    {"inline_calls", inlineCalls},
    {"autocast", run<insertAutocasts>},
    {"lower_tuples", run<lowerTuples>},
    {"remove_mutation", run<removeListMutation>},
    {"constant_propagation", run<propagateConstants>},
    {"fork_bodies", optimizeForks},
};

// Unrolling makes new constants, which are propagated; what is equal is merged last, when most is
// gone.
constexpr PipelinePass kDerivativePreserving[] = {
    {"peephole", run<simplifyPeepholes>},
    {"unroll_loops", run<unrollLoops>},
    {"eval_mode", run<removeDropout>},
    {"erase_shape_computations", run<eraseShapeComputations>},
    {"raised_conditions", run<useRaisedConditions>},
    {"constant_propagation", run<propagateConstants>},
    {"constant_pooling", run<poolConstants>},
    {"loop_invariants", run<hoistLoopInvariants>},
    {"common_subexpressions", run<eliminateCommonSubexpressions>},
    {"dead_code_elimination", eliminateDeadCode},
};

// Groups for kernels take no operators that write.
constexpr PipelinePass kPostDerivative[] = {
    {"remove_tensor_mutation", run<removeTensorMutation>},
    {"copy_loop_weights", run<copyLoopWeights>},
};

// Passes that undo each other would repeat for ever.
constexpr int kStressRounds = 8;

#ifdef NDEBUG
constexpr bool kAlwaysVerify = false;
#else
constexpr bool kAlwaysVerify = true;
#endif

OptimizationLevel levelFromEnvironment() {
  const char* text = std::getenv("WICK_OPTIMIZE");
  std::string_view level = text ? text : "1";
  if (level == "0") return OptimizationLevel::None;
  if (level == "stress") return OptimizationLevel::Stress;
  if (level == "1") return OptimizationLevel::Default;
  throw UsageError(fmt::format("WICK_OPTIMIZE: expected 0, 1 or stress, got '{}'", level));
}

std::atomic<OptimizationLevel>& chosenLevel() {
  static std::atomic<OptimizationLevel> current{levelFromEnvironment()};
  return current;
}

// Casts are part of what a program means, and reach into what it calls.
void castUnoptimized(Graph& graph) {
  withStackFor(graph, [&] {
    inlineCalls(graph);
    insertAutocasts(graph);
  });
}

// Whether `last` was reached.
bool runOnce(Graph& graph, std::span<const PipelinePass> passes, std::string_view last,
             bool verify_each) {
  for (const PipelinePass& pass : passes) {
    checkBudget();
    withStackFor(graph, [&] { pass.run(graph); });
    if (verify_each) verify(graph);
    GRAPH_DUMP(fmt::format("after {}:", pass.name), graph);
    if (pass.name == last) return true;
  }
  return false;
}

}  // namespace

const char* toString(Phase phase) {
  switch (phase) {
    case Phase::Required:
      return "required";
    case Phase::DerivativePreserving:
      return "derivative_preserving";
    case Phase::PostDerivative:
      return "post_derivative";
  }
  return "?";
}

std::span<const PipelinePass> passesOf(Phase phase) {
  switch (phase) {
    case Phase::Required:
      return kRequired;
    case Phase::DerivativePreserving:
      return kDerivativePreserving;
    case Phase::PostDerivative:
      return kPostDerivative;
  }
  return {};
}

std::span<const PipelinePass> pipelinePasses() {
  static const std::vector<PipelinePass> all = [] {
    std::vector<PipelinePass> passes;
    for (Phase phase : kPhases) {
      passes.insert(passes.end(), passesOf(phase).begin(), passesOf(phase).end());
    }
    return passes;
  }();
  return all;
}

OptimizationLevel optimizationLevel() {
  return chosenLevel().load(std::memory_order_relaxed);
}

void setOptimizationLevel(OptimizationLevel level) {
  chosenLevel().store(level, std::memory_order_relaxed);
}

bool runPhase(Graph& graph, Phase phase, std::string_view last) {
  OptimizationLevel chosen = optimizationLevel();
  if (chosen == OptimizationLevel::None) {
    if (phase == Phase::Required && entersAutocast(graph)) castUnoptimized(graph);
    return false;
  }
  std::span<const PipelinePass> passes = passesOf(phase);
  bool reached = false;
  if (chosen == OptimizationLevel::Default) {
    reached = runOnce(graph, passes, last, kAlwaysVerify);
  } else {
    std::string before = graph.str();
    for (int round = 0; round < kStressRounds && !reached; ++round) {
      reached = runOnce(graph, passes, last, /*verify_each=*/true);
      std::string after = graph.str();
      if (after == before) break;
      before = std::move(after);
    }
  }
  return reached || last == toString(phase);
}

void runPipeline(Graph& graph, std::string_view last) {
  for (Phase phase : kPhases) {
    if (runPhase(graph, phase, last)) return;
  }
}

}  // namespace wick
