#pragma once

#include <algorithm>
#include <cstring>

#include "core/tensor.h"

namespace wick::testing_tensors {

// Whether two tensors on the CPU have the same dtype, the same sizes and the same bits, however they lie in memory.
inline bool sameBits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !std::ranges::equal(a.sizes(), b.sizes())) return false;
  // Without elements there may be no memory to compare.
  if (a.numel() == 0) return true;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.rawData(), y.rawData(), static_cast<size_t>(x.numel()) * x.itemSize()) == 0;
}

}  // namespace wick::testing_tensors
