// The kernels of a graph's fusion groups as text.
#pragma once

#include <string>

#include "runtime/interpreter/code.h"

namespace wick::cli {

enum class KernelText {
  Loops,  // the loop IR
  Llvm,   // LLVM modules before optimization
  Assembly,
  Cuda,  // CUDA C
};

// Of all groups of the code, in memory that is contiguous. A group that ran shows the kernels for
// the arguments that it met, others those for float32 tensors of two dimensions; one without a loop
// form says why.
std::string kernelText(const Code& code, KernelText what);

}  // namespace wick::cli
