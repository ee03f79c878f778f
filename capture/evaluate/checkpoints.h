// Parts of a computation that a backward pass computes again in plain execution.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

// Calls one: the function, whether random numbers are the same ones again, and its arguments. `reentrant`:
// it runs with gradients off first, as PyTorch's CheckpointFunction does.
Variable* callCheckpoint(Capture& capture, const Arguments& given, bool reentrant);

}  // namespace wick::capture
