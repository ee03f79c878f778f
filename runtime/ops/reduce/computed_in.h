// The dtype that sums, products and scans are computed in.
#pragma once

#include <optional>

#include "core/dtype.h"
#include "core/error.h"
#include "runtime/ops/boxing.h"

namespace wick::ops {

// The one that was asked for, else a destination's. None: the input's.
inline std::optional<DType> computedIn(std::optional<DType> asked, Out out) {
  if (!out) return asked;
  WICK_CHECK(!asked || *asked == out.tensor->dtype(),
             "Expected out tensor to have dtype {}, but got {} instead", toString(*asked),
             toString(out.tensor->dtype()));
  return out.tensor->dtype();
}

}  // namespace wick::ops
