// The dtype of a result under PyTorch's type promotion.
#pragma once

#include "runtime/kernels/pointwise.h"

namespace wick::ops {

// The dtype in which the operands, tensors and numbers, are computed together
// (core/dtype_promotion.h).
template <class... Operands>
DType commonDType(const Operands&... operands) {
  DTypePromotion types;
  (addTo(types, operands), ...);
  return types.get();
}

}  // namespace wick::ops
