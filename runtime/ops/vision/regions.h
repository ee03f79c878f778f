// Regions of interest [count, 5]: the number of an image, and the corners x1, y1, x2, y2 in units
// that a scale turns into those of a feature map.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/error.h"
#include "core/tensor.h"
#include "runtime/kernels/region_samples.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/rounded.h"

namespace wick::ops::vision {

// Calls f.operator()<T, S>() with the type S of a feature map's elements and the type T that it is
// computed with. float16 is rounded after every operation, as torchvision does; it has no bfloat16.
template <class F>
void dispatchMaps(const char* op, DType dtype, F&& f) {
  if (dtype == DType::Half) return f.template operator()<Rounded<Half>, Half>();
  dispatch<kFloats>(op, dtype, [&]<class T>() { f.template operator()<T, T>(); });
}

// Sizes of a feature map [images, channels, height, width] and of what is pooled of a region.
struct Extents {
  int64_t images, channels, height, width;
  int64_t pooled_height, pooled_width;
  int64_t plane() const { return height * width; }
  int64_t cells() const { return pooled_height * pooled_width; }
};

// Those of an input; RuntimeError when it is no feature map of a floating type, when the regions
// are of another shape or type, or when nothing is pooled.
Extents extentsOfMap(const char* op, const Tensor& input, const Tensor& rois, int64_t pooled_height,
                     int64_t pooled_width);
// Also when a region names no image.
Extents extentsOf(const char* op, const Tensor& input, const Tensor& rois, int64_t pooled_height,
                  int64_t pooled_width);
// The same of a gradient's arguments: `grad` is [regions, grad_channels, pooled…].
Extents extentsOfGradient(const char* op, const Tensor& grad, int64_t grad_channels,
                          const Tensor& rois, int64_t pooled_height, int64_t pooled_width,
                          int64_t images, int64_t channels, int64_t height, int64_t width);

// Of position-sensitive operators, where each cell of an output channel reads a channel of its own: how many there are.
int64_t channelsOfCells(const char* op, const Extents& e);
void checkRatio(const char* op, int64_t sampling_ratio);
// Whether positions in a feature map are numbers of 32 bits.
void checkPlaces(const char* op, const Extents& e);

// RuntimeError when nms cannot sort these boxes [count, 4] by these scores.
void checkBoxes(const Tensor& boxes, const Tensor& scores);

using regions::Sample;

// How many samples a cell takes along one dimension.
template <class T>
int64_t samplesPerCell(const char* op, int64_t sampling_ratio, T extent, int64_t cells) {
  checkRatio(op, sampling_ratio);
  const int64_t count = regions::samplesOfCell(sampling_ratio, extent, cells);
  WICK_CHECK(count >= 0, "{}: a region of extent {} is too large", op, static_cast<double>(extent));
  return count;
}

// The samples along one dimension of all cells of a region that begins at `start`.
template <class T>
CountedVector<Sample<T>> samplesAlong(T start, T cell, int64_t cells, int64_t per_cell,
                                      int64_t size) {
  CountedVector<Sample<T>> samples;
  samples.reserve(static_cast<size_t>(cells * per_cell));
  for (int64_t c = 0; c < cells; ++c) {
    for (int64_t i = 0; i < per_cell; ++i) {
      const T at = start + static_cast<T>(c) * cell +
                   (static_cast<T>(i) + T(.5)) * cell / static_cast<T>(per_cell);
      samples.push_back(regions::sampleAt(at, size));
    }
  }
  return samples;
}

// A region on a grid of samples.
template <class T>
struct Grid {
  int64_t image = 0;
  int64_t rows = 0, columns = 0;  // samples of a cell
  T count = 1;                    // that a cell's sum is divided by
  CountedVector<Sample<T>> y, x;
};

// `least_size`: a region is as large as one element at least.
template <class T, class S>
Grid<T> gridOf(const char* op, const S* roi, const Extents& e, T scale, T offset, bool least_size,
               int64_t sampling_ratio) {
  Grid<T> grid;
  grid.image = static_cast<int64_t>(roi[0]);
  const T x = T(roi[1]) * scale - offset, y = T(roi[2]) * scale - offset;
  T width = T(roi[3]) * scale - offset - x, height = T(roi[4]) * scale - offset - y;
  using std::isfinite;
  WICK_CHECK(isfinite(width) && isfinite(height), "{}: a region is not finite", op);
  if (least_size) {
    width = std::max(width, T(1));
    height = std::max(height, T(1));
  }
  grid.rows = samplesPerCell(op, sampling_ratio, height, e.pooled_height);
  grid.columns = samplesPerCell(op, sampling_ratio, width, e.pooled_width);
  grid.y = samplesAlong(y, height / static_cast<T>(e.pooled_height), e.pooled_height, grid.rows,
                        e.height);
  grid.x = samplesAlong(x, width / static_cast<T>(e.pooled_width), e.pooled_width, grid.columns,
                        e.width);
  grid.count = static_cast<T>(grid.rows * grid.columns);
  return grid;
}

// Of a position-sensitive result [regions, channels, pooled…]: the channel that each cell reads, as
// int32. And such a tensor of a program, row-major; RuntimeError unless it is int32 and of the
// gradient's sizes. What it holds is not checked.
Tensor channelMapping(const Tensor& pooled);
Tensor checkedMapping(const char* op, const Tensor& mapping, const Tensor& grad);

// A coordinate as a whole number that can be added to.
template <class T>
int64_t wholeNumber(T v) {
  constexpr double kLimit = 1 << 30;
  const double d = static_cast<double>(v);
  return std::isnan(d) ? 0 : static_cast<int64_t>(std::clamp(d, -kLimit, kLimit));
}

}  // namespace wick::ops::vision
