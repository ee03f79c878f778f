// A device of the type CUDA whose memory is the CPU's and whose operators are the CPU's kernels: for
// tests of what stands above a device, on machines without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace wick {

// Takes the place of CUDA while it lives. One at a time. As on a real device, calls with tensors of
// several devices are refused, except for numbers on the CPU; what reads memory of the device as if it
// were the CPU's is not found.
class SimulatedDevice {
 public:
  SimulatedDevice();
  ~SimulatedDevice();
  SimulatedDevice(const SimulatedDevice&) = delete;
  SimulatedDevice& operator=(const SimulatedDevice&) = delete;

  struct State {
    uint64_t calls = 0;           // of operators
    uint64_t to_device = 0;       // copies from the CPU
    uint64_t to_host = 0;         // and to it
    std::set<std::string> lacks;  // names of operators that it has not
    size_t bytes = 0;             // of memory that is held
    size_t peak_bytes = 0;
    // Whether it runs fused pointwise kernels too, point after point, and lets them write over memory
    // that nobody holds; else their operators run one by one.
    bool runs_groups = false;
  };
  static State& state();
};

}  // namespace wick
