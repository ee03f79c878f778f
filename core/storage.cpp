#include <atomic>

#include "core/allocator.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/tensor.h"

namespace wick {

namespace {

// There is one CPU: "cpu:0" says the same as "cpu", and tensors report the latter, as PyTorch's do.
// (The devices themselves differ, as they do there.) Other devices have their index.
//
// Kernels for the CPU read through data() without asking where it lies: from now on each call of an
// operator looks where its tensors are.
Device notedPlace(Device device) {
  if (device.isCpu()) [[likely]]
    return Device();
  detail::kinds_in_use.store(true, std::memory_order_relaxed);
  return placeOf(device);
}

}  // namespace

Ref<Storage> Storage::allocate(size_t bytes, Device device) {
  Ref<Storage> s = makeRef<Storage>();
  s->device_ = notedPlace(device);
  if (bytes > 0) {
    s->data_ = s->device_.isCpu() ? allocateBlock(bytes)
                                  : deviceBackend(device.type).allocate(s->device_, bytes);
  }
  s->bytes_ = bytes;
  return s;
}

Ref<Storage> Storage::borrow(void* data, size_t bytes, std::shared_ptr<const void> owner,
                             Device device, bool writable) {
  if (!data && bytes > 0) {
    throw UsageError(fmt::format("Storage::borrow: expected {} bytes of memory, got null", bytes));
  }
  Ref<Storage> s = makeRef<Storage>();
  s->device_ = notedPlace(device);
  s->data_ = data;
  s->bytes_ = bytes;
  s->writable_ = writable;
  // A block without an owner is still not ours to free.
  s->owner_ = owner ? std::move(owner) : std::make_shared<char>();
  return s;
}

Storage::~Storage() {
  // Before the contents it was computed from.
  derived_.clear();
  if (owner_ || !data_) return;
  if (device_.isCpu()) {
    freeBlock(data_, bytes_);
  } else if (DeviceBackend* backend = findDeviceBackend(device_.type)) {
    backend->free(device_, data_, bytes_);
  }
}

void Storage::resize(size_t bytes) {
  if (bytes <= bytes_) return;
  DeviceBackend& backend = deviceBackend(device_.type);
  void* grown = backend.allocate(device_, bytes);
  if (bytes_ > 0) backend.copyBytes(grown, device_, data_, device_, bytes_);
  if (!owner_ && data_) backend.free(device_, data_, bytes_);
  data_ = grown;
  owner_.reset();
  writable_ = true;
  bytes_ = bytes;
}

}  // namespace wick
