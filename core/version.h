// The engine's version, by semantic versioning (CHANGELOG.md). While the first number is 0, a
// change of the second may break programs; a change of the third never does.
#pragma once

// The same numbers stand in capi/wick.h.
#define WICK_VERSION_MAJOR 0
#define WICK_VERSION_MINOR 1
#define WICK_VERSION_PATCH 0

#pragma GCC visibility push(default)

namespace wick {

// "0.1.0": of the library that runs, which need not be the one whose headers were compiled.
const char* version();

}  // namespace wick

#pragma GCC visibility pop
