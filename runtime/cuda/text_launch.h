// Kernels that are written as text, not made from the loop IR.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"
#include "runtime/cuda/device.h"

namespace wick::cuda {

inline constexpr int kTextBlock = 256;

// Blocks of kTextBlock threads for so many points, each thread taking several where there are many.
unsigned gridFor(int64_t points, const CudaDevice& device);
// Compiles `text` when it is new, and queues its kernel `name`, whose only parameter is a record of
// 64-bit words. Throws RuntimeError.
void launchText(CudaDevice& device, const std::string& text, const char* name, unsigned grid,
                const std::vector<int64_t>& words);

inline int64_t wordOf(const Tensor& t) {
  return reinterpret_cast<int64_t>(t.rawData());
}

}  // namespace wick::cuda
