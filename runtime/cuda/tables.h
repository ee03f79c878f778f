// Small tensors that the CPU makes for kernels: positions, windows, weights.
#pragma once

#include "core/tensor.h"

namespace wick::cuda {

// `table`, a contiguous tensor on the CPU, on the device. Equal small ones are copied there once and
// kept as long as the process, so that calls with the same sizes copy nothing and can be repeated
// (runtime/cuda/call_graphs.h); nobody may write to what this gives. Thread-safe.
Tensor tableOn(Device device, const Tensor& table);

}  // namespace wick::cuda
