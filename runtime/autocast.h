// Mixed precision for functions that say nothing of it, as a call within torch.autocast in Python.
#pragma once

#include <memory>
#include <optional>

#include "core/device.h"
#include "core/dtype.h"

#pragma GCC visibility push(default)

namespace wick {

class GraphFunction;

// A function that computes what `function` does within `torch.autocast(device, dtype)`: products in
// `dtype` (float16 on CUDA and bfloat16 on the CPU when it is not given), what needs range in
// float32 (passes/autocast.h). It takes the same arguments, `self` included, and tensors of other
// types of devices as they are. Calls are inlined; what `function` calls must outlive the result.
// UsageError unless the device is of the CPU or of CUDA and the dtype float16 or bfloat16;
// CompileError when a callee does not compile, RuntimeError for operators that are unsafe in low
// precision.
std::shared_ptr<GraphFunction> withAutocast(GraphFunction& function, DeviceType device,
                                            std::optional<DType> dtype = std::nullopt);

}  // namespace wick

#pragma GCC visibility pop
