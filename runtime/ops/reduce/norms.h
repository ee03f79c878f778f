// The p-norm over dimensions, for kernels that are composed of it.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace wick {

// (sum |x|^p)^(1/p) over `dims` (all when empty); p may be 0 or infinite. The result is real.
Tensor vectorNorm(const char* op, const Tensor& self, double p, IntSpan dims, bool keepdim,
                  std::optional<DType> dtype);

}  // namespace wick
