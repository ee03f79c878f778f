// Complex tensors as real ones.
#pragma once

#include "core/tensor.h"

namespace wick::cuda {

// A view of the real and imaginary parts, which are a last dimension of their own.
inline Tensor asParts(const Tensor& t) {
  DimVector sizes(t.sizes()), strides;
  for (const int64_t stride : t.strides()) strides.push_back(2 * stride);
  sizes.push_back(2);
  strides.push_back(1);
  return Tensor::fromStorage(t.storage(), toRealType(t.dtype()), sizes, strides, 2 * t.offset());
}

}  // namespace wick::cuda
