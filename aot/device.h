// The device of tensors whose elements exist when a compiled model runs, and not before.
#pragma once

#include "core/device.h"

namespace wick::aot {

// PyTorch's number for devices of private use.
inline constexpr DeviceType kAhead{20};

}  // namespace wick::aot
