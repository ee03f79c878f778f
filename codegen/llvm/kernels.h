// Machine code for kernels of the loop IR: explicit vectors, masked tails, no fast-math.
//
// The code walks over rows of elements. Which dimensions of the domain are rows and which are
// within a row is the caller's choice, as long as the reduced ones are within; whoever has more
// dimensions calls the code several times. Lanes of vectors are neighbours within a row, or, when
// rows lie side by side in memory and are reduced, neighbouring rows.
#pragma once

#include <string>
#include <vector>

#include "codegen/llvm/jit.h"
#include "codegen/loop/kernel.h"

namespace wick::codegen {

// How an access moves from lane to lane.
enum class LaneStep : uint8_t { Zero, Unit, Other };

// What code depends on besides the kernel.
struct LaneLayout {
  bool across_rows = false;
  std::vector<LaneStep> steps;  // one an access
  friend bool operator==(const LaneLayout&, const LaneLayout&) = default;
};

// The words that the code takes.
struct KernelWords {
  explicit KernelWords(const loop::Kernel& kernel)
      : numbers(2 + 3 * kernel.accesses.size()), count(numbers + kernel.numbers.size()) {}
  static constexpr size_t kElements = 0;  // in a row
  static constexpr size_t kRows = 1;
  // Of access i: the address of its first element, then its steps in bytes from row to row and
  // within a row.
  static constexpr size_t base(size_t i) { return 2 + 3 * i; }
  static constexpr size_t rowStep(size_t i) { return 3 + 3 * i; }
  static constexpr size_t elementStep(size_t i) { return 4 + 3 * i; }
  size_t numbers;  // the first of them; each is its bits
  size_t count;
};
using KernelFunction = void(const int64_t* words);

// The code of a kernel: a KernelFunction named `name`. Reads the kernel only during the call and in
// `emit`, for which it is copied.
CodeRequest kernelRequest(std::string name, const loop::Kernel& kernel, const LaneLayout& layout);

}  // namespace wick::codegen
