// Functions that move, order and add up elements (runtime/wick_aot_elements.h), as kernels for CUDA.
#pragma once

#include <optional>

#include "aot/program.h"

namespace wick::aot {

// The kernel that does what the function does; nullopt where there is none.
std::optional<DeviceKernelStep> cudaKernelOf(const FunctionStep& step);

}  // namespace wick::aot
