// Long rows that threads share: where they are cut, and running a kernel's stages over the parts.
//
// Where a row is cut depends on sizes alone, and parts are put together in order, so that results
// do not depend on the number of threads.
#pragma once

#include <span>

#include "codegen/loop/split_rows.h"
#include "runtime/fusion/walk.h"

namespace wick {

// Each row is cut into parts along one of its loops.
struct RowCut {
  static constexpr int kElements = -1;
  int64_t parts = 1;  // one: the row is left whole
  int64_t size = 0;   // of a part: so many iterations of the loop
  int loop = 0;       // of Walk::nested_sizes, or kElements
};
RowCut planCut(const loop::Kernel& kernel, const Walk& walk);

// The stage's own way over memory.
Walk stageWalk(const loop::RowStage& stage, const Walk& whole, bool per_row);

// Runs the stages of a kernel on several threads; `functions` are those of the stages, and all else
// is the whole kernel's: see runWalk().
void runSplit(const loop::Kernel& kernel, const loop::SplitRows& split, const RowCut& cut,
              const Walk& whole, std::span<const Touch> touches, std::span<const int64_t> numbers,
              int64_t* flag, std::span<loop::KernelFunction* const> functions);

}  // namespace wick
