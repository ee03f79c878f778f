#include "runtime/fusion/switches.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "core/error_types.h"

namespace wick {

bool isSwitchedOn(const char* variable, bool otherwise) {
  const char* const text = std::getenv(variable);
  if (!text) return otherwise;
  const std::string_view value = text;
  if (value == "on" || value == "off") return value == "on";
  throw UsageError(fmt::format("{}: expected on or off, got '{}'", variable, value));
}

}  // namespace wick
