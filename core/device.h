// Where a tensor's memory is.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace wick {

// The numbers are PyTorch's.
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14 };

struct Device {
  DeviceType type = DeviceType::CPU;
  // -1: the current device of that type. Below it: tensors on the device "meta" that stand for such of
  // another device (lazy/stand_in.h); no text gives such numbers.
  int8_t index = -1;

  constexpr Device() = default;
  constexpr Device(DeviceType of_type, int8_t at = -1) : type(of_type), index(at) {}
  // As parse(): Device("cuda:0").
  explicit Device(std::string_view text) : Device(parse(text)) {}
  explicit Device(const char* text) : Device(parse(text)) {}

  static constexpr Device cpu() { return {}; }
  // The device of that number; -1: the calling thread's current one. Throws RuntimeError for
  // numbers that no device has, below -1 and above 127. Whether the device is there is asked when
  // something is put on it.
  static Device cuda(int number = -1);
  // "cpu", "cuda", "cuda:1", "meta". Throws RuntimeError for anything else.
  static Device parse(std::string_view text);
  // How many devices of the type there are; 0 when the driver or the library is absent.
  static int count(DeviceType of_type);
  std::string str() const;
  bool isCpu() const { return type == DeviceType::CPU; }
  bool isCuda() const { return type == DeviceType::CUDA; }
  friend bool operator==(Device, Device) = default;
  friend std::ostream& operator<<(std::ostream& out, Device device);  // str()
};

}  // namespace wick

#pragma GCC visibility pop
