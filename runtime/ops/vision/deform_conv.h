// What a deformable convolution checks, and the sizes of its results.
#pragma once

#include "core/tensor.h"

namespace wick::ops::vision {

struct Geometry {
  int64_t images, channels, height, width;  // of the input
  int64_t out_channels, kernel_height, kernel_width;
  int64_t out_height, out_width;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int64_t groups, offset_groups;
  bool use_mask;
  int64_t taps() const { return kernel_height * kernel_width; }
  int64_t places() const { return out_height * out_width; }
  int64_t plane() const { return height * width; }
  int64_t channelsPerOffset() const { return channels / offset_groups; }
};

// `numbers`: strides, padding and dilation of both dimensions, groups and groups of offsets. RuntimeError when the arguments
// do not fit together.
Geometry geometryOf(const char* op, const Tensor& input, const Tensor& weight, const Tensor& offset,
                    const Tensor& mask, const Tensor& bias, const DimVector& numbers,
                    bool use_mask);

}  // namespace wick::ops::vision
