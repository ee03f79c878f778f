#include "runtime/ops/vision/regions.h"

#include <limits>

#include "core/device_backend.h"

namespace wick::ops::vision {

namespace {

void checkRegions(const char* op, const Tensor& rois, DType dtype, const Extents& e) {
  WICK_CHECK(rois.dim() == 2 && rois.size(1) == 5,
             "{}: rois must have shape as Tensor[K, 5], got {}", op, formatInts(rois.sizes()));
  WICK_CHECK(rois.dtype() == dtype, "{}: expected rois of type {}, got {}", op, toString(dtype),
             toString(rois.dtype()));
  WICK_CHECK(e.pooled_height > 0 && e.pooled_width > 0,
             "{}: the pooled sizes must be positive, got {} and {}", op, e.pooled_height,
             e.pooled_width);
  checkedNumel(DimVector{e.pooled_height, e.pooled_width});
  WICK_CHECK(rois.size(0) == 0 || e.plane() > 0, "{}: the feature map has no elements", op);
}

void checkImages(const char* op, const Tensor& rois, DType dtype, const Extents& e) {
  const Tensor rows = moveTo(rois, Device()).contiguous();
  dispatchMaps(op, dtype, [&]<class T, class S>() {
    for (int64_t n = 0; n < rows.size(0); ++n) {
      const auto image = static_cast<double>(rows.data<S>()[5 * n]);
      WICK_CHECK(image > -1 && image < static_cast<double>(e.images),
                 "{}: a region lies on image {}, but there are {}", op, image, e.images);
    }
  });
}

}  // namespace

Extents extentsOfMap(const char* op, const Tensor& input, const Tensor& rois, int64_t pooled_height,
                     int64_t pooled_width) {
  WICK_CHECK(input.dim() == 4, "{}: expected an input of four dimensions, got {}", op, input.dim());
  const Extents e{input.size(0), input.size(1), input.size(2),
                  input.size(3), pooled_height, pooled_width};
  checkRegions(op, rois, input.dtype(), e);
  return e;
}
Extents extentsOf(const char* op, const Tensor& input, const Tensor& rois, int64_t pooled_height,
                  int64_t pooled_width) {
  const Extents e = extentsOfMap(op, input, rois, pooled_height, pooled_width);
  checkImages(op, rois, input.dtype(), e);
  return e;
}

Extents extentsOfGradient(const char* op, const Tensor& grad, int64_t grad_channels,
                          const Tensor& rois, int64_t pooled_height, int64_t pooled_width,
                          int64_t images, int64_t channels, int64_t height, int64_t width) {
  const Extents e{images, channels, height, width, pooled_height, pooled_width};
  checkedNumel(DimVector{images, channels, height, width});
  checkRegions(op, rois, grad.dtype(), e);
  checkImages(op, rois, grad.dtype(), e);
  const DimVector expected{rois.size(0), grad_channels, pooled_height, pooled_width};
  WICK_CHECK(std::ranges::equal(grad.sizes(), expected),
             "{}: expected a gradient of sizes {}, got {}", op, formatInts(expected),
             formatInts(grad.sizes()));
  return e;
}

int64_t channelsOfCells(const char* op, const Extents& e) {
  WICK_CHECK(e.channels % e.cells() == 0,
             "{}: input channels must be a multiple of pooling height * pooling width, got {} and "
             "{} * {}",
             op, e.channels, e.pooled_height, e.pooled_width);
  return e.channels / e.cells();
}

void checkRatio(const char* op, int64_t sampling_ratio) {
  WICK_CHECK(sampling_ratio <= regions::kMostSamples, "{}: the sampling ratio {} is too large", op,
             sampling_ratio);
}

void checkPlaces(const char* op, const Extents& e) {
  WICK_CHECK(e.plane() <= std::numeric_limits<int32_t>::max(),
             "{}: a feature map of {} elements is too large", op, e.plane());
}

Tensor channelMapping(const Tensor& pooled) {
  const int64_t count = pooled.size(0);
  if (pooled.numel() == 0) return Tensor::empty(pooled.sizes(), DType::Int, pooled.device());
  const Tensor row = Tensor::empty(DimVector{pooled.numel() / count}, DType::Int);
  for (int64_t i = 0; i < row.numel(); ++i) row.data<int32_t>()[i] = static_cast<int32_t>(i);
  return moveTo(row, pooled.device())
      .expand(DimVector{count, row.numel()})
      .contiguous()
      .view(pooled.sizes());
}

Tensor checkedMapping(const char* op, const Tensor& mapping, const Tensor& grad) {
  WICK_CHECK(mapping.dtype() == DType::Int && std::ranges::equal(mapping.sizes(), grad.sizes()),
             "{}: expected an int32 channel mapping of the gradient's sizes {}, got {}", op,
             formatInts(grad.sizes()), mapping.describe());
  return mapping.contiguous();
}

}  // namespace wick::ops::vision
