// How results of pointwise operators lie in memory, from how their operands do.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "codegen/loop/lowering.h"

namespace wick {

struct TensorLayout {
  int rank = 0;
  std::array<int64_t, loop::kMaxRank> sizes;
  std::array<int64_t, loop::kMaxRank> strides;
};

// The layout of the result of an operator on these operands, as runtime/kernels/pointwise.h lays it
// out. False when their shapes do not broadcast.
bool pointwiseLayout(std::span<const TensorLayout* const> operands, TensorLayout& result);

}  // namespace wick
