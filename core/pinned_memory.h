// Pinned memory: the CPU's, which stays where it is, so that devices copy from and to it while the CPU
// goes on.
//
// Copies between the CPU and a device wait until the CPU's memory may be used again
// (core/device_backend.h), but for those that are made within an UnwaitedCopies from or to pinned
// memory: these are queued only, and whoever reads or writes that memory waits for the device before.
// Such memory may be let go at any time: it is kept until the copies have ended.
#pragma once

#include <cstddef>

#include "core/tensor.h"

namespace wick {

// What gives pinned memory. Thread-safe.
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
  // Throws RuntimeError that names what is missing, or when there is no more.
  virtual void* allocate(size_t bytes) = 0;
  virtual void free(void* memory) noexcept = 0;
  virtual bool holds(const void* memory) noexcept = 0;
};
// Set before anything runs; null takes it away, for tests.
void setPinnedMemory(PinnedMemory* memory);

// False for tensors of other devices, too.
bool isPinned(const Tensor& tensor);
// The tensor itself when its memory is pinned, otherwise a copy whose elements lie in the same order.
// RuntimeError for what is no dense tensor of the CPU, and where no memory can be pinned.
Tensor pinned(const Tensor& tensor);

// While it lives, the calling thread's copies from and to pinned memory are not waited for.
class UnwaitedCopies {
 public:
  explicit UnwaitedCopies(bool on = true);
  ~UnwaitedCopies();
  UnwaitedCopies(const UnwaitedCopies&) = delete;
  UnwaitedCopies& operator=(const UnwaitedCopies&) = delete;
  static bool active();

 private:
  const bool before_;
};

// As moveTo() (core/device_backend.h), but not waited for. What comes from a device to the CPU goes to
// new pinned memory.
Tensor moveUnwaited(const Tensor& tensor, Device device);

}  // namespace wick
