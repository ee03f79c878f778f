#include "core/budget.h"

#include <time.h>

#include "core/error.h"
#include "core/grad_mode.h"
#include "core/memory_limit.h"
#include "core/tensor.h"

namespace wick {

namespace {

std::atomic<int64_t> noted{0};

}  // namespace

void detail::countMemory() noexcept {
  const int64_t bytes = std::exchange(uncounted_memory, 0);
  memory_grew = memory_grew || bytes > 0;
  noted.fetch_add(bytes, std::memory_order_relaxed);
  if (budget) budget->charge(bytes);
}

void detail::checkLimits() {
  memory_grew = false;
  if (memoryExceeded()) throwMemoryExceeded();
  checkBudget();
}

void detail::noteMemoryFromOutside(int64_t bytes) noexcept {
  noteMemory(bytes);
}

bool detail::gradEnabledFromOutside() {
  return gradEnabled();
}

void detail::setGradEnabledFromOutside(bool on) {
  setGradEnabled(on);
}

int64_t notedMemory() {
  return noted.load(std::memory_order_relaxed);
}

Budget::Budget(Bounds bounds)
    : bounds_(std::move(bounds)),
      interrupt_(bounds_.interrupt.get()),
      deadline_(bounds_.deadline ? std::chrono::duration_cast<std::chrono::nanoseconds>(
                                       bounds_.deadline->time_since_epoch())
                                       .count()
                                 : kNever),
      memory_(bounds_.memory == 0 || bounds_.memory > INT64_MAX
                  ? INT64_MAX
                  : static_cast<int64_t>(bounds_.memory)) {}

// Its steps are those of the system's timer.
int64_t coarseNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void Budget::throwExhausted() const {
  if (interrupt_ && interrupt_->load(std::memory_order_relaxed)) {
    throw RuntimeError("the run was interrupted", "KeyboardInterrupt");
  }
  if (used() > memory_) {
    throw RuntimeError(
        fmt::format("not enough memory: the run exceeded its limit of {} bytes", memory_),
        "MemoryError");
  }
  throw RuntimeError("the run exceeded its time limit", "TimeoutError");
}

BudgetScope::BudgetScope(Budget* budget) : before_(detail::budget) {
  if (budget == before_) return;
  detail::countMemory();
  detail::budget = budget;
}

BudgetScope::~BudgetScope() {
  if (detail::budget == before_) return;
  detail::countMemory();
  detail::budget = before_;
}

}  // namespace wick
