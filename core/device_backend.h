// Memory of a type of device, behind one table.
//
// Storages ask the backend of their device for memory; tensors on other devices than the CPU are
// copied, converted and filled by it. What computes on them stands beside the operators' records
// (ir/device_kernels.h).
#pragma once

#include <cstddef>
#include <optional>

#include "core/tensor.h"

namespace wick {

// Lazy tensors (lazy/). PyTorch's number.
inline constexpr DeviceType kLazy{17};

// Thread-safe. Work may be queued: what a backend is asked for happens in the order in which a
// thread asks, and bytes that were copied to the CPU are there when the call returns.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  // How many devices there are; 0 when the driver or the library is absent. Never throws.
  virtual int count() = 0;
  // The calling thread's device, with its index.
  virtual Device current() = 0;
  // Whether tensors have elements that can be read and written.
  virtual bool holdsData() const { return true; }
  // Whether storages have memory that copyBytes() and clear() reach. Where they have not, and tensors
  // hold data all the same, copyTensor() does what these do. New storages are full of zeros then.
  virtual bool hasMemory() const { return true; }
  // Writes `from` to `to`, converted: tensors of equal sizes, one of them or both on this device.
  virtual void copyTensor(const Tensor&, const Tensor&) {}
  // `bytes` > 0. Throws RuntimeError when memory is exhausted.
  virtual void* allocate(Device device, size_t bytes) = 0;
  virtual void free(Device device, void* memory, size_t bytes) noexcept = 0;
  // Writes zeros.
  virtual void clear(Device device, void* memory, size_t bytes) = 0;
  // Between two devices of this type, or this type and the CPU. The CPU's memory may be used again
  // when the call returns.
  virtual void copyBytes(void* to, Device to_device, const void* from, Device from_device,
                         size_t bytes) = 0;
  // Of two tensors of one device and of equal sizes, which share no memory; their strides and dtypes
  // may differ (core/convert.h).
  virtual void copyElements(const Tensor& to, const Tensor& from) = 0;
  // Waits for all that was queued. Throws what went wrong there.
  virtual void synchronize(Device device) = 0;
};

// Throws RuntimeError when the engine was built without it.
DeviceBackend& deviceBackend(DeviceType type);
// Null when the engine was built without it.
DeviceBackend* findDeviceBackend(DeviceType type);
// Set before anything runs; null takes it away, for tests.
void setDeviceBackend(DeviceType type, DeviceBackend* backend);

// The device with the index that its tensors have: "cuda" is the thread's current one. Throws
// RuntimeError when there is no such device.
Device placeOf(Device device);
// Where operators that are told no device make tensors: the CPU at first. Of the whole process. With
// `for_cpu` it also stands for the CPU where a program names that, as traced programs do for all that
// they make.
Device defaultDevice();
void setDefaultDevice(Device device, bool for_cpu = false);
// The device for an operator's argument.
Device deviceFor(std::optional<Device> asked);
// While it lives, the calling thread's default device is the CPU: for kernels of the CPU that make
// tensors by other operators.
class OnCpuScope {
 public:
  OnCpuScope();
  ~OnCpuScope();
  OnCpuScope(const OnCpuScope&) = delete;
  OnCpuScope& operator=(const OnCpuScope&) = delete;

 private:
  const bool before_;
};
// The tensor itself when it is there; otherwise a copy whose elements lie in the same order.
Tensor moveTo(const Tensor& tensor, Device device);

}  // namespace wick
