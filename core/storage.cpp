#include <atomic>
#include <mutex>
#include <unordered_map>

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

// How many storages borrow the block at an address. A block that somebody else reads must stay where it is.
class Loans {
 public:
  void add(const void* block) {
    const std::lock_guard lock(mutex_);
    ++counts_[block];
  }
  void remove(const void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(block);
    if (--found->second == 0) counts_.erase(found);
  }
  size_t count(const void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(block);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, size_t> counts_;
};
// Threads may outlive main.
Loans& loans() {
  static Loans& made = *new Loans;
  return made;
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
  loans().add(data);
  return s;
}

Storage::~Storage() {
  // Before the contents it was computed from.
  derived_.clear();
  if (owner_) loans().remove(data_);
  if (owner_ || !data_) return;
  if (device_.isCpu()) {
    freeBlock(data_, bytes_);
  } else if (DeviceBackend* backend = findDeviceBackend(device_.type)) {
    backend->free(device_, data_, bytes_);
  }
}

void Storage::resize(size_t bytes) {
  if (bytes <= bytes_) return;
  if (data_ && loans().count(data_) > (owner_ ? 1 : 0)) {
    throwRuntimeError(
        "Trying to resize storage that is not resizable: its {} bytes are shared with another "
        "library or an array",
        bytes_);
  }
  DeviceBackend& backend = deviceBackend(device_.type);
  void* grown = backend.allocate(device_, bytes);
  if (bytes_ > 0) backend.copyBytes(grown, device_, data_, device_, bytes_);
  if (owner_) {
    loans().remove(data_);
  } else if (data_) {
    backend.free(device_, data_, bytes_);
  }
  data_ = grown;
  owner_.reset();
  writable_ = true;
  bytes_ = bytes;
}

}  // namespace wick
