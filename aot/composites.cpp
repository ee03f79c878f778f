// Operators on the device "ahead" that are made of others.
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "aot/device.h"
#include "aot/recording.h"
#include "core/error.h"
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
    {"aten::flatten_dense_tensors", own},
    {"aten::unflatten_dense_tensors", own},
};
const RegisterDeviceKernels registered(kAhead, kKernels);

// Operators on lists of tensors call those on one tensor for each.
std::vector<DeviceKernel> ofLists() {
  // Kept as long as the process: tables hold the names.
  static std::vector<std::string>& names = *new std::vector<std::string>;
  const auto add = [&](std::string_view name, std::initializer_list<const char*> overloads) {
    for (const char* overload : overloads) {
      for (const char* form : {"", "_"}) {
        names.push_back("aten::_foreach_" + std::string(name) + form + overload);
      }
    }
  };
  for (const char* unary : {"abs",     "acos",  "asin",  "atan",  "ceil",  "cos",        "cosh",
                            "erf",     "erfc",  "exp",   "expm1", "floor", "frac",       "lgamma",
                            "log",     "log10", "log1p", "log2",  "neg",   "reciprocal", "round",
                            "sigmoid", "sin",   "sinh",  "sqrt",  "tan",   "tanh",       "trunc"}) {
    add(unary, {""});
  }
  for (const char* binary : {"add", "sub", "mul", "div"}) {
    add(binary, {".Scalar", ".List", ".ScalarList"});
  }
  for (const char* extreme : {"maximum", "minimum"}) add(extreme, {".List"});
  for (const char* ternary : {"addcdiv", "addcmul"}) add(ternary, {".Scalar", ".ScalarList"});
  std::vector<DeviceKernel> kernels;
  for (const std::string& name : names) kernels.push_back({name.c_str(), own});
  return kernels;
}
const RegisterDeviceKernels of_lists(kAhead, ofLists());

}  // namespace

}  // namespace wick::aot
