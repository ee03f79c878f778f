// The passes that every function goes through before it runs, in their order.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"

namespace wick {

struct PipelinePass {
  const char* name;  // that of its source file, for --stage, WICK_LOG and WICK_OPT_LIMIT
  void (*run)(Graph& graph);
};

// The parts of the pipeline, in their order.
enum class Phase {
  Required,              // makes the graph one piece and finds what is known of its values
  DerivativePreserving,  // replaces computations by others that have a derivative too
  PostDerivative,        // what only holds where nobody asks for a derivative: groups for kernels
};
constexpr Phase kPhases[] = {Phase::Required, Phase::DerivativePreserving, Phase::PostDerivative};
const char* toString(Phase phase);  // "required", "derivative_preserving", "post_derivative"

// What a phase runs, and what all of them run. The lists live as long as the process.
std::span<const PipelinePass> passesOf(Phase phase);
std::span<const PipelinePass> pipelinePasses();

enum class OptimizationLevel {
  None,  // graphs run as the front end made them, but for casts (passes/autocast.h)
  Default,
  Stress,  // passes repeat until nothing changes, ignore what pays, and are verified: for tests
};
// Taken from the environment variable WICK_OPTIMIZE (0, 1 or stress) unless set. Functions that ran
// already keep the code that they have. Thread-safe.
OptimizationLevel optimizationLevel();
void setOptimizationLevel(OptimizationLevel level);

// Optimizes the graph in place without changing any result; does nothing at level None. Ends after
// the pass or the phase named `last` when there is one. Compiles callees that are not compiled yet
// (CompileError). Debug builds, and level Stress, verify the graph after each pass (InternalError).
void runPipeline(Graph& graph, std::string_view last = {});
// One phase of it; those before must have run. Whether it came to `last`.
bool runPhase(Graph& graph, Phase phase, std::string_view last = {});

}  // namespace wick
