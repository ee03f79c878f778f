// Functions that move, order and add up elements (runtime/wick_aot_elements.h), as kernels for CUDA.
#pragma once

#include <optional>
#include <vector>

#include "aot/program.h"

namespace wick::aot {

using AnyStep = decltype(Step::what);

// The steps that do what the function does, while a program is recorded; empty where there are none. Kernels that check
// something stay functions, because the flag that they set is known when they are written.
std::vector<AnyStep> cudaStepsOf(const FunctionStep& step);

// A kernel that checks something: behind its numbers it is given the flag and the number of the step's complaint.
// nullopt for other functions.
std::optional<DeviceKernelStep> checkingKernelOf(const FunctionStep& step);

}  // namespace wick::aot
