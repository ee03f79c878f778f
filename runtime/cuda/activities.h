// What devices did and when, as CUPTI notes it: kernels, copies and fills with their times on the device.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace wick::cuda {

struct Activity {
  enum class Kind { Kernel, Copy, Fill };
  using Time = std::chrono::steady_clock::time_point;

  Kind kind = Kind::Kernel;
  std::string name;  // the kernel's; of the others what was done: "copy to device"
  uint32_t device = 0;
  uint32_t stream = 0;  // the driver's number
  int64_t bytes = 0;    // copied or filled
  Time begin, end;      // on the device
  // When the CPU began to queue it, and on which thread (the lower bits of pthread_self()). Not
  // known for what a graph holds.
  bool is_queued = false;
  Time queued;
  uint32_t thread = 0;
};

// Notes the process's work on all devices while it lives. One at a time; costs some microseconds a call
// of the driver.
class ActivityRecording {
 public:
  // Throws RuntimeError when the library is absent, or may not be used: another profiler may have it.
  ActivityRecording();
  ~ActivityRecording();
  ActivityRecording(const ActivityRecording&) = delete;
  ActivityRecording& operator=(const ActivityRecording&) = delete;

  // Ends it; to be called once, when the devices are done. In the order in which they began.
  std::vector<Activity> end();
  // How many were too many to be kept, or were lost by the library.
  uint64_t leftOut() const { return left_out_; }

 private:
  void disable() noexcept;
  bool on_ = false;
  uint64_t left_out_ = 0;
  int64_t clocks_differ_ = 0;  // nanoseconds, the steady clock less the library's
};

}  // namespace wick::cuda
