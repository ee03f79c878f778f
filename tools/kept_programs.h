// Programs that stay loaded from one command to the next.
#pragma once

#include "tools/loaded_file.h"

namespace wick::cli {

// From now on loadKept() remembers what it loads. Not thread-safe.
void keepPrograms();

// The options' file for their --device, or a copy of what was loaded from it before if the file is still the
// same (by device, number, size, and times of change), --device and the level of optimization too. Modules are
// copied, so that nobody sees what another command changed; code is shared until a command writes to a
// constant of it or moves it to a device. Keeps the
// `kMostKept` programs that were asked for last. "-" is always read. Not thread-safe.
LoadedFile loadKept(const Options& options);
inline constexpr size_t kMostKept = 8;

}  // namespace wick::cli
