#include "runtime/kernels/device_layers.h"

#include <atomic>

#include "core/error.h"

namespace wick {

namespace {
std::atomic<DeviceLayers*> cuda_layers{nullptr};
}

WeightedRows WeightedRows::transposed(int64_t rows) const {
  WeightedRows back;
  back.start.assign(static_cast<size_t>(rows) + 1, 0);
  for (const int64_t at : place) ++back.start[static_cast<size_t>(at) + 1];
  for (size_t i = 1; i < back.start.size(); ++i) back.start[i] += back.start[i - 1];
  back.place.resize(place.size());
  back.weight.resize(weight.size());
  CountedVector<int64_t> next(back.start);
  for (size_t row = 0; row + 1 < start.size(); ++row) {
    for (int64_t e = start[row]; e < start[row + 1]; ++e) {
      const auto from = static_cast<size_t>(e);
      const auto to = static_cast<size_t>(next[static_cast<size_t>(place[from])]++);
      back.place[to] = static_cast<int64_t>(row);
      if (!weight.empty()) back.weight[to] = weight[from];
    }
  }
  return back;
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
