#include "runtime/ops/vision/regions.h"

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
  const Tensor rows = rois.contiguous();
  dispatchMaps(op, dtype, [&]<class T, class S>() {
    for (int64_t n = 0; n < rows.size(0); ++n) {
      const auto image = static_cast<double>(rows.data<S>()[5 * n]);
      WICK_CHECK(image > -1 && image < static_cast<double>(e.images),
                 "{}: a region lies on image {}, but there are {}", op, image, e.images);
    }
  });
}

}  // namespace

Extents extentsOf(const char* op, const Tensor& input, const Tensor& rois, int64_t pooled_height,
                  int64_t pooled_width) {
  WICK_CHECK(input.dim() == 4, "{}: expected an input of four dimensions, got {}", op, input.dim());
  const Extents e{input.size(0), input.size(1), input.size(2),
                  input.size(3), pooled_height, pooled_width};
  checkRegions(op, rois, input.dtype(), e);
  WICK_CHECK(rois.size(0) == 0 || e.plane() > 0, "{}: the feature map has no elements", op);
  return e;
}

Extents extentsOfGradient(const char* op, const Tensor& grad, int64_t grad_channels,
                          const Tensor& rois, int64_t pooled_height, int64_t pooled_width,
                          int64_t images, int64_t channels, int64_t height, int64_t width) {
  const Extents e{images, channels, height, width, pooled_height, pooled_width};
  checkedNumel(DimVector{images, channels, height, width});
  checkRegions(op, rois, grad.dtype(), e);
  WICK_CHECK(rois.size(0) == 0 || e.plane() > 0, "{}: the feature map has no elements", op);
  const DimVector expected{rois.size(0), grad_channels, pooled_height, pooled_width};
  WICK_CHECK(std::ranges::equal(grad.sizes(), expected),
             "{}: expected a gradient of sizes {}, got {}", op, formatInts(expected),
             formatInts(grad.sizes()));
  return e;
}

Tensor channelMapping(const Tensor& pooled) {
  Tensor mapping = Tensor::empty(pooled.sizes(), DType::Int);
  const int64_t per_region = pooled.numel() / std::max<int64_t>(pooled.size(0), 1);
  for (int64_t i = 0; i < pooled.numel(); ++i) {
    mapping.data<int32_t>()[i] = static_cast<int32_t>(i % per_region);
  }
  return mapping;
}

Tensor checkedMapping(const char* op, const Tensor& mapping, const Tensor& grad) {
  WICK_CHECK(mapping.dtype() == DType::Int && std::ranges::equal(mapping.sizes(), grad.sizes()),
             "{}: expected an int32 channel mapping of the gradient's sizes {}, got {}", op,
             formatInts(grad.sizes()), mapping.describe());
  return mapping.contiguous();
}

}  // namespace wick::ops::vision
