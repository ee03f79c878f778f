// How much a call computes and moves, and how much its device can, for `bench`.
#pragma once

#include <functional>
#include <span>

#include "core/device.h"
#include "core/ivalue.h"

namespace wick::cli {

// Of one call of a program.
struct DeviceWork {
  // Operations of products, convolutions and attention, a sum and a product each; what else is
  // computed is not counted.
  double operations = 0;
  double bytes = 0;  // of arguments, parameters and results, each counted once
};
// `call` is the call; `given` are its arguments, and the tensors of a module that it reads.
DeviceWork workOf(std::span<const IValue> given, const std::function<IValue()>& call);

// What the device does when it does nothing else, measured in some milliseconds. Zero where there is
// no memory for the attempt, or no library for products.
struct DeviceLimits {
  double bytes_per_s = 0;       // read and written by a copy of 256 MiB
  double operations_per_s = 0;  // of a product of square matrices of 4096
};
DeviceLimits limitsOf(Device device, DType dtype);

}  // namespace wick::cli
