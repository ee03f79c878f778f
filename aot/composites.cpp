// Operators on the device "ahead" that are made of others.
#include <algorithm>

#include "aot/device.h"
#include "aot/recording.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"

namespace wick::aot {

namespace {

// ---- autocast: what a compiled model computes, it computes on the CPU ----

Tensor toFullPrecision(const Tensor& self, bool, bool cpu_enabled) {
  return cpu_enabled && isReducedFloat(self.dtype()) ? self.to(DType::Float) : self;
}
Tensor toReducedPrecision(const Tensor& self, bool, bool cpu_enabled, DType, DType cpu_dtype) {
  return cpu_enabled && self.dtype() == DType::Float ? self.to(cpu_dtype) : self;
}

// ---- operators whose own kernels ask others for everything ----

void own(CallFrame& frame) {
  frame.op->record().kernel(frame);
}

const DeviceKernel kKernels[] = {
    {"aten::_autocast_to_full_precision", WICK_KERNEL(toFullPrecision)},
    {"aten::_autocast_to_reduced_precision", WICK_KERNEL(toReducedPrecision)},
    {"aten::_debug_has_internal_overlap", own},
    {"aten::pad_sequence", own},
};
const RegisterDeviceKernels registered(kAhead, kKernels);

}  // namespace

}  // namespace wick::aot
