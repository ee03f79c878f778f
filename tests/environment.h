// Numbers that a test's caller gives by environment variables (docs/environment.md).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace wick {

// Returns the number that a variable holds, `otherwise` when it is not set.
inline uint64_t numberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

}  // namespace wick
