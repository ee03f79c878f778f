// What grid_sampler and its gradients check on every device.
#pragma once

#include "core/error.h"
#include "core/tensor.h"

namespace wick::ops {

// RuntimeError when input, grid and the numbers of the modes do not fit together.
void checkGrid(const char* op, const Tensor& input, const Tensor& grid, int64_t interpolation,
               int64_t padding, int64_t spatial);
// How many points of a sample the gradient of the result has. RuntimeError when it does not fit.
int64_t pointsOfGrid(const char* op, const Tensor& grad, const Tensor& grid, IntSpan input);
// From how many elements one point is made at most.
int64_t mostSampled(int64_t interpolation);

}  // namespace wick::ops
