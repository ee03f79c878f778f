#include <atomic>
#include <cstring>

#include "core/allocator.h"
#include "core/error.h"
#include "core/tensor.h"

namespace wick {

namespace {

// There is one CPU: "cpu:0" says the same as "cpu", and tensors report the latter, as PyTorch's do.
// (The devices themselves differ, as they do there.)
//
// Kernels read through data() without asking where it lies, so storages of other devices must not
// exist, and of the meta device none without memory.
void checkDevice(Device device) {
  WICK_CHECK(device.isCpu(), "no allocator for device {}", device.str());
}

}  // namespace

Ref<Storage> Storage::allocate(size_t bytes, Device device) {
  checkDevice(device);
  Ref<Storage> s = makeRef<Storage>();
  if (bytes > 0) s->data_ = allocateBlock(bytes);
  s->bytes_ = bytes;
  return s;
}

Ref<Storage> Storage::borrow(void* data, size_t bytes, std::shared_ptr<const void> owner,
                             Device device, bool writable) {
  if (!data && bytes > 0) {
    throw UsageError(fmt::format("Storage::borrow: expected {} bytes of memory, got null", bytes));
  }
  checkDevice(device);
  Ref<Storage> s = makeRef<Storage>();
  s->data_ = data;
  s->bytes_ = bytes;
  s->writable_ = writable;
  // A block without an owner is still not ours to free.
  s->owner_ = owner ? std::move(owner) : std::make_shared<char>();
  return s;
}

RefCounted* Storage::attachDerived(Ref<RefCounted> object) {
  RefCounted* attached = nullptr;
  if (derived_.compare_exchange_strong(attached, object.get(), std::memory_order_acq_rel)) {
    attached = object.leak();
  }
  return attached;
}

Storage::~Storage() {
  if (RefCounted* derived = derived_.load(std::memory_order_acquire)) derived->release();
  if (!owner_) freeBlock(data_, bytes_);
}

void Storage::resize(size_t bytes) {
  if (bytes <= bytes_) return;
  void* grown = allocateBlock(bytes);
  if (bytes_ > 0) std::memcpy(grown, data_, bytes_);
  if (!owner_) freeBlock(data_, bytes_);
  data_ = grown;
  owner_.reset();
  writable_ = true;
  bytes_ = bytes;
}

}  // namespace wick
