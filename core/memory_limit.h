// Memory that programs may use: what counts, and where it is asked for.
//
// Two limits are looked at: that of the process (setAllocationLimit, core/tensor.h) and that of the
// budget under which a thread works (core/budget.h). Blocks of tensors are counted by the
// allocator; objects, and what containers and strings hold, are counted with noteMemory(). A thread
// counts for itself and adds up from time to time, so that threads do not write to one line of
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wick {

namespace detail {
// What a thread does not add up at once: sums may be off by this much, a thread.
inline constexpr int64_t kUncounted = int64_t{64} << 10;
#ifdef WICK_INSIDE
// What the thread has not added up yet.
inline constinit thread_local int64_t uncounted_memory = 0;
inline constinit thread_local bool memory_grew = false;  // since the thread looked at the limits
void countMemory() noexcept;
void checkLimits();
#endif
// noteMemory() for programs that link the engine as a shared library: its thread-local variables
// are its own, and an inline function would make others of the same names there.
__attribute__((visibility("default"))) void noteMemoryFromOutside(int64_t bytes) noexcept;
}  // namespace detail

// Counts memory that is no tensor's as taken, or as given back when negative. Never throws: what
// grows without bound asks checkAllocation() before, and a run looks at its limits between
// instructions.
inline void noteMemory(int64_t bytes) noexcept {
#ifdef WICK_INSIDE
  const int64_t now = detail::uncounted_memory += bytes;
  if (now > detail::kUncounted || now < -detail::kUncounted) detail::countMemory();
#else
  detail::noteMemoryFromOutside(bytes);
#endif
}

#ifdef WICK_INSIDE

// RuntimeError when `bytes` more would exceed a limit. Whoever makes something large at once (a
// tensor, a long string, a long list) asks here before. `op` names the operator in the message.
// Thread-safe.
void checkAllocation(const char* op, size_t bytes);

// Whether what is counted exceeds the limit of the process. Some nanoseconds. Thread-safe.
bool memoryExceeded();
// RuntimeError that says so.
[[noreturn]] void throwMemoryExceeded();

// RuntimeError when a limit of memory or time is exceeded (core/budget.h). Looks only when the
// thread's memory has grown by kUncounted since the last time, so it costs next to nothing: for
// operators that make many small things, and between instructions.
inline void checkGrowth() {
  if (detail::memory_grew) [[unlikely]]
    detail::checkLimits();
}

// Bytes that noteMemory() has counted in all threads, up to kUncounted a thread. Thread-safe.
int64_t notedMemory();

#endif  // WICK_INSIDE

}  // namespace wick
