// Convolutions of quantized tensors.
#pragma once

#include "runtime/ops/quantized/packed_params.h"

namespace wick::ops::quantized {

// Of a quint8 input, rounded to `grid`. With `line` input and result have one spatial dimension,
// which is the second of the two that the layer has.
Tensor convOnGrid(const char* op, const Tensor& qx, const ConvParams& layer, const Grid& grid,
                  bool relu, bool line);
// Of a float32 input, which is quantized on the way, as is the result, on the same grid.
Tensor convDynamic(const char* op, const Tensor& input, const ConvParams& layer, bool reduce_range,
                   bool line);

}  // namespace wick::ops::quantized
