// Calls of operators on lazy tensors.
#pragma once

#include "core/device_backend.h"
#include "core/source_range.h"
#include "ir/operator.h"
#include "lazy/geometry.h"

namespace wick::lazy {

// What Operator::callKernel() does for tensors of the device "lazy".
void recordCall(CallFrame& frame);

// What runs on this thread and may look at a value, for counters.
const char* currentCause();

// A tensor of the device with this layout.
Tensor makeLazy(const Geometry& layout);
inline bool isLazy(const Tensor& t) {
  return t.device().type == kLazy;
}

}  // namespace wick::lazy
