// How many pairs a number of things has.
#pragma once

#include <cstdint>

#include "core/error.h"

namespace wick::linalg {

// n (n - 1) / 2. RuntimeError that names `op` when that is too large for any tensor.
inline int64_t pairsOf(const char* op, int64_t n) {
  constexpr int64_t kMost = int64_t{1} << 31;
  WICK_CHECK(n <= kMost, "{}: {} rows have too many pairs", op, n);
  return n * (n - 1) / 2;
}

}  // namespace wick::linalg
