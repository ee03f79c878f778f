// Kernels that are launched one after the other, as texts: for devices that run them now, and for models that are
// compiled ahead of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "runtime/cuda/device.h"

namespace wick::cuda {

// Addresses have numbers: first those that the series is given, then its own memory.
struct KernelSeries {
  struct Kernel {
    std::string text;
    const char* name;
    int64_t points = 0;
    // The first words of the kernel's only parameter; -1 is null.
    std::vector<int> addresses;
    std::vector<int64_t> numbers;
  };
  std::vector<int64_t> memory;  // words of 64 bits, of each
  std::vector<Kernel> kernels;
};

// Compiles and queues them. Throws RuntimeError.
void launchSeries(CudaDevice& device, const KernelSeries& series, const std::vector<Tensor>& given);

}  // namespace wick::cuda
