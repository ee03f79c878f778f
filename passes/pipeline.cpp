#include "passes/pipeline.h"

#include <atomic>
#include <cstdlib>

#include "core/error.h"
#include "core/log.h"
#include "ir/depth.h"
#include "ir/verifier.h"
#include "passes/common_subexpressions.h"
#include "passes/constant_pooling.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/inline_calls.h"
#include "passes/loop_invariants.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/remove_mutation.h"
#include "passes/unroll_loops.h"

namespace wick {

namespace {

// Forgets whether a pass changed anything.
template <bool (*pass)(Graph&)>
void run(Graph& graph) {
  pass(graph);
}

// Values become constants and lists literal before the rules look at them; unrolling makes new
// constants, which are propagated; what is equal is merged last, when most is gone. A pass that
// stands here twice is meant by --stage where it first stands.
constexpr Pass kPasses[] = {
    {"inline_calls", inlineCalls},
    {"lower_tuples", run<lowerTuples>},
    {"remove_mutation", run<removeListMutation>},
    {"constant_propagation", run<propagateConstants>},
    {"peephole", run<simplifyPeepholes>},
    {"unroll_loops", run<unrollLoops>},
    {"constant_propagation", run<propagateConstants>},
    {"constant_pooling", run<poolConstants>},
    {"loop_invariants", run<hoistLoopInvariants>},
    {"common_subexpressions", run<eliminateCommonSubexpressions>},
    {"dead_code_elimination", eliminateDeadCode},
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

std::atomic<OptimizationLevel>& level() {
  static std::atomic<OptimizationLevel> current{levelFromEnvironment()};
  return current;
}

// Whether `last` was reached.
bool runOnce(Graph& graph, std::string_view last, bool verify_each) {
  for (const Pass& pass : kPasses) {
    withStackFor(graph, [&] { pass.run(graph); });
    if (verify_each) verify(graph);
    GRAPH_DUMP(fmt::format("after {}:", pass.name), graph);
    if (pass.name == last) return true;
  }
  return false;
}

}  // namespace

std::span<const Pass> pipelinePasses() {
  return kPasses;
}

OptimizationLevel optimizationLevel() {
  return level().load(std::memory_order_relaxed);
}

void setOptimizationLevel(OptimizationLevel chosen) {
  level().store(chosen, std::memory_order_relaxed);
}

void runPipeline(Graph& graph, std::string_view last) {
  OptimizationLevel chosen = optimizationLevel();
  if (chosen == OptimizationLevel::None) return;
  if (chosen == OptimizationLevel::Default) {
    runOnce(graph, last, kAlwaysVerify);
    return;
  }
  std::string before = graph.str();
  for (int round = 0; round < kStressRounds; ++round) {
    if (runOnce(graph, last, /*verify_each=*/true)) return;
    std::string after = graph.str();
    if (after == before) return;
    before = std::move(after);
  }
}

}  // namespace wick
