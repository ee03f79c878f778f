// Where a tensor's memory is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace wick {

// The numbers are PyTorch's.
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14 };

struct Device {
  DeviceType type = DeviceType::CPU;
  int8_t index = -1;  // -1: the current device of that type

  // "cpu", "cuda", "cuda:1", "meta". Throws RuntimeError for anything else.
  static Device parse(std::string_view text);
  std::string str() const;
  bool isCpu() const { return type == DeviceType::CPU; }
  bool isCuda() const { return type == DeviceType::CUDA; }
  friend bool operator==(Device, Device) = default;
};

}  // namespace wick

#pragma GCC visibility pop
