// Devices of tensors that stand for others: "meta", with an index that says on which device the other one is.
#pragma once

#include "core/device.h"
#include "ir/operator.h"

namespace wick::lazy {

// Returns the device "meta" that stands for the CPU or for a CUDA device, whose index is its own or that of the thread's
// current one. Throws RuntimeError for other devices, and for CUDA devices that are not there.
Device standInFor(Device device);
// Returns the device that such a one stands for; other devices as they are.
Device stoodFor(Device device);
// Returns the device of results of a call on stand-ins that no kernel decides: the one that an argument names, or that of
// the first tensor; the CPU's stand-in where there is none.
Device standInOf(const CallFrame& call);

}  // namespace wick::lazy
