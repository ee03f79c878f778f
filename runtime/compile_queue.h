// The thread on which machine code is made while programs run.
#pragma once

#include <functional>

namespace wick {

// Runs `job` on the compile thread, which yields to the threads that run programs; at once when
// jitMode() is Sync. Jobs must not throw. Those that have not begun when the process ends are
// dropped. Thread-safe.
void submitCompile(std::function<void()> job);

// Waits until all jobs are done that were submitted before.
void waitForCompiles();

}  // namespace wick
