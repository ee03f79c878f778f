// GroupBackend: what runs kernels of the loop IR on a type of device other than the CPU.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "codegen/loop/kernel.h"
#include "core/device.h"
#include "runtime/fusion/walk.h"

namespace wick {

// Thread-safe.
class GroupBackend {
 public:
  virtual ~GroupBackend() = default;
  // What is kept of one kernel between its launches.
  class Code {
   public:
    virtual ~Code() = default;
  };
  // `name` is for messages and profiles. The kernel lives as long as the code.
  virtual std::unique_ptr<Code> prepare(const std::string& name, const loop::Kernel& kernel) = 0;
  // One kernel with its walk over the device's memory; `numbers` are their bits.
  struct Launch {
    Code* code;
    const Walk* walk;
    std::span<const Touch> touches;
    std::span<const int64_t> numbers;
  };
  // Queues the kernels one behind the other. Throws loop::Unsupported, having queued nothing, when
  // one of them cannot be compiled.
  virtual void launch(Device device, std::span<const Launch> launches) = 0;
};

// Null when the engine was built without it.
GroupBackend* groupBackend(DeviceType type);
// Set once, before anything runs.
void setGroupBackend(DeviceType type, GroupBackend* backend);

}  // namespace wick
