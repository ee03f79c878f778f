// How tensors lie in memory: what kernels are launched on, and what they are lowered with.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "codegen/loop/kernel.h"

namespace wick::loop {

struct TensorLayout {
  int rank = 0;
  std::array<int64_t, kMaxRank> sizes{};
  std::array<int64_t, kMaxRank> strides{};  // in elements, like the offset
  int64_t offset = 0;
};

int64_t numelOf(const TensorLayout& t);
// Whether the numbers are as small as those of a tensor are (kMaxElements in core/tensor.h), so that
// what is computed of them does not overflow. What does not fit is left to the operators, which
// raise.
bool fits(const TensorLayout& t);
// Whether the elements lie side by side in the order of their indices.
bool isRowMajor(const TensorLayout& t);
// Whether the channels, dimension 1, lie innermost, as Tensor::suggestMemoryFormat() sees it.
bool isChannelsLast(const TensorLayout& t);
// Sets the strides of a tensor without gaps; channels-last of four or five dimensions.
void layRowMajor(TensorLayout& t);
void layChannelsLast(TensorLayout& t);
// Whether the dimensions lie in memory as they stand, from the outermost to the innermost: then
// results are row-major. Dimensions that do not move say nothing.
bool isOrdered(const TensorLayout& t);

// Sets the layout of a new tensor with the elements of another, as Tensor::emptyLike() lays it out.
void layLike(const TensorLayout& from, TensorLayout& to);
// The layout of the result of an operator on these operands (core/strided_layout.h), among which may be a number. False when their
// shapes do not broadcast, or they are more than eight.
bool pointwiseLayout(std::span<const TensorLayout* const> operands, bool has_number,
                     TensorLayout& result);

}  // namespace wick::loop
