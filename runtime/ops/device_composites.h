// Operators that the CPU has loops for, made of other operators for devices that have no kernels of their own.
#pragma once

#include "core/device.h"

namespace wick::ops {

// Static objects that add them to the tables of a device (ir/device_kernels.h).
struct RegisterComposites {
  explicit RegisterComposites(DeviceType type);
};

}  // namespace wick::ops
