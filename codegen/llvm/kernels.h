// Machine code for kernels of the loop IR: explicit vectors, masked tails, no fast-math.
#pragma once

#include <string>

#include "codegen/llvm/jit.h"
#include "codegen/loop/compiled_kernel.h"

namespace wick::codegen {

// The code of a kernel: a loop::KernelFunction named `name`. Reads the kernel only during the call
// and in `emit`, for which it is copied.
CodeRequest kernelRequest(std::string name, const loop::Kernel& kernel,
                          const loop::LaneLayout& layout);

}  // namespace wick::codegen
