// ExecutionPlan: what an executor runs for calls of one signature.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/stripes.h"
#include "runtime/executor/argument_spec.h"
#include "runtime/interpreter/code.h"

namespace wick {

class GraphExecutor;
class PlanProfile;

// First runs a Code that profiles the tensors whose types do not follow from the signature, when
// there are any that matter; then one that is optimized for what was seen and leaves to a
// continuation when it sees something else. When that happens often it is made again with what was
// seen meanwhile, and in the end without suppositions. Thread-safe.
class ExecutionPlan {
 public:
  ExecutionPlan(GraphExecutor& executor, ArgumentSpec spec);
  ~ExecutionPlan();
  const ArgumentSpec& spec() const { return spec_; }

  // What the next run is to run. Compiles when this thread comes first; a thread that finds another
  // one compiling gets what there is already, at least the executor's general Code.
  const Code& enter() {
    const Code* code = code_.load(std::memory_order_acquire);
    if (!code || needs_work_.load(std::memory_order_relaxed)) return work();
    hits_.add();
    return *code;
  }

  struct Counts {
    uint64_t hits;
    uint64_t profiled;   // finished runs with profile
    uint64_t bail_outs;  // runs that left
    uint64_t made;       // Codes that were made for it
  };
  Counts counts() const;

  // Runs that are profiled before the optimized Code is made.
  static constexpr size_t kProfiledRuns = 1;
  // Runs that leave until the Code is made again, and how often that may happen.
  static constexpr size_t kMaxBailOuts = 4;
  static constexpr int kMaxRemakes = 3;

 private:
  enum class Stage { New, Profiling, Guarded, Settled };
  const Code& work();
  void begin();
  void optimize();
  void use(std::shared_ptr<const Code> code, Stage stage);
  void settle(std::shared_ptr<Graph> graph);

  GraphExecutor& executor_;
  const ArgumentSpec spec_;
  std::atomic<const Code*> code_{nullptr};
  std::atomic<bool> needs_work_{true};
  StripedCounter hits_;
  // The rest belongs to whoever holds the mutex.
  mutable std::mutex mutex_;
  Stage stage_ = Stage::New;
  int remakes_ = 0;
  size_t profiled_starts_ = 0;
  std::shared_ptr<Graph> profiled_;  // with its prim::profile nodes, before further optimization
  std::shared_ptr<PlanProfile> profile_;
  std::vector<std::shared_ptr<const Code>> codes_;  // threads may still run older ones
};

}  // namespace wick
