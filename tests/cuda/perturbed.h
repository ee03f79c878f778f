// What random programs give when one of their steps is off in its last places.
#pragma once

#include <vector>

#include "tests/codegen/random_programs.h"

namespace wick {

// Whether `got` differs from `expected`, what the program gives on the CPU, by more than the tolerance
// in an element that such changes do not explain: each step's result is moved up and down by a few units
// in the last place, one step at a time, and an element may be off by four times what that changes. The
// tensors are on the CPU, those of `got` have the dtypes and sizes of the others.
bool differsSteadily(const Program& program, const std::vector<Tensor>& got,
                     const std::vector<Tensor>& expected, double tolerance);

}  // namespace wick
