#include "core/device_backend.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "core/allocator.h"
#include "core/error.h"
#include "core/no_data_error.h"
#include "core/paced.h"

namespace wick {

namespace {

class CpuBackend : public DeviceBackend {
 public:
  int count() override { return 1; }
  Device current() override { return Device(); }
  void* allocate(Device, size_t bytes) override { return allocateBlock(bytes); }
  void free(Device, void* memory, size_t bytes) noexcept override { freeBlock(memory, bytes); }
  void clear(Device, void* memory, size_t bytes) override { clearBytes(memory, bytes); }
  void copyBytes(void* to, Device, const void* from, Device, size_t bytes) override {
    std::memcpy(to, from, bytes);
  }
  void copyElements(const Tensor& to, const Tensor& from) override { to.copyFrom(from); }
  void synchronize(Device) override {}
};

// Tensors with sizes, strides and dtypes, and no memory.
class MetaBackend : public DeviceBackend {
 public:
  int count() override { return 1; }
  Device current() override { return {DeviceType::Meta, -1}; }
  bool holdsData() const override { return false; }
  void* allocate(Device, size_t) override { return nullptr; }
  void free(Device, void*, size_t) noexcept override {}
  void clear(Device, void*, size_t) override {}
  void copyBytes(void*, Device, const void*, Device from_device, size_t) override {
    if (from_device.type == DeviceType::Meta) throw NoDataError();
  }
  void copyElements(const Tensor&, const Tensor&) override {}
  void synchronize(Device) override {}
};

constexpr size_t kNumTypes = 5;
size_t slotOf(DeviceType type) {
  if (type == DeviceType::Meta) return 3;
  return type == DeviceType::CPU ? 0 : type == DeviceType::CUDA ? 1 : type == kLazy ? 2 : 4;
}

// Constant-initialized: backends are set while static objects of other files are made.
std::array<std::atomic<DeviceBackend*>, kNumTypes> backends{};

}  // namespace

DeviceBackend* findDeviceBackend(DeviceType type) {
  static CpuBackend cpu;
  static MetaBackend meta;
  if (type == DeviceType::CPU) return &cpu;
  if (type == DeviceType::Meta) return &meta;
  return backends[slotOf(type)].load(std::memory_order_acquire);
}

DeviceBackend& deviceBackend(DeviceType type) {
  DeviceBackend* found = findDeviceBackend(type);
  WICK_CHECK(found, "device {}: this build of the engine has no support for it",
             Device{type, -1}.str());
  return *found;
}

void setDeviceBackend(DeviceType type, DeviceBackend* backend) {
  backends[slotOf(type)].store(backend, std::memory_order_release);
}

Device placeOf(Device device) {
  if (device.type == DeviceType::Meta) return {device.type, std::min<int8_t>(device.index, -1)};
  if (!device.isCuda()) return {device.type, -1};
  DeviceBackend& backend = deviceBackend(device.type);
  if (device.index < 0) return backend.current();
  const int count = backend.count();
  WICK_CHECK(device.index < count, "device {}: there {} {} such device{}", device.str(),
             count == 1 ? "is" : "are", count, count == 1 ? "" : "s");
  return device;
}

namespace {
std::atomic<Device> default_device{Device()};
std::atomic<bool> stands_for_cpu{false};
thread_local bool on_cpu = false;
}  // namespace
OnCpuScope::OnCpuScope() : before_(std::exchange(on_cpu, true)) {}
OnCpuScope::~OnCpuScope() {
  on_cpu = before_;
}

Device defaultDevice() {
  if (on_cpu) return Device();
  const Device device = default_device.load(std::memory_order_relaxed);
  // Without an index it is each thread's own.
  return device.isCuda() && device.index < 0 ? placeOf(device) : device;
}
void setDefaultDevice(Device device, bool for_cpu) {
  const Device place = placeOf(device);  // throws where there is none
  default_device.store(device.isCuda() ? device : place, std::memory_order_relaxed);
  stands_for_cpu.store(for_cpu, std::memory_order_relaxed);
}
Device deviceFor(std::optional<Device> asked) {
  if (!asked) return defaultDevice();
  const bool replaced = asked->isCpu() && !on_cpu && stands_for_cpu.load(std::memory_order_relaxed);
  return replaced ? defaultDevice() : *asked;
}

Tensor moveTo(const Tensor& tensor, Device device) {
  device = placeOf(device);
  if (tensor.device() == device) return tensor;
  const DimVector strides = tensor.isNonOverlappingAndDense()
                                ? DimVector(tensor.strides())
                                : denseStrides(tensor.sizes(), tensor.strides());
  const Tensor moved = Tensor::emptyStrided(tensor.sizes(), strides, tensor.dtype(), device);
  moved.copyFrom(tensor);
  return moved;
}

}  // namespace wick
