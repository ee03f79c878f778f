// Memory of CPU tensors.
//
// Blocks come from memory that the process keeps between calls, so that a program that repeats
// itself asks the system for nothing once every size that it uses has been seen. What is kept is
// bounded: together with what is in use it is at most an eighth more than was ever in use at once,
// or 64 MiB more than is in use now, whichever is more; what exceeds that goes back to the system
// at once, longest unused first. Up to 2 MiB of small blocks a thread count as kept.
//
// All functions are thread-safe. A block may be freed on another thread than the one that asked for
// it. Under AddressSanitizer what is not in use is poisoned.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace wick {

// `bytes` uninitialized bytes, aligned to 64; bytes > 0. Throws RuntimeError when memory or the
// limit of setAllocationLimit (core/tensor.h) is exhausted.
void* allocateBlock(size_t bytes);
// `bytes` as it was asked for. Null is nothing.
void freeBlock(void* block, size_t bytes) noexcept;

struct AllocatorStatistics {
  uint64_t system_allocations = 0;  // how often the system was asked for memory since the start
  size_t system_bytes = 0;          // what the system has given and not got back
  size_t kept_bytes = 0;            // what of it is in no block that is in use
};
AllocatorStatistics allocatorStatistics();

// Gives what is not in use back to the system, except small blocks that other threads keep.
void releaseKeptMemory();

}  // namespace wick

#pragma GCC visibility pop
