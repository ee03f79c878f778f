// Asks the system for large pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace wick {

constexpr size_t kHugePage = size_t{2} << 20;

// For the whole large pages in this memory. It is a hint: a system that knows none goes without.
inline void adviseLargePages(void* memory, size_t bytes) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
  const uintptr_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t last = (begin + bytes) / kHugePage * kHugePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace wick
