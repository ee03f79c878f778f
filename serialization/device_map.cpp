#include "serialization/device_map.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "core/device_backend.h"
#include "core/error.h"

namespace wick {
namespace {

// Types of devices that the engine lacks: PyTorch's, and those that widespread backends add to them.
constexpr std::array<std::string_view, 20> kForeignTypes = {
    "fpga", "hip", "hpu", "ideep",  "ipu",    "maia", "mkldnn",        "mlu", "mps", "mtia",
    "musa", "npu", "ort", "opencl", "opengl", "ve",   "privateuseone", "xla", "xpu", "vulkan",
};

// Whether the text names such a type, alone or with an index ("xla:0").
bool isForeign(std::string_view name) {
  const size_t colon = name.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    uint8_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size() || index > INT8_MAX) {
      return false;
    }
  }
  return std::ranges::find(kForeignTypes, name.substr(0, colon)) != kForeignTypes.end();
}

bool isHere(Device device) {
  DeviceBackend* backend = findDeviceBackend(device.type);
  return backend != nullptr && std::max<int>(device.index, 0) < backend->count();
}

// RuntimeError when there is no such device.
Device checked(Device device) {
  deviceBackend(device.type);
  placeOf(device);
  return device;
}

}  // namespace

DeviceMap::DeviceMap(std::map<std::string, Device> devices)
    : function_([devices = std::move(devices)](const std::string& name) -> std::optional<Device> {
        const auto found = devices.find(name);
        return found == devices.end() ? std::nullopt : std::optional(found->second);
      }) {}

std::optional<Device> DeviceMap::find(const std::string& name) const {
  const std::optional<Device> saved = deviceNamed(name);
  if (saved && saved->type == DeviceType::Meta) return saved;
  if (function_) {
    if (const std::optional<Device> device = function_(name)) return checked(*device);
  }
  if (!saved && !isForeign(name)) return std::nullopt;
  if (all_) return checked(*all_);
  return saved && isHere(*saved) ? *saved : Device();
}

void DeviceMap::check() const {
  if (all_) checked(*all_);
}

std::optional<Device> deviceNamed(const std::string& name) {
  if (isForeign(name)) return std::nullopt;  // as often as there are tensors, so nothing is thrown
  try {
    return Device::parse(name);
  } catch (const RuntimeError&) {
    return std::nullopt;
  }
}

}  // namespace wick
