// What calls on a thread depend on besides their arguments: one record, which forks of a run take
// over whole. Only within the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wick {

class CallLayer;

// The layers that a call of an operator goes through, in this order, before gradients are recorded
// and the kernel runs (ir/call_layer.h).
enum class CallLayerSlot : uint8_t { Observe, Trace, Lazy };
inline constexpr size_t kNumCallLayerSlots = 3;

struct ThreadContext {
  bool grad_enabled = true;                             // core/grad_mode.h
  bool below_recorder = false;                          // core/grad_mode.h
  uint8_t active_layers = 0;                            // bit i: layers[i] takes part in calls
  std::array<CallLayer*, kNumCallLayerSlots> layers{};  // not owned
};

namespace detail {
inline constinit thread_local ThreadContext thread_context;
}  // namespace detail

// The calling thread's own.
inline ThreadContext& threadContext() {
  return detail::thread_context;
}

// Replaces the calling thread's context for a scope.
class ThreadContextScope {
 public:
  explicit ThreadContextScope(const ThreadContext& context) : before_(threadContext()) {
    threadContext() = context;
  }
  ~ThreadContextScope() { threadContext() = before_; }
  ThreadContextScope(const ThreadContextScope&) = delete;
  ThreadContextScope& operator=(const ThreadContextScope&) = delete;

 private:
  ThreadContext before_;
};

}  // namespace wick
