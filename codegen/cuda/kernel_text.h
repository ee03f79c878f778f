// Kernels of the loop IR as CUDA C.
//
// One kernel serves all sizes. Its only parameter is a record of words (KernelWords), which the
// caller fills for a call: sizes, addresses and steps in bytes.
//
// A kernel without reductions is a grid-stride loop over its points, each thread taking `vector`
// neighbours at once. Of one with reductions, groups of `threads` threads take a row each and walk
// over it once for each pass of the schedule; they put their parts together through registers of
// the warp, or shared memory. Where rows lie side by side in memory (`columns`), neighbouring
// threads take neighbouring rows.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/scalar_text.h"
#include "codegen/loop/compiled_kernel.h"
#include "codegen/loop/kernel.h"

namespace wick::codegen {

// What the text depends on besides the kernel.
struct CudaLayout {
  int outer =
      0;  // dimensions outside of rows (of points, without reductions: outside of the innermost)
  int nested = 0;        // loops over the pieces that a row is made of
  int vector = 1;        // neighbours that a thread takes at once; rows are a multiple of it
  bool wide = false;     // whether points are counted in 64 bits
  int block = 256;       // threads of a block
  int threads = 1;       // of a row, a power of two; the block is a multiple
  bool columns = false;  // neighbouring threads are neighbouring rows
  // How many vectors of a row each thread keeps between passes, because rows have no more; 0: rows are
  // read again.
  int kept = 0;
  std::vector<loop::LaneStep> steps;  // of each access along rows; Reverse counts as Other
  friend bool operator==(const CudaLayout&, const CudaLayout&) = default;
};

// The words that a kernel takes, 64 bits each.
struct CudaWords {
  CudaWords(const loop::Kernel& kernel, const CudaLayout& layout);
  static constexpr size_t kElements = 0;  // in a row, or a piece of one
  static constexpr size_t kRows = 1;
  size_t outerSize(int d) const { return 2 + static_cast<size_t>(d); }
  size_t nestedSize(int l) const { return nested_sizes + static_cast<size_t>(l); }
  // Of access a: the address, then its steps along elements, outer dimensions and nested loops.
  size_t base(size_t a) const { return accesses + a * per_access; }
  size_t elementStep(size_t a) const { return base(a) + 1; }
  size_t outerStep(size_t a, int d) const { return base(a) + 2 + static_cast<size_t>(d); }
  size_t nestedStep(size_t a, int l) const { return base(a) + 2 + outer + static_cast<size_t>(l); }
  size_t number(size_t i) const { return numbers + i; }

  size_t outer, nested_sizes, accesses, per_access, numbers, flag, count;
};
// What a kernel's parameters may take.
inline constexpr size_t kMaxCudaWords = 500;

// The text, whose kernel is called `name`. Throws NoCudaText.
std::string cudaKernelText(const std::string& name, const loop::Kernel& kernel,
                           const CudaLayout& layout);

// How many calls of a kernel one launch of its joint form takes at most; 1 where there is no such form.
size_t cudaCallsTogether(const CudaWords& words);
// The joint form: several calls with other words in one launch. Its parameter has the words of
// cudaCallsTogether() calls, then for each of them, in 32 bits, how many blocks it and those before
// it take. Calls beyond the last have no blocks.
std::string cudaJointKernelText(const std::string& name, const loop::Kernel& kernel,
                                const CudaLayout& layout);

}  // namespace wick::codegen
