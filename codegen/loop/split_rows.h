// A reducing kernel as several kernels that may be run on parts of their rows at a time, so that
// threads can share a row.
//
//   r0 = sum x; r1 = sum (x - r0)²; store row sqrt(r1)
// →
//   stage 0: part r0 = sum x
//   stage 1: part r1 = sum (x - load r0)²
//   stage 2: store row sqrt(load r1)
#pragma once

#include <vector>

#include "codegen/loop/kernel.h"

namespace wick::loop {

struct RowStage {
  // What an access of the stage's kernel belongs to.
  struct Place {
    enum class Kind : uint8_t {
      Access,  // of the whole kernel, access `index`
      Result,  // one element a row: reduction `index` of the whole kernel, all parts together
      Part,    // one element a row: reduction `index` over the part that is being run
    };
    Kind kind;
    uint32_t index;
  };
  // Its numbers are those of the whole kernel and one more (int64), how many points a row has.
  Kernel kernel;
  std::vector<Place> places;  // of each access
};

struct SplitRows {
  // Run one after the other, each on all parts. When `ends_per_row` the last has nothing to do but
  // once for each row.
  std::vector<RowStage> stages;
  bool ends_per_row = false;
};

// Of a kernel with reductions.
SplitRows splitRows(const Kernel& kernel);

// result[row] of a reduction in `type`: parts[part * rows + row] combined in order.
void combineParts(ReduceOp op, DType type, const void* parts, int64_t num_parts, int64_t rows,
                  void* result);

}  // namespace wick::loop
