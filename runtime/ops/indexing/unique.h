// What unique checks along a dimension on every device.
#pragma once

#include "core/tensor.h"

namespace wick::ops {

// The dimension, counted from the front; RuntimeError when its slices cannot be compared. Of no slices there are none that
// differ.
int64_t dimensionOfSlices(const Tensor& self, int64_t dim);

}  // namespace wick::ops
