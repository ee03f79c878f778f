// How many processors this process may use.
#pragma once

namespace wick {

// Those that its affinity mask allows, or fewer where a control group (version 1 or 2) grants less
// time than they have, rounded up. At least 1. Found out once. Thread-safe.
int availableProcessors();

}  // namespace wick
