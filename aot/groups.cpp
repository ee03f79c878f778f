// Kernels of fusion groups, and of single operators, on the device "ahead".
#include <memory>

#include "aot/device.h"
#include "aot/recording.h"
#include "ir/device_kernels.h"
#include "runtime/fusion/group_backend.h"
#include "runtime/fusion/operator_site.h"

namespace wick::aot {

namespace {

class AheadGroups : public GroupBackend {
 public:
  struct Prepared : Code {
    std::string name;
    std::shared_ptr<const loop::Kernel> kernel;
  };

  std::unique_ptr<Code> prepare(const std::string& name, const loop::Kernel& kernel) override {
    auto code = std::make_unique<Prepared>();
    code->name = name;
    code->kernel = std::make_shared<loop::Kernel>(kernel);
    return code;
  }

  void launch(Device, std::span<const Launch> launches) override {
    Recording& recording = Recording::current();
    for (const Launch& launch : launches) {
      const auto& code = static_cast<const Prepared&>(*launch.code);
      const loop::Kernel& kernel = *code.kernel;
      if (launch.walk->rows() == 0 || (kernel.reduced == 0 && launch.walk->elements == 0)) continue;
      std::vector<int64_t> addresses;
      for (const Touch& touch : launch.touches) {
        addresses.push_back(reinterpret_cast<int64_t>(touch.base));
      }
      recording.kernel(code.name, code.kernel, wayOf(kernel, *launch.walk), addresses,
                       {launch.numbers.begin(), launch.numbers.end()});
    }
  }
};

const struct Registration {
  AheadGroups groups;
  Registration() {
    setGroupBackend(kAhead, &groups);
    setGeneralKernel(kAhead, computeAsGroup);
  }
}& registration = *new Registration;

}  // namespace

}  // namespace wick::aot
