// Operators on the device "meta": of results that have a loop form, sizes, strides and dtypes are
// found as for any device, and nothing runs.
#include "ir/device_kernels.h"
#include "runtime/fusion/group_backend.h"
#include "runtime/fusion/operator_site.h"

namespace wick {

namespace {

class MetaGroups : public GroupBackend {
 public:
  std::unique_ptr<Code> prepare(const std::string&, const loop::Kernel&) override {
    return std::make_unique<Code>();
  }
  void launch(Device, std::span<const Launch>) override {}
};

// Has no loop form, because numbers are complex where it does anything.
void conjugate(CallFrame& frame) {
  const Tensor t = frame.args[0].toTensor();
  frame.results[0] = IValue(isComplex(t.dtype()) ? Tensor::emptyLike(t, t.dtype()) : t);
}

constexpr DeviceKernel kMetaKernels[] = {
    {"aten::conj", conjugate},
    {"aten::_conj", conjugate},
    {"aten::conj_physical", conjugate},
    {"aten::_conj_physical", conjugate},
};
const RegisterDeviceKernels kernels(DeviceType::Meta, kMetaKernels);

const struct Registration {
  MetaGroups groups;
  Registration() {
    setGroupBackend(DeviceType::Meta, &groups);
    setGeneralKernel(DeviceType::Meta, computeAsGroup);
  }
}& registration = *new Registration;

}  // namespace

}  // namespace wick
