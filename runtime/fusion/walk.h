// Walk: the order in which a kernel goes over its domain, for sizes and steps that are known.
#pragma once

#include <span>

#include "codegen/loop/compiled_kernel.h"
#include "codegen/loop/kernel.h"

namespace wick {

inline constexpr size_t kMaxAccesses = 64;

// What a kernel's access touches: the address of the first element, and bytes from one to the next
// along each dimension of the domain (zero where it does not vary).
struct Touch {
  char* base;
  std::array<int64_t, loop::kMaxRank> steps;
};

// Dimensions that lie one after the other in all of the memory that the kernel touches are joined.
struct Walk {
  int64_t elements = 1;  // in a row, or in a piece of one
  std::array<int64_t, kMaxAccesses> element_steps;
  // Loops over the pieces that a row is made of where its dimensions do not join, the innermost
  // first.
  int nested = 0;
  std::array<int64_t, loop::kMaxRank> nested_sizes;
  std::array<std::array<int64_t, kMaxAccesses>, loop::kMaxRank> nested_steps;
  // The dimensions outside of rows, the innermost first: at least one. Compiled code walks along
  // the first by itself.
  int outer = 0;
  std::array<int64_t, loop::kMaxRank> sizes;
  std::array<std::array<int64_t, kMaxAccesses>, loop::kMaxRank> steps;
  bool across_rows = false;  // lanes are neighbouring rows
  // Something lies side by side from row to row and apart within a row: rows are walked in blocks,
  // a piece of each after the other, so that lines of the cache are used up.
  bool tiled = false;
  uint64_t packed = 0;  // bit a: of access a each tile is turned around in a buffer first

  int64_t rows() const {
    int64_t n = 1;
    for (int i = 0; i < outer; ++i) n *= sizes[static_cast<size_t>(i)];
    return n;
  }
  int64_t pointsOfRow() const {
    int64_t n = elements;
    for (int i = 0; i < nested; ++i) n *= nested_sizes[static_cast<size_t>(i)];
    return n;
  }
};

// `order` lists the domain's dimensions, the innermost first.
void planWalk(const loop::Kernel& kernel, std::span<const int64_t> sizes,
              std::span<const Touch> touches, std::span<const int> order, Walk& walk);

// How many points of the kernel make a second thread pay.
int64_t grainOf(const loop::Kernel& kernel);

// How access i moves from lane to lane.
loop::LaneStep laneStep(const loop::Kernel& kernel, const Walk& walk, size_t i);

// Runs compiled code over the walk, on several threads when it pays. `numbers` are their bits;
// `flag` becomes 1 when a check of the kernel does not hold.
void runWalk(const loop::Kernel& kernel, const Walk& walk, std::span<const Touch> touches,
             std::span<const int64_t> numbers, int64_t* flag, loop::KernelFunction* function);

// Runs it on this thread, over elements begin … begin + count - 1 of all rows.
void runElements(const loop::Kernel& kernel, const Walk& walk, std::span<const Touch> touches,
                 std::span<const int64_t> numbers, int64_t* flag, loop::KernelFunction* function,
                 int64_t begin, int64_t count);

}  // namespace wick
