// Results that lie row-major, whatever order the tensor lies in that they start from.
#pragma once

#include "runtime/ops/common.h"

namespace wick::ops {

// As startFrom(), where PyTorch makes a new result without looking at the strides of `self`.
inline Tensor startRowMajorFrom(const Tensor& self, Out out) {
  return out ? startFrom(self, out) : self.clone(MemoryFormat::Contiguous);
}

}  // namespace wick::ops
