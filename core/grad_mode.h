// Whether operations on tensors are recorded for differentiation: a setting of each thread, on
// unless switched off.
#pragma once

namespace wick {

namespace detail {
#ifdef WICK_INSIDE
inline constinit thread_local bool grad_enabled = true;
#endif
// For programs that link the engine as a shared library; see core/memory_limit.h.
__attribute__((visibility("default"))) bool gradEnabledFromOutside();
__attribute__((visibility("default"))) void setGradEnabledFromOutside(bool on);
}  // namespace detail

inline bool gradEnabled() {
#ifdef WICK_INSIDE
  return detail::grad_enabled;
#else
  return detail::gradEnabledFromOutside();
#endif
}
inline void setGradEnabled(bool on) {
#ifdef WICK_INSIDE
  detail::grad_enabled = on;
#else
  detail::setGradEnabledFromOutside(on);
#endif
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
