// Who keeps the code of a run alive.
#pragma once

#include <memory>

namespace wick {

// The owner of the code that this thread runs (the compilation unit), for an operator that runs a
// part of the program after the run has ended. Null outside of a run, and where the caller named
// none.
std::shared_ptr<void> ownerOfRun();

}  // namespace wick
