// Elements reduced into chosen ones of a tensor, where several may meet, on CUDA devices.
#pragma once

#include <string>

#include "core/tensor.h"
#include "runtime/ops/reduce/into.h"

namespace wick::cuda {

// For each i in order: the element of `target` that `places` (int64, flat) has for i becomes its
// reduction with source[i] (flat, of the target's dtype); none where the place is -1. A place is the
// element's distance from the target's first one in memory. Elements of one place are reduced by one
// thread in their order, so the result does not depend on how threads meet. Without `include_self` what
// the target has takes no part.
void reduceAt(const char* op, const Tensor& target, const Tensor& places, const Tensor& source,
              ops::Reduction how, bool include_self);

// The kernel that does so, "reduceRuns", of positions that are in order. Its words: addresses of the target, of the source, of
// the places, and of the number that each of them had before; how many there are.
std::string reduceRunsText(DType type, ops::Reduction how, bool include_self);

}  // namespace wick::cuda
