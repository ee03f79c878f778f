// Values and modules on other devices.
#pragma once

#include <span>

#include "core/device.h"
#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {

// Moves all strided tensors that the values hold to the device, in lists, dicts, tuples and objects
// too. In place: every holder of such a tensor sees it moved, and tensors that share memory still
// do. Throws RuntimeError when there is no such device or its memory is exhausted.
void moveTensors(std::span<const IValue> values, Device device);

}  // namespace wick

#pragma GCC visibility pop
