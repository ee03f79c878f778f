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
// The sizes of the samples of an input of these sizes.
DimVector sizesOfSamples(IntSpan input, const Tensor& grid);
// From how many elements one point is made at most.
int64_t mostSampled(int64_t interpolation);

// The operators over the function that samples.
using GridSample = Tensor (*)(const char* op, const Tensor& input, const Tensor& grid,
                              int64_t interpolation, int64_t padding, bool align, int64_t spatial);
template <GridSample kSample>
struct GridSamplers {
  static Tensor planes(const Tensor& input, const Tensor& grid, int64_t interpolation,
                       int64_t padding, bool align) {
    return kSample("grid_sampler_2d", input, grid, interpolation, padding, align, 2);
  }
  static Tensor volumes(const Tensor& input, const Tensor& grid, int64_t interpolation,
                        int64_t padding, bool align) {
    return kSample("grid_sampler_3d", input, grid, interpolation, padding, align, 3);
  }
  static Tensor either(const Tensor& input, const Tensor& grid, int64_t interpolation,
                       int64_t padding, bool align) {
    return kSample("grid_sampler", input, grid, interpolation, padding, align,
                   input.dim() == 5 ? 3 : 2);
  }
};

}  // namespace wick::ops
