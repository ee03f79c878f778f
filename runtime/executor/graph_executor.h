// GraphExecutor: what the runtime attaches to a function in order to run it.
#pragma once

#include <array>
#include <mutex>
#include <span>

#include "core/grad_mode.h"
#include "ir/function.h"
#include "runtime/executor/argument_spec.h"
#include "runtime/interpreter/code.h"

namespace wick {

class ExecutionPlan;

// Optimizes copies of the function's graph and lowers them when they are first run: one that serves
// all arguments, and plans for single signatures of arguments (ArgumentSpec) where the graph asks
// its tensors what they are. A change of sizes alone never makes a new plan. There are at most
// kMaxPlans; calls beyond them run the general Code. Thread-safe; all threads share the results,
// which live as long as the function. Finding a plan takes no lock, and no thread waits while
// another compiles a plan.
class GraphExecutor {
 public:
  explicit GraphExecutor(GraphFunction& function);
  ~GraphExecutor();
  // The executor of a function, made when first asked for.
  static GraphExecutor& of(GraphFunction& function);

  // The Code for all arguments. Compiles the function first when that has not happened:
  // CompileError; RuntimeError for a node that cannot run.
  const Code& code() {
    const Code* code = general_.load(std::memory_order_acquire);
    return code ? *code : buildGeneral();
  }
  // The Code for a run with these arguments, which are those of the graph's inputs; the same
  // errors.
  const Code& codeFor(std::span<const IValue> arguments) {
    if (gradEnabled() && wantsGradients(arguments)) [[unlikely]]
      return recordedCode();
    const Code* only = only_.load(std::memory_order_acquire);
    return only ? *only : choose(arguments);
  }
  // What can be done for a first run before its arguments are known; the same errors.
  void prepare();
  // The Code for runs with any arguments when there are no plans; null when there are, and before
  // prepare() or the first run, and while runs may be recorded for gradients.
  const Code* onlyCode() const {
    // Arguments tell whether a run is to be recorded for gradients.
    const bool may_record =
        recordsGradients() || begins_gradients_.load(std::memory_order_relaxed) != 0;
    return gradEnabled() && may_record ? nullptr : only_.load(std::memory_order_acquire);
  }
  GraphFunction& function() const { return function_; }

  struct Statistics {
    size_t plans = 0;       // signatures that have a plan
    uint64_t codes = 0;     // Codes made for them
    uint64_t hits = 0;      // runs that found theirs ready
    uint64_t profiled = 0;  // runs that were profiled
    uint64_t bail_outs = 0;
  };
  Statistics statistics() const;

  static constexpr size_t kMaxPlans = 16;

 private:
  friend class ExecutionPlan;
  const Code& buildGeneral();
  // Whether gradients may flow through the function: an argument requires one, or the function
  // begins with tensors that do.
  bool wantsGradients(std::span<const IValue> arguments);
  // The Code for runs that are recorded for gradients: without what has no derivative.
  const Code& recordedCode();
  const Code& choose(std::span<const IValue> arguments);
  ExecutionPlan* findPlan(const ArgumentSpec& spec) const;
  // A copy of the graph after the required passes, with the types that follow from the signature
  // and without the branches that these rule out.
  std::shared_ptr<Graph> typedGraph(const ArgumentSpec& spec) const;
  // Gives such a graph these types.
  void refine(Graph& graph, const ArgumentSpec& spec) const;
  const Graph& required();

  GraphFunction& function_;
  std::atomic<const Code*> general_{nullptr};
  std::atomic<const Code*> only_{nullptr};  // the general Code, when there are no plans
  std::atomic<const ArgumentPlaces*> places_{nullptr};
  std::atomic<size_t> num_plans_{0};
  std::array<std::unique_ptr<ExecutionPlan>, kMaxPlans> plans_;  // the first ones never change

  std::mutex plans_mutex_;                 // for adding one; held for moments
  std::mutex mutex_;                       // for the general Code
  std::shared_ptr<const Graph> required_;  // the graph after the required passes
  std::unique_ptr<const ArgumentPlaces> owned_places_;
  std::shared_ptr<const Code> code_;
  std::atomic<const Code*> recorded_{nullptr};
  std::shared_ptr<const Code> recorded_code_;
  std::atomic<int> begins_gradients_{-1};  // -1: not known yet
};

}  // namespace wick
