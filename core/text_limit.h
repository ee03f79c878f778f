// How long a text may become that a program builds or that shows its values.
#pragma once

#include <cstddef>

namespace wick {

// In bytes. Values that share their parts print to texts of exponential length, and one format says
// "%999999999d": what is longer is refused instead of built.
inline constexpr size_t kMaxTextBytes = size_t{1} << 28;

// RuntimeError when a text of `bytes` is longer than that, or than the allocation limit allows
// (core/memory_limit.h). `op` names what builds it.
void checkTextLength(const char* op, size_t bytes);

}  // namespace wick
