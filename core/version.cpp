#include "core/version.h"

#include <string_view>

#define WICK_TEXT_OF(number) #number
#define WICK_TEXT(number) WICK_TEXT_OF(number)

namespace wick {
namespace {

constexpr const char* kVersion = WICK_TEXT(WICK_VERSION_MAJOR) "." WICK_TEXT(
    WICK_VERSION_MINOR) "." WICK_TEXT(WICK_VERSION_PATCH);
static_assert(std::string_view(kVersion) == WICK_BUILD_VERSION,
              "core/version.h and version.bzl name different versions");

}  // namespace

const char* version() {
  return kVersion;
}

}  // namespace wick
