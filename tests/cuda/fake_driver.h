// A CUDA driver without a device: memory is the CPU's, kernels are counted and not run. Graphs hold
// what was queued on the captured stream, and do it when they are launched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"

namespace wick::cuda {

struct FakeState {
  int devices = 2;
  int major = 9;                      // of the devices' architecture
  size_t memory = size_t{256} << 20;  // of each device
  size_t used = 0;
  size_t live_allocations = 0;
  uint64_t allocations = 0;
  uint64_t launches = 0;
  uint64_t graph_launches = 0;
  uint64_t synchronizations = 0;
  uint64_t copies_to_device = 0, copies_to_host = 0, copies_on_device = 0;
  Result fails_next_synchronization = 0;
  Stream last_stream = nullptr;  // of what was queued last
  uint64_t events_recorded = 0, waits = 0;
  uint64_t branches_captured = 0;  // streams other than the one whose capture was begun
  bool work_is_done = true;        // whether events count as reached
};

// Takes the driver's place while it lives. One at a time.
class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  FakeState& state();
};

}  // namespace wick::cuda
