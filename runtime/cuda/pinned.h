// Pinned memory of the CPU (core/pinned_memory.h), kept between uses.
//
// Sizes are rounded up to powers of two. A block that is given back while copies from or to it are
// queued is used again when the streams have done them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cuda/driver.h"

namespace wick::cuda {

struct PinnedStatistics {
  size_t allocated = 0;       // bytes of blocks in use, or waited for
  size_t reserved = 0;        // bytes that the driver has given and not got back
  uint64_t driver_calls = 0;  // how often the driver was asked for memory
  uint64_t reused = 0;        // blocks that were given again
};
// Thread-safe.
PinnedStatistics pinnedStatistics();

// Whether it lies in a pinned block that is in use. Thread-safe.
bool isPinnedMemory(const void* memory) noexcept;
// The block must not be used again before what is queued on the stream has ended. Thread-safe.
void notePinnedUse(const void* memory, Stream stream);
// Gives blocks that nobody uses back to the driver. Thread-safe.
void releasePinned() noexcept;

}  // namespace wick::cuda
