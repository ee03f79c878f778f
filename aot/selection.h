// Positions that elements of tensors decide.
#pragma once

#include "core/tensor.h"

namespace wick::aot {

// The coordinates of elements that are not zero, [count, dimensions]: the count is a size that elements decide.
Tensor positionsOfTrue(const char* op, const Tensor& self);

}  // namespace wick::aot
