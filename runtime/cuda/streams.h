// Streams and events that programs make: torch.cuda.Stream and torch.cuda.Event.
#pragma once

#include <mutex>

#include "core/ref.h"
#include "runtime/cuda/device.h"

namespace wick::cuda {

inline constexpr const char* kStreamClass = "__torch__.torch.classes.cuda.Stream";
inline constexpr const char* kEventClass = "__torch__.torch.classes.cuda.Event";

// A stream of a device. The streams are the device's (CudaDevice::nextStream()); this is which one.
class HeldStream final : public RefCounted {
 public:
  HeldStream(int device, Stream stream, int64_t number)
      : device(device), stream(stream), number(number) {}
  const int device;
  const Stream stream;   // null: the one that all threads share
  const int64_t number;  // 0 for that one
};

// A point in the work of a stream, once it was recorded. Thread-safe.
class HeldEvent final : public RefCounted {
 public:
  HeldEvent(bool timed, bool sleeps) : timed_(timed), sleeps_(sleeps) {}
  ~HeldEvent() override;

  // RuntimeError when it was recorded on another device before.
  void record(const HeldStream& stream);
  // Lets the stream wait for it. Nothing, and true, and at once before it was recorded.
  void waitOn(const HeldStream& stream) const;
  bool isDone() const;
  void synchronize() const;
  // Milliseconds. RuntimeError unless both are timed, recorded and done.
  double elapsedUntil(const HeldEvent& end) const;

 private:
  Event recorded() const;
  mutable std::mutex mutex_;
  const bool timed_;
  const bool sleeps_;  // who waits for it leaves the processor to others
  Event event_ = nullptr;
  int device_ = -1;
};

}  // namespace wick::cuda
