// How compiled kernels are called, whoever compiles them.
//
// The code walks over rows of elements. Which dimensions of the domain are rows and which are
// within a row is the caller's choice, as long as the reduced ones are within; whoever has more
// dimensions calls the code several times. A row whose reduced dimensions do not join in memory is
// made of pieces, which lie in a nest of loops. Lanes of vectors are neighbours within a row (a
// piece), or, when rows lie side by side in memory and are reduced, neighbouring rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/loop/kernel.h"

namespace wick::loop {

// How an access moves from lane to lane; Reverse: to the element in front.
enum class LaneStep : uint8_t { Zero, Unit, Other, Reverse };

// What code depends on besides the kernel.
struct LaneLayout {
  bool across_rows = false;
  int nested = 0;               // loops over the pieces of a row
  std::vector<LaneStep> steps;  // one an access
  friend bool operator==(const LaneLayout&, const LaneLayout&) = default;
};

// The words that the code takes.
struct KernelWords {
  explicit KernelWords(const Kernel& kernel)
      : accesses(kernel.accesses.size()),
        numbers(2 + 3 * accesses),
        flag(numbers + kernel.numbers.size()),
        nest(flag + (kernel.checks.empty() ? 0 : 1)) {}
  static constexpr size_t kElements = 0;  // in a row, or a piece of one
  static constexpr size_t kRows = 1;
  // Of access i: the address of its first element, then its steps in bytes from row to row and
  // within a row.
  static constexpr size_t base(size_t i) { return 2 + 3 * i; }
  static constexpr size_t rowStep(size_t i) { return 3 + 3 * i; }
  static constexpr size_t elementStep(size_t i) { return 4 + 3 * i; }
  // Of loop l over pieces, the innermost first: how often it runs, and its step in bytes for access
  // i.
  size_t nestCount(size_t l) const { return nest + l * (1 + accesses); }
  size_t nestStep(size_t l, size_t i) const { return nestCount(l) + 1 + i; }
  size_t accesses;
  size_t numbers;  // the first of them; each is its bits
  size_t flag;     // with checks: the address of an int64 that becomes 1 when one does not hold
  size_t nest;
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
