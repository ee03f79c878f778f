// Neighbouring linear filters as one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ir/function.h"

namespace wick::streams {

struct MergeReport {
  size_t before = 0;  // linear filters that were replaced
  size_t after = 0;   // by that many
};

// Replaces convolutions along the last dimension (aten::conv1d and what traces record for it), sums
// and differences of their results, products with numbers, and joins of their channels by single
// convolutions, in stacks and across split-joins, wherever a model of costs says that it pays: the
// products for each element and what a filter costs beside them. Results differ by rounding. Weights
// must be constants, groups 1; convolutions with padding merge with what follows, never with what is
// before. Types of values help, for joins (passes/propagate_types.h).
MergeReport mergeLinearFilters(Graph& graph);

// The same for a function, which stays as it is: the new one keeps it alive. The ranks of `example`,
// arguments for a call, are supposed of all calls.
std::pair<std::shared_ptr<GraphFunction>, MergeReport> mergeLinear(
    const std::shared_ptr<GraphFunction>& function, const std::vector<IValue>& example);

}  // namespace wick::streams
