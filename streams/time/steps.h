// Tensors as steps along the dimension that is time.
#pragma once

#include <vector>

#include "core/tensor.h"
#include "runtime/ops/common_calls.h"

namespace wick::streams {

// The steps of `a`, which may be undefined, and those of `b`.
inline Tensor joined(const Tensor& a, const Tensor& b, int64_t axis) {
  if (!a.defined() || a.size(axis) == 0) return b;
  if (b.size(axis) == 0) return a;
  return ops::cat(std::vector<Tensor>{a, b}, axis);
}

// Steps `begin` to `end`, as memory of its own: a view would keep all that it is a part of.
inline Tensor kept(const Tensor& t, int64_t axis, int64_t begin, int64_t end) {
  return t.narrow(axis, begin, end - begin).contiguous().clone();
}

}  // namespace wick::streams
