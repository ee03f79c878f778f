// The C stack of the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wick::capture {

// The part of a thread's C stack in which Python calls may go through the frame hook, as addresses:
// from `low` to before `low + span`. Below it calls go without the hook, which need no C stack.
// An empty span stands for a stack that cannot be measured.
struct HookedStack {
  uintptr_t low = 0;
  uintptr_t span = 0;
};

// Measures the stack of this thread: the upper half of it, and no more than leaves 512 KiB below.
// The first call on the main thread reads /proc/self/maps; results are not kept here.
HookedStack measureHookedStack();

// Returns how many bytes of the C stack are left to this thread; 0 where it cannot be measured, or
// where the stack pointer is on a stack that is not the thread's own. For recursion in C++.
size_t remainingStack();

}  // namespace wick::capture
