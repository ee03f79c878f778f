// Whether operations on tensors are recorded for differentiation: a setting of each thread, on
// unless switched off.
#pragma once

#include <atomic>

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

// Whether a call on this thread may have to be recorded: the mode is on, and there are tensors that
// require a gradient. A nanosecond.
inline bool recordsGradients() {
  return threadContext().grad_enabled && detail::gradients_in_use.load(std::memory_order_relaxed);
}

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
