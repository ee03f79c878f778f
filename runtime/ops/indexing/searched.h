// What kernels of wick::sorted_positions check on every device.
#pragma once

#include "core/error.h"
#include "core/tensor.h"

namespace wick::ops {

// The length of a sequence. RuntimeError when sequences, values and their order do not fit together.
inline int64_t checkSearched(const char* op, const Tensor& sequence, const Tensor& values,
                             const Tensor& order) {
  const auto outer = [](const Tensor& t) {
    return t.sizes().first(static_cast<size_t>(t.dim() - 1));
  };
  WICK_CHECK(sequence.dim() == 1 || (sequence.dim() > 1 && sequence.dim() == values.dim() &&
                                     std::ranges::equal(outer(sequence), outer(values))),
             "{}: values {} do not fit the sequences {}", op, values.describe(),
             sequence.describe());
  WICK_CHECK(sequence.dtype() == values.dtype(), "{}: expected one dtype, got {} and {}", op,
             sequence.describe(), values.describe());
  WICK_CHECK(!order.defined() || (order.dtype() == DType::Long &&
                                  std::ranges::equal(order.sizes(), sequence.sizes())),
             "{}: the sorter {} does not fit the sequences {}", op,
             order.defined() ? order.describe() : "", sequence.describe());
  return sequence.sizes().back();
}

}  // namespace wick::ops
