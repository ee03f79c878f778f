// Rows of elements in order, and what is chosen of them.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "runtime/cuda/kernel_series.h"

namespace wick::cuda {

// NaN is the largest number, zeros of both signs are equal, and equal elements are as they stand.
struct RowsInOrder {
  DType type = DType::Float;
  int64_t count = 0, length = 0;
  bool descending = false;
  // Which of the elements in order become results: `kept` from number `first` on; or one, the middle of all (NaN when
  // there is a NaN), that of the numbers, or the last of the longest run of equal ones.
  enum class Chosen { FromFirst, Median, MedianOfNumbers, Mode } chosen = Chosen::FromFirst;
  int64_t first = 0, kept = 1;
  // How equal elements are chosen: by their positions, or as PyTorch's selection of the first ones or of
  // one does on the CPU.
  enum class Ties { ByPosition, AsTop, AsOne } ties = Ties::ByPosition;
};

// It is given the rows, side by side, the values, [count, kept], and their positions in their rows. RuntimeError when
// there are too many elements.
KernelSeries sortSeries(const RowsInOrder& rows);

}  // namespace wick::cuda
