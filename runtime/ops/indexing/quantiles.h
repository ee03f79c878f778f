// What quantiles check and how they are laid out, on every device.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace wick::ops {

// The elements sorted, the dimension that is reduced last, row-major: [..., length]. RuntimeError
// when the arguments do not fit together.
Tensor sortedForQuantiles(const Tensor& self, const Tensor& q, std::optional<int64_t> dim);
// The result of the quantiles [..., fractions] of these rows: the fractions first, or without them
// where `q` is a single one.
Tensor quantilesFirst(const Tensor& values, const Tensor& self, const Tensor& q,
                      std::optional<int64_t> dim, bool keepdim);

}  // namespace wick::ops
