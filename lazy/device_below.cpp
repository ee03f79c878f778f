#include "lazy/device_below.h"

#include <atomic>

#include "core/error.h"
#include "lazy/lazy.h"
#include "runtime/fusion/group_backend.h"

namespace wick::lazy {

namespace {

std::atomic<Device> below{Device()};
std::atomic<int64_t> bases{0};

}  // namespace

Device deviceBelow() {
  return below.load(std::memory_order_relaxed);
}

Tensor onDeviceBelow(const Tensor& t) {
  return moveTo(t, deviceBelow());
}

Operand deviceOperand() {
  const Device device = deviceBelow();
  return constantOperand(device.isCpu() ? IValue() : IValue(device));
}

bool writesOverBelow() {
  const Device device = deviceBelow();
  if (device.isCpu()) return true;
  GroupBackend* groups = groupBackend(device.type);
  return groups && groups->writesOver(device);
}

void countBase(int more) {
  bases.fetch_add(more, std::memory_order_relaxed);
}

Device device() {
  return deviceBelow();
}

void setDevice(Device device) {
  const Device place = placeOf(device);
  DeviceBackend& backend = deviceBackend(place.type);
  WICK_CHECK(backend.holdsData() && backend.hasMemory(),
             "set_device: data of lazy tensors cannot be on {}; expected cpu or cuda", place.str());
  const std::lock_guard lock(mutex());
  if (place == deviceBelow()) return;
  const int64_t there = bases.load(std::memory_order_relaxed);
  WICK_CHECK(there == 0,
             "set_device: {} lazy tensor{} on {}; expected to be called before there are any",
             there, there == 1 ? " has its data" : "s have their data", deviceBelow().str());
  below.store(place, std::memory_order_relaxed);
}

}  // namespace wick::lazy
