// What a device did for each call of an operator, for `profile`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "ir/graph.h"
#include "runtime/interpreter/observer.h"

namespace wick::cli {

// Kernels, copies and fills of one name.
struct DeviceRow {
  std::string name;
  size_t calls = 0;
  double us = 0;
  int64_t bytes = 0;
};

// A stretch of a device's time, for traces.
struct DeviceSpan {
  std::string name;
  uint32_t device = 0;
  uint32_t stream = 0;
  std::chrono::steady_clock::time_point begin, end;
};

// Measures while it lives. Calls are told from all threads.
class DeviceTimes {
 public:
  // Null where the device's work is not apart from the CPU's. By CUPTI where that can be opened, by
  // events otherwise: these count from the end of one call's work to the end of the next one's, so
  // that the device's waits are in it.
  static std::unique_ptr<DeviceTimes> make(Device device);
  virtual ~DeviceTimes() = default;

  virtual void called(const OperatorCall& call) = 0;
  // When all calls are over. To be called once, before the results are asked for.
  virtual void end() = 0;
  // Microseconds of the device for the calls of a node; 0 for what queued nothing.
  virtual double usOf(const Node* node) const = 0;
  // What the device did, the most expensive first; empty where only events tell.
  virtual std::vector<DeviceRow> rows() const = 0;
  virtual std::vector<DeviceSpan> spans() const = 0;
  // How it was measured, for a table's foot: a sentence.
  virtual std::string note() const = 0;
};

}  // namespace wick::cli
