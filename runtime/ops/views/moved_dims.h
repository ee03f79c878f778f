// What movedim makes of the order of dimensions.
#pragma once

#include "core/tensor.h"

namespace wick::ops {

// Which of n dimensions stands at each place, for permute. RuntimeError unless as many different
// ones move to as many different places.
DimVector movedDims(int64_t n, const DimVector& source, const DimVector& destination);

}  // namespace wick::ops
