// How long a text may become that a program builds or that shows its values.
#pragma once

#include <cstddef>
#include <string>

namespace wick {

// In bytes. Values that share their parts print to texts of exponential length, and one format says
// "%999999999d": what is longer is refused instead of built.
inline constexpr size_t kMaxTextBytes = size_t{1} << 28;

// RuntimeError when a text of `bytes` is longer than that, or than the allocation limit allows
// (core/memory_limit.h). `op` names what builds it.
void checkTextLength(const char* op, size_t bytes);

namespace detail {
void growText(const char* op, std::string& text, size_t needed);
}  // namespace detail

// Makes room for `more` bytes behind a text that grows again and again. To be called before they are appended: RuntimeError
// when the text becomes too long, also for the memory that is left. `op` names what builds it. Some nanoseconds when there
// is room.
inline void makeTextRoom(const char* op, std::string& text, size_t more) {
  const size_t needed = text.size() + more;
  if (needed > text.capacity()) [[unlikely]]
    detail::growText(op, text, needed);
}

}  // namespace wick
