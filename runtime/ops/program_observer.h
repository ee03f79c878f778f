// What programs report about themselves: the ranges that they mark with
// torch.autograd.profiler.record_function, and the statistics that they count.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace wick {

// Called on the threads that run the program, by several at a time; must not throw.
class ProgramObserver {
 public:
  virtual ~ProgramObserver() = default;
  // `id` is positive and belongs to this range alone; `arguments` may be null. Ranges of a thread
  // nest, but a range that covers asynchronous work ends on another thread.
  virtual void beginRange(int64_t id, const std::string& name, const std::string* arguments) = 0;
  virtual void endRange(int64_t id) = 0;
  // prim::AddStatValue, torch.jit._logging.add_stat_value.
  virtual void addToStatistic(const std::string& key, int64_t value) = 0;
};

// Replaces the process's observer and returns the one before; without one (null, as at the start)
// reports cost nothing. Thread-safe: an observer lives until its last call returns.
std::shared_ptr<ProgramObserver> setProgramObserver(std::shared_ptr<ProgramObserver> next);

}  // namespace wick
