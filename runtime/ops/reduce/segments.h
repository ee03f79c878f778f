// What segment_reduce computes on every device.
#pragma once

#include <optional>
#include <string>

#include "core/scalar.h"
#include "core/tensor.h"
#include "runtime/ops/reduce/into.h"

namespace wick::ops {

struct SegmentPlan {
  Tensor
      bounds;  // int64 [outer, count, 2] on the CPU: each segment's first and last (exclusive) row
  DimVector sizes;  // of the result
  int64_t axis = 0;
  Reduction reduction = Reduction::Sum;
  double start = 0;
  bool has_initial = false;
};

// Throws RuntimeError when the arguments do not fit together or segments leave the data.
SegmentPlan planSegments(const Tensor& data, const std::string& reduce, const Tensor& lengths,
                         const Tensor& indices, const Tensor& offsets, int64_t axis, bool partial,
                         const std::optional<Scalar>& initial);

}  // namespace wick::ops
