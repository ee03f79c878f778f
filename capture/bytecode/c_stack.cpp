#include "capture/bytecode/c_stack.h"

#include <pthread.h>

#include <algorithm>

namespace wick::capture {
namespace {

// Left to a callback: symbolic evaluation recurses, and runs operators.
constexpr uintptr_t kReserve = 512 << 10;

struct Stack {
  uintptr_t low = 0;
  uintptr_t size = 0;
};

Stack measureStack() {
  Stack result;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return result;
  void* low = nullptr;
  size_t size = 0, guard = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    // The guard's pages are part of the stack that a thread of pthreads says it has.
    if (pthread_attr_getguardsize(&attributes, &guard) != 0 || guard > size) guard = 0;
    result = {reinterpret_cast<uintptr_t>(low) + guard, size - guard};
  }
  pthread_attr_destroy(&attributes);
  return result;
}

}  // namespace

HookedStack measureHookedStack() {
  const Stack stack = measureStack();
  const uintptr_t kept = std::max(stack.size / 2, kReserve);
  if (stack.size <= kept) return {};
  return {stack.low + kept, stack.size - kept};
}

size_t remainingStack() {
  static thread_local const Stack stack = measureStack();
  const uintptr_t offset = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - stack.low;
  return offset < stack.size ? offset : 0;
}

}  // namespace wick::capture
