// CountedVector: a std::vector whose memory counts against the limits of process and run
// (core/memory_limit.h). For whatever a kernel makes beside its tensors and a program decides how
// large: an entry for each row, index or element. A stride of 0 gives a program sizes that are much
// larger than its memory.
#pragma once

#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/memory_limit.h"

namespace wick {

// RuntimeError, before memory is asked for, when a limit would be exceeded.
template <class T>
struct CountedAllocator {
  // std::vector packs several of them into a word: threads that write neighbours would lose some.
  static_assert(!std::is_same_v<T, bool>,
                "a CountedVector of bool is no array: take uint8_t or a struct");
  using value_type = T;

  CountedAllocator() = default;
  template <class U>
  CountedAllocator(const CountedAllocator<U>&) {}

  T* allocate(size_t n) {
    constexpr size_t kMost = std::numeric_limits<ptrdiff_t>::max() / sizeof(T);
    const size_t bytes = n > kMost ? std::numeric_limits<ptrdiff_t>::max() : n * sizeof(T);
    // What is smaller is noticed when some of it has come together.
    if (bytes >= size_t{detail::kUncounted}) checkAllocation("working memory", bytes);
    T* const memory = std::allocator<T>().allocate(n);
    noteMemory(static_cast<int64_t>(bytes));
    return memory;
  }
  void deallocate(T* memory, size_t n) {
    // Before, for `n` is a difference of addresses that the compiler believes are dead behind it.
    noteMemory(-static_cast<int64_t>(n * sizeof(T)));
    std::allocator<T>().deallocate(memory, n);
  }
  template <class U>
  bool operator==(const CountedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

}  // namespace wick
