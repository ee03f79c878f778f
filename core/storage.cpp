#include <atomic>
#include <cstring>

#include "core/allocator.h"
#include "core/tensor.h"

namespace wick {

Ref<Storage> Storage::allocate(size_t bytes, Device device) {
  // Also of the meta device: kernels read through data() without asking where it lies, so a storage
  // without memory must not exist.
  WICK_CHECK(device.isCpu(), "no allocator for device {}", device.str());
  Ref<Storage> s = makeRef<Storage>();
  s->device_ = device;
  if (bytes > 0) s->data_ = allocateBlock(bytes);
  s->bytes_ = bytes;
  return s;
}

Ref<Storage> Storage::borrow(void* data, size_t bytes, std::shared_ptr<const void> owner,
                             Device device, bool writable) {
  Ref<Storage> s = makeRef<Storage>();
  s->data_ = data;
  s->bytes_ = bytes;
  s->device_ = device;
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
  if (!owner_ && device_.isCpu()) freeBlock(data_, bytes_);
}

void Storage::resize(size_t bytes) {
  if (bytes <= bytes_) return;
  WICK_CHECK(!device_.isCuda(), "resize: no allocator for device {}", device_.str());
  if (device_.isCpu()) {
    void* grown = allocateBlock(bytes);
    if (bytes_ > 0) std::memcpy(grown, data_, bytes_);
    if (!owner_) freeBlock(data_, bytes_);
    data_ = grown;
    owner_.reset();
    writable_ = true;
  }
  bytes_ = bytes;
}

}  // namespace wick
