// Operators that have a loop form, on devices for which nobody wrote a kernel: each becomes a group
// of one node.
#pragma once

#include <string>

#include "core/device.h"
#include "ir/operator.h"

namespace wick {

// Computes the call with kernels made from the operator's loop form. False when it has none for such
// arguments: then nothing happened. A GeneralKernel (ir/device_kernels.h).
bool computeAsGroup(CallFrame& frame, Device device);

// Adds a value that is no tensor to what tells calls apart. False for values that no graph can hold.
bool appendConstant(std::string& key, const IValue& v);

}  // namespace wick
