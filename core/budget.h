// Budget: the time and memory that a piece of work may use, whatever threads do it. A run, the
// loading of a file and a compilation each work under at most one.
//
// Whoever works for long asks now and then whether it must stop: the interpreter between operators,
// loops over elements between their chunks (core/parallel.h), parsers and passes between the parts
// of a program. Asking costs some nanoseconds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#pragma GCC visibility push(default)

namespace wick {

// Nanoseconds of the monotonic clock (std::chrono::steady_clock), up to ten milliseconds late: some
// nanoseconds, where the exact clock takes twenty-five.
int64_t coarseNow();

class Budget {
 public:
  struct Bounds {
    std::optional<std::chrono::steady_clock::time_point> deadline;
    // Bytes of tensors, containers, strings and objects that may be held at a time beyond what was
    // there before; 0: no limit.
    size_t memory = 0;
    // The work ends soon after this becomes true.
    std::shared_ptr<const std::atomic<bool>> interrupt;
  };
  explicit Budget(Bounds bounds);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Whether there is any bound.
  bool bounded() const { return interrupt_ || deadline_ != kNever || memory_ != INT64_MAX; }
  // Thread-safe, like all that follow. The deadline is noticed up to ten milliseconds late.
  bool exhausted() const {
    return (interrupt_ && interrupt_->load(std::memory_order_relaxed)) ||
           used_.load(std::memory_order_relaxed) > memory_ ||
           (deadline_ != kNever && coarseNow() >= deadline_);
  }
  // RuntimeError of class TimeoutError, MemoryError or KeyboardInterrupt when it is exhausted.
  void check() const {
    if (exhausted()) throwExhausted();
  }
  [[noreturn]] void throwExhausted() const;

  void charge(int64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  // INT64_MAX when there is none.
  int64_t memoryLimit() const { return memory_; }
  // Nanoseconds until the deadline, not above zero when it has passed; INT64_MAX when there is none.
  int64_t timeLeft() const { return deadline_ == kNever ? kNever : deadline_ - coarseNow(); }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  const Bounds bounds_;
  const std::atomic<bool>* interrupt_;
  int64_t deadline_;  // of the monotonic clock, in nanoseconds
  int64_t memory_;
  std::atomic<int64_t> used_{0};
};

// Lets the calling thread work under a budget, which must outlive the scope. Null: under none.
class BudgetScope {
 public:
  explicit BudgetScope(Budget* budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  Budget* before_;
};

#pragma GCC visibility pop

// What follows reads a variable of the thread, which programs that link a shared library cannot.
#ifdef WICK_INSIDE

namespace detail {
inline constinit thread_local Budget* budget = nullptr;
}

// That of the work which the calling thread does; null: no limits.
inline Budget* currentBudget() {
  return detail::budget;
}
inline void checkBudget() {
  if (const Budget* budget = detail::budget) budget->check();
}

// For loops over many elements on one thread: step() looks at the budget once in a while.
// RuntimeError when it is exhausted.
class Pace {
 public:
  // `weight`: how many plain steps the work is worth.
  void step(int64_t weight = 1) {
    if ((left_ -= weight) >= 0) [[likely]]
      return;
    left_ = kSteps;
    checkBudget();
  }

 private:
  static constexpr int64_t kSteps = 1 << 16;
  int64_t left_ = kSteps;
};

#endif  // WICK_INSIDE

}  // namespace wick
