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
  Ptx,   // of that, with registers and shared memory, for the device here or compute capability 9.0
  Sass,  // the same as the device's instructions; needs the toolkit's program nvdisasm
};

// Of all groups of the code, in memory that is contiguous. A group that ran shows the kernels for
// the arguments that it met, others those for float32 tensors of two dimensions; one without a loop
// form says why. UsageError where a compiler or a disassembler is needed and absent.
std::string kernelText(const Code& code, KernelText what);

}  // namespace wick::cli
