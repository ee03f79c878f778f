// Shapes of what a group computes, one operator after the other: how the caller of kernels learns
// sizes, and how the results lie in memory.
#pragma once

#include <span>
#include <vector>

#include "codegen/loop/layout.h"
#include "codegen/loop/views.h"

namespace wick::loop {

// How one tensor follows from others. Tensors are numbered: first the group's arguments, then the
// results of the steps.
struct ShapeStep {
  enum class Kind : uint8_t {
    Pointwise,
    Like,         // as operands[0], whose elements it has: a cast
    View,         // of operands[0]
    Reduce,       // of operands[0]: dims
    RowMajor,     // as operands[0], in row-major order
    Cat,          // along `dim`
    Stack,        // along a new dimension `dim`
    IndexSelect,  // of operands[0] along `dim`, by operands[1]
    Embedding,    // rows of operands[0], by operands[1]
    Gather,       // from operands[0] along `dim`, by operands[1]
  };
  Kind kind = Kind::Pointwise;
  std::vector<uint32_t> operands;
  ViewStep view;
  uint32_t dims = 0;  // bit k: the k-th from the end
  bool keepdim = false;
  int dim = 0;              // counted from the front
  bool row_major = false;   // of pointwise operators: whatever order the operands lie in
  bool has_number = false;  // of pointwise operators: among the operands
  // What kernels rely on: the rank, which dimensions have size one (from the end), whether a view
  // was a copy.
  uint8_t rank = 0;
  uint8_t ones = 0;
  bool copied = false;
};

// Appends the layout of the step's tensor to those of all before. False when the operator raises or
// lays out its result in a way that is not followed; learnShape() sets what the step relies on,
// followShape() is false when it does not hold.
bool learnShape(ShapeStep& step, std::span<const int64_t> numbers,
                std::vector<TensorLayout>& tensors);
bool followShape(const ShapeStep& step, std::span<const int64_t> numbers,
                 std::vector<TensorLayout>& tensors);

}  // namespace wick::loop
