// Operators that the CPU has loops for, made of other operators for devices that have no kernels of their own.
#pragma once

#include "core/device.h"
#include "core/tensor.h"

namespace wick::ops {

// Static objects that add them to the tables of a device (ir/device_kernels.h).
struct RegisterComposites {
  explicit RegisterComposites(DeviceType type);
};

// What embedding_renorm_ checks on devices.
void checkRenorm(const Tensor& self, const Tensor& indices);
// Rows of an embedding; those that are longer than max_norm become that long.
Tensor limitedRows(const Tensor& rows, double max_norm, double norm_type);

}  // namespace wick::ops
