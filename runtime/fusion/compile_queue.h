// The thread on which kernels are compiled while programs run.
#pragma once

#include <functional>

namespace wick {

// Runs `job` on the compile thread, or at once when jitMode() is Sync. Jobs must not throw; those
// that have not begun when the process ends are dropped.
void submitCompile(std::function<void()> job);

// Waits until all jobs are done that were submitted before.
void waitForCompiles();

}  // namespace wick
