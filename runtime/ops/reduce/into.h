// Combining elements into chosen positions of a tensor, for scatter, index_reduce and put.
#pragma once

#include <optional>
#include <string_view>

#include "core/counted_vector.h"
#include "core/tensor.h"

namespace wick::ops {

enum class Reduction { Sum, Prod, Mean, Amax, Amin };

// "sum", "prod", "mean", "amax", "amin".
std::optional<Reduction> reductionNamed(std::string_view name);

// For each i in order: target[at[i]] = reduce(target[at[i]], source[i]), where `at` are element
// offsets from the target's first element (valid ones) and `source` is row-major of the same dtype.
// Without `include_self` the touched positions start from the reduction's identity. A mean of
// integers is rounded down.
void reduceInto(const char* op, const Tensor& target, const Tensor& source,
                const CountedVector<int64_t>& at, Reduction reduction, bool include_self);

}  // namespace wick::ops
