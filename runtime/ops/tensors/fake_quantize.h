// What fake quantization checks on every device.
#pragma once

#include "core/tensor.h"

namespace wick::ops {

// RuntimeError when `self` cannot be rounded to a grid of integers in [least, most].
void checkFakeQuantized(const char* op, const Tensor& self, int64_t least, int64_t most);
// Of a zero point that must lie on the grid; with the operator's name.
inline constexpr const char* kZeroPointOutside =
    "{}: `zero_point` must be between `quant_min` and `quant_max`.";
void checkZeroPoint(const char* op, int64_t zero_point, int64_t least, int64_t most);
// Grids of the channels along an axis; those that are not learned are of certain types.
void checkChannelGrids(const char* op, const Tensor& self, const Tensor& scale,
                       const Tensor& zero_point, int64_t axis, bool learned);

}  // namespace wick::ops
