// How the engine throws its errors (core/error_types.h): with formatted messages, and as checks.
// Apart from them, so that applications need not have the formatting library.
#pragma once

#include <fmt/core.h>

#include <string>

#include "core/error_types.h"

namespace wick {

template <class... Args>
[[noreturn]] void throwRuntimeError(fmt::format_string<Args...> format, Args&&... args) {
  throw RuntimeError(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void throwCompileError(const SourceRange& range, fmt::format_string<Args...> format,
                                    Args&&... args) {
  throw CompileError(range, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
[[noreturn]] void throwLoadError(fmt::format_string<Args...> format, Args&&... args) {
  throw LoadError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace wick

// WICK_CHECK(condition, "op: format", args...) throws a RuntimeError: for what a user can get
// wrong.
#define WICK_CHECK(condition, ...)                            \
  do {                                                        \
    if (!(condition)) ::wick::throwRuntimeError(__VA_ARGS__); \
  } while (false)

// WICK_ASSERT(condition, "format", args...) throws an InternalError: for what only we can get
// wrong.
#define WICK_ASSERT(condition, ...)                                                              \
  do {                                                                                           \
    if (!(condition)) throw ::wick::InternalError(__FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
