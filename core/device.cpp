#include "core/device.h"

#include <charconv>
#include <ostream>

#include "core/device_backend.h"
#include "core/error.h"

namespace wick {

namespace {

constexpr int kMaxIndex = 127;

}  // namespace

Device Device::cuda(int number) {
  WICK_CHECK(number >= -1 && number <= kMaxIndex, "device: expected a number from -1 to {}, got {}",
             kMaxIndex, number);
  return {DeviceType::CUDA, static_cast<int8_t>(number)};
}

int Device::count(DeviceType of_type) {
  DeviceBackend* const backend = findDeviceBackend(of_type);
  return backend ? backend->count() : 0;
}

// A friend: the pragma of the header does not reach it.
__attribute__((visibility("default"))) std::ostream& operator<<(std::ostream& out, Device device) {
  return out << device.str();
}

Device Device::parse(std::string_view text) {
  Device d;
  size_t colon = text.find(':');
  std::string_view kind = text.substr(0, colon);
  if (kind == "cpu") {
    d.type = DeviceType::CPU;
  } else if (kind == "cuda") {
    d.type = DeviceType::CUDA;
  } else if (kind == "meta") {
    d.type = DeviceType::Meta;
  } else if (kind == "lazy") {
    d.type = kLazy;
  } else {
    throwRuntimeError(
        "device: expected one of cpu, cuda, lazy, meta at the start of the device string, got '{}'",
        text);
  }
  if (colon != std::string_view::npos) {
    std::string_view digits = text.substr(colon + 1);
    int index = -1;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    WICK_CHECK(error == std::errc() && end == digits.data() + digits.size() && index >= 0 &&
                   index <= kMaxIndex,
               "device: invalid device index in '{}'", text);
    d.index = static_cast<int8_t>(index);
  }
  return d;
}

std::string Device::str() const {
  std::string s = type == DeviceType::CPU    ? "cpu"
                  : type == DeviceType::CUDA ? "cuda"
                  : type == kLazy            ? "lazy"
                  : type == DeviceType::Meta ? "meta"
                                             : "ahead";  // of aot/
  if (index >= 0) s += ":" + std::to_string(index);
  return s;
}

}  // namespace wick
