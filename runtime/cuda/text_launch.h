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
                std::vector<int64_t> words);
// The same on a device that is entered first, with threads for so many points. What the kernel may find
// wrong it tells by the two words behind the others: it writes the second to where the first points.
void launchPoints(Device device, const std::string& text, const char* name, int64_t points,
                  std::vector<int64_t> words, const std::string& complaint = {});

// The address; 0 of an undefined tensor.
inline int64_t wordOf(const Tensor& t) {
  return t.defined() ? reinterpret_cast<int64_t>(t.rawData()) : 0;
}

}  // namespace wick::cuda
