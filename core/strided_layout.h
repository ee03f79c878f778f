// Layouts of tensors by their sizes and strides alone.
#pragma once

#include <array>
#include <span>

#include "core/tensor.h"

namespace wick {

// Dimensions from the innermost to the outermost in a channels-last layout.
inline constexpr std::array<int, 4> kChannelsLast = {1, 3, 2, 0};
inline constexpr std::array<int, 5> kChannelsLast3d = {1, 4, 3, 2, 0};

// Returns whether the elements lie in that format without gaps; dimensions of one element may have any stride. False for Preserve.
bool isContiguous(IntSpan sizes, IntSpan strides, MemoryFormat format);
// Returns whether the elements fill their extent without gaps or overlap, in any order of dimensions.
bool isDense(IntSpan sizes, IntSpan strides);

// The sizes of a tensor, and its strides in elements, of as many dimensions.
struct StridedShape {
  IntSpan sizes, strides;
};

// Returns the strides of a new result of `shape`, which the operands broadcast to, as PyTorch's TensorIterator lays it out: in the
// operands' order in memory. `has_number` says that a number is among them, which counts as a tensor without dimensions.
DimVector resultStrides(IntSpan shape, std::span<const StridedShape> operands, bool has_number);

}  // namespace wick
