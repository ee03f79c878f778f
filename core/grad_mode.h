// Whether operations on tensors are recorded for differentiation: a setting of each thread, on
// unless switched off.
#pragma once

#include <atomic>
#include <utility>

#ifdef WICK_INSIDE
#include "core/thread_context.h"
#endif

namespace wick {

namespace detail {
#ifdef WICK_INSIDE
// Whether any tensor of the process ever required a gradient.
inline constinit std::atomic<bool> gradients_in_use{false};
#endif
// For programs that link the engine as a shared library; see core/memory_limit.h.
__attribute__((visibility("default"))) bool gradEnabledFromOutside();
__attribute__((visibility("default"))) void setGradEnabledFromOutside(bool on);
}  // namespace detail

inline bool gradEnabled() {
#ifdef WICK_INSIDE
  return threadContext().grad_enabled;
#else
  return detail::gradEnabledFromOutside();
#endif
}
inline void setGradEnabled(bool on) {
#ifdef WICK_INSIDE
  threadContext().grad_enabled = on;
#else
  detail::setGradEnabledFromOutside(on);
#endif
}

#ifdef WICK_INSIDE

// Whether any tensor of the process ever required a gradient. A nanosecond.
inline bool gradientsInUse() {
  return detail::gradients_in_use.load(std::memory_order_relaxed);
}
// Whether a call on this thread may have to be recorded: the mode is on as well.
inline bool recordsGradients() {
  return threadContext().grad_enabled && gradientsInUse();
}

// Whether a call on this thread that makes a view notes what it is a view of: a write to either may bring the first gradient.
inline bool notesViews() {
  return threadContext().grad_enabled || gradientsInUse();
}

// Switches gradients off for a scope in which an operator that was recorded computes its results.
// Unlike views that a program makes without gradients, those made here may be written to later:
// they are no concern of the program.
class BelowRecorder {
 public:
  BelowRecorder()
      : enabled_before_(std::exchange(threadContext().grad_enabled, false)),
        below_before_(std::exchange(threadContext().below_recorder, true)) {}
  ~BelowRecorder() {
    threadContext().grad_enabled = enabled_before_;
    threadContext().below_recorder = below_before_;
  }
  BelowRecorder(const BelowRecorder&) = delete;
  BelowRecorder& operator=(const BelowRecorder&) = delete;

 private:
  bool enabled_before_;
  bool below_before_;
};

#endif  // WICK_INSIDE

// Sets the mode for a scope of the calling thread.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool on) : before_(gradEnabled()) { setGradEnabled(on); }
  ~GradModeGuard() { setGradEnabled(before_); }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool before_;
};

}  // namespace wick
