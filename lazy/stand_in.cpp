#include "lazy/stand_in.h"

#include <limits>
#include <span>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/tensor.h"

namespace wick::lazy {
namespace {

constexpr int8_t kCpu = -1;
constexpr int8_t kFirstCuda = -2;  // those of further ones lie below

}  // namespace

Device standInFor(Device device) {
  if (device.isCpu()) return {DeviceType::Meta, kCpu};
  WICK_CHECK(device.isCuda(), "a tensor on {}", device.str());
  const Device place = placeOf(device);
  const int index = kFirstCuda - place.index;
  WICK_CHECK(index >= std::numeric_limits<int8_t>::min(), "a tensor on {}", place.str());
  return {DeviceType::Meta, static_cast<int8_t>(index)};
}

Device stoodFor(Device device) {
  if (device.type != DeviceType::Meta) return device;
  if (device.index > kFirstCuda) return {};
  return {DeviceType::CUDA, static_cast<int8_t>(kFirstCuda - device.index)};
}

Device standInOf(const CallFrame& call) {
  const std::span<const IValue> arguments(call.args, call.num_args);
  for (const IValue& each : arguments) {
    if (each.isDevice() && each.toDevice().type == DeviceType::Meta) return each.toDevice();
  }
  const auto isStandIn = [](const IValue& v) {
    return v.isTensor() && v.toTensor().defined() && v.toTensor().device().type == DeviceType::Meta;
  };
  for (const IValue& each : arguments) {
    if (isStandIn(each)) return each.toTensor().device();
    if (!each.isList()) continue;
    for (const IValue& element : each.elements()) {
      if (isStandIn(element)) return element.toTensor().device();
    }
  }
  return {DeviceType::Meta, kCpu};
}

}  // namespace wick::lazy
