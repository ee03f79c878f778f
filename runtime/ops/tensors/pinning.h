// The argument pin_memory of operators that make tensors.
#pragma once

#include "core/pinned_memory.h"
#include "ir/operator.h"

namespace wick::ops {

// The kernel, whose result goes to pinned memory where argument kPin asks for it.
template <size_t kPin, Kernel kKernel>
void pinning(CallFrame& frame) {
  const bool pins = frame.args[kPin].isBool() && frame.args[kPin].toBool();
  kKernel(frame);
  if (pins) [[unlikely]]
    frame.results[0] = IValue(pinned(frame.results[0].toTensor()));
}

}  // namespace wick::ops
