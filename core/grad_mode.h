// Whether operations on tensors are recorded for differentiation: a setting of each thread, on
// unless switched off.
#pragma once

#include <atomic>

namespace wick {

namespace detail {
inline constinit thread_local bool grad_enabled = true;
// Whether any tensor of the process ever required a gradient.
inline constinit std::atomic<bool> gradients_in_use{false};
}  // namespace detail

inline bool gradEnabled() {
  return detail::grad_enabled;
}
inline void setGradEnabled(bool on) {
  detail::grad_enabled = on;
}

// Whether a call on this thread may have to be recorded: the mode is on, and there are tensors that
// require a gradient. A nanosecond.
inline bool recordsGradients() {
  return detail::grad_enabled && detail::gradients_in_use.load(std::memory_order_relaxed);
}

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
