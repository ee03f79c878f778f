// Whether operations on tensors are recorded for differentiation: a setting of each thread, on
// unless switched off.
#pragma once

namespace wick {

namespace detail {
inline constinit thread_local bool grad_enabled = true;
}

inline bool gradEnabled() {
  return detail::grad_enabled;
}
inline void setGradEnabled(bool on) {
  detail::grad_enabled = on;
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
