// How compiled kernels are called, whoever compiles them.
//
// The code walks over rows of elements. Which dimensions of the domain are rows and which are
// within a row is the caller's choice, as long as the reduced ones are within; whoever has more
// dimensions calls the code several times. Lanes of vectors are neighbours within a row, or, when
// rows lie side by side in memory and are reduced, neighbouring rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/loop/kernel.h"

namespace wick::loop {

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
  explicit KernelWords(const Kernel& kernel)
      : numbers(2 + 3 * kernel.accesses.size()),
        flag(numbers + kernel.numbers.size()),
        count(flag + (kernel.checks.empty() ? 0 : 1)) {}
  static constexpr size_t kElements = 0;  // in a row
  static constexpr size_t kRows = 1;
  // Of access i: the address of its first element, then its steps in bytes from row to row and
  // within a row.
  static constexpr size_t base(size_t i) { return 2 + 3 * i; }
  static constexpr size_t rowStep(size_t i) { return 3 + 3 * i; }
  static constexpr size_t elementStep(size_t i) { return 4 + 3 * i; }
  size_t numbers;  // the first of them; each is its bits
  size_t flag;     // with checks: the address of an int64 that becomes 1 when one does not hold
  size_t count;
};
using KernelFunction = void(const int64_t* words);

// Code that may be called as long as `memory` lives.
struct CompiledKernel {
  KernelFunction* function = nullptr;
  std::shared_ptr<const void> memory;
};
// Compiles a kernel; throws std::exception when it cannot.
using KernelCompiler = CompiledKernel (*)(const std::string& name, const Kernel& kernel,
                                          const LaneLayout& layout);
// Null when no compiler is linked. Set once, before anything runs.
KernelCompiler kernelCompiler();
void setKernelCompiler(KernelCompiler compiler);

}  // namespace wick::loop
