#include "runtime/kernels/device_layers.h"

#include <atomic>

#include "core/error.h"

namespace wick {

namespace {
std::atomic<DeviceLayers*> cuda_layers{nullptr};
}

DeviceLayers& deviceLayers(const char* op, Device device) {
  DeviceLayers* found = device.isCuda() ? cuda_layers.load(std::memory_order_acquire) : nullptr;
  WICK_CHECK(found, "{}: not available on device {}", op, device.str());
  return *found;
}
void setDeviceLayers(DeviceType type, DeviceLayers* layers) {
  WICK_ASSERT(type == DeviceType::CUDA, "no layers are kept for this type of device");
  cuda_layers.store(layers, std::memory_order_release);
}

}  // namespace wick
