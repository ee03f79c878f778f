// What reduces tensors on devices over all processes, without the CPU's memory between.
#pragma once

#include <functional>
#include <memory>

#include "core/tensor.h"
#include "distributed/transport.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// Of one device. Thread-safe. All processes make the same calls in the same order. Work is queued:
// nothing here waits for the device.
class DeviceReducer {
 public:
  virtual ~DeviceReducer() = default;
  // A reduction under way. Whoever lets go of it earlier than end() waits for it.
  class Work {
   public:
    virtual ~Work() = default;
  };
  // Begins to reduce row-major numbers in place, behind what the calling thread has queued. Nobody else
  // has their memory. `mean`: the sum divided by the number of processes; of floating-point numbers.
  // RuntimeError when the library reports an error.
  virtual std::unique_ptr<Work> begin(const Tensor& numbers, Reduction reduction, bool mean) = 0;
  // What the calling thread queues from here on finds the result.
  virtual void end(Work& work) = 0;
};

// Makes the reducer of a device in two steps: what may fail in one process alone is done at once, and
// what comes back joins the processes, on their group's thread.
using JoinDevices = std::function<std::unique_ptr<DeviceReducer>(Transport&)>;
using OpenDeviceReducer = JoinDevices (*)(Device device);
// Of a type of device; set before main().
void setDeviceReducer(DeviceType type, OpenDeviceReducer open);

}  // namespace wick::distributed

#pragma GCC visibility pop
