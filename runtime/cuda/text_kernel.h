// A kernel that is written as text, with what it is called for: for devices that run it now, and for models that are
// compiled ahead of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "runtime/cuda/device.h"

namespace wick::cuda {

// The kernel's only parameter is a record of 64-bit words: the addresses of the operands, then the numbers.
struct TextKernel {
  struct Operand {
    Tensor tensor;  // undefined: a null address
    bool written = false;
  };
  std::string text;
  const char* name;
  int64_t points;
  std::vector<Operand> operands;
  std::vector<int64_t> numbers;
};

// Compiles and queues it. Throws RuntimeError.
void launchText(CudaDevice& device, const TextKernel& kernel);

}  // namespace wick::cuda
