// Operators that have a loop form, on devices for which nobody wrote a kernel: each becomes a group
// of one node.
#pragma once

#include "core/device.h"
#include "ir/operator.h"

namespace wick {

// Computes the call with kernels made from the operator's loop form. False when it has none for such
// arguments: then nothing happened. A GeneralKernel (ir/device_kernels.h).
bool computeAsGroup(CallFrame& frame, Device device);

}  // namespace wick
