// The class of errors about indices, as Python has it.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "core/error_types.h"

namespace wick {

template <class... Args>
[[noreturn]] void throwIndexError(fmt::format_string<Args...> format, Args&&... args) {
  throw RuntimeError(fmt::format(format, std::forward<Args>(args)...), "IndexError");
}

}  // namespace wick
