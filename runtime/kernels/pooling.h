// Pooling over windows in one to three spatial dimensions: ordinary, adaptive and fractional
// windows are all lists of ranges along each dimension.
#pragma once

#include <array>
#include <optional>

#include "core/counted_vector.h"
#include "core/tensor.h"

namespace wick::pooling {

// The windows along one dimension: output i reads begin[i], begin[i] + step, … below end[i].
struct Axis {
  int64_t input = 1;
  int64_t step = 1;
  CountedVector<int64_t> begin, end;
  CountedVector<int64_t> span;  // how many elements the window covers, padding included
  int64_t size() const { return static_cast<int64_t>(begin.size()); }
};
using Axes = std::array<Axis, 3>;  // depth, height, width; absent ones hold one element

// The windows of a kernel that slides over `input` elements. RuntimeError for impossible sizes and
// for less than `least` windows.
Axis slidingAxis(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                 int64_t dilation, bool ceil_mode, int64_t least = 1);
// Windows that divide `input` elements into `output` nearly equal parts, overlapping as PyTorch's.
Axis adaptiveAxis(int64_t input, int64_t output);
// One window of one element: the place of a missing dimension.
Axis unitAxis();

// Largest elements of the windows of x [N, C, spatial…] (float32, float64 or integers), NaN first,
// and where they are as an index into the plane. `indices` is left undefined unless wanted.
// Channels-last input gives channels-last output.
struct MaxResult {
  Tensor values;
  Tensor indices;
};
MaxResult maxPool(const char* op, const Tensor& x, const Axes& axes, bool want_indices);

// Averages of the windows. The divisor is `divisor`, or the span, or the number of elements read.
Tensor averagePool(const char* op, const Tensor& x, const Axes& axes, bool count_padding,
                   std::optional<int64_t> divisor);

}  // namespace wick::pooling
