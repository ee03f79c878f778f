// Grids that cover given values: what observers and dynamic quantization choose.
#pragma once

#include "runtime/ops/quantized/values.h"

namespace wick::ops::quantized {

// The grid of integers [least, most] (of half as many with `reduce_range`) that covers the values
// and zero, which lies on it. With `symmetric` zero is in the middle when there are values on both
// sides of it. RuntimeError for values that are not finite.
Grid chooseGrid(const char* op, float low, float high, int64_t least, int64_t most,
                bool reduce_range, bool symmetric = false);
// The same for the values of a tensor of at least one element.
Grid chooseGrid(const char* op, const Tensor& x, int64_t least, int64_t most, bool reduce_range);

// The range of `n` values whose 2^bits steps lose least, as PyTorch's greedy search finds it.
// First the upper, then the lower end.
std::pair<float, float> searchRange(const float* values, int64_t n, int64_t bins, double ratio,
                                    int64_t bits);

}  // namespace wick::ops::quantized
