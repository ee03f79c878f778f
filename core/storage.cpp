// Storage and its allocator.
//
// Blocks of 64 KiB and more come from a cache of size classes, for malloc would map and unmap them
// at every call of a model. A class is one of eight equal steps between two powers of two, so a
// block wastes an eighth at most. With what is in use the cache keeps no more bytes than were in
// use at the peak, so that a program that repeats itself gets all its blocks from here and the
// process grows no larger than it had to be; it may always keep kCacheLimit bytes. A block that
// would exceed that goes back to the system.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/tensor.h"

namespace wick {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kCachedFrom = size_t{64} << 10;
constexpr size_t kCachedUpTo = size_t{1} << 30;
constexpr size_t kCacheLimit = size_t{64} << 20;
// Requests beyond this are mistakes (sizes from a broken file, overflowed products).
constexpr size_t kLargestBlock = size_t{1} << 46;

std::atomic<size_t> allocated{0};
std::atomic<size_t> peak{0};
std::atomic<size_t> limit{0};

// The size of the block that serves a request of `bytes`.
size_t blockSize(size_t bytes) {
  bytes = (bytes + kAlignment - 1) & ~(kAlignment - 1);
  if (bytes < kCachedFrom || bytes > kCachedUpTo) return bytes;
  size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

class BlockCache {
 public:
  void* take(size_t block) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<void*>& list = free_[classOf(block)];
    if (list.empty()) return nullptr;
    void* p = list.back();
    list.pop_back();
    held_ -= block;
    return p;
  }
  bool put(void* p, size_t block) noexcept {
    size_t used = allocated.load(std::memory_order_relaxed);
    // Blocks are larger than what was asked for.
    size_t most = peak.load(std::memory_order_relaxed) / 8 * 9;
    size_t room = std::max(kCacheLimit, most > used ? most - used : 0);
    std::lock_guard<std::mutex> lock(mutex_);
    if (held_ + block > room) return false;
    try {
      free_[classOf(block)].push_back(p);
    } catch (const std::bad_alloc&) {
      return false;
    }
    held_ += block;
    return true;
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (std::vector<void*>& list : free_) {
      for (void* p : list) std::free(p);
      list.clear();
    }
    held_ = 0;
  }
  static bool caches(size_t block) { return block >= kCachedFrom && block <= kCachedUpTo; }

 private:
  static size_t classOf(size_t block) {
    size_t log = std::bit_width(block) - 1;
    size_t step = (block - (size_t{1} << log)) >> (log - 3);
    return (log - 16) * 8 + step;
  }
  std::mutex mutex_;
  size_t held_ = 0;
  std::array<std::vector<void*>, 16 * 8> free_;
};

// Never destroyed: tensors of static lifetime are freed after it would be.
BlockCache& cache() {
  static BlockCache* instance = new BlockCache;
  return *instance;
}

void* allocateBlock(size_t bytes) {
  size_t block = blockSize(bytes);
  size_t cap = limit.load(std::memory_order_relaxed);
  size_t now = allocated.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  void* p = nullptr;
  if (bytes <= kLargestBlock && (cap == 0 || now <= cap)) {
    if (BlockCache::caches(block)) p = cache().take(block);
    if (!p) p = std::aligned_alloc(kAlignment, block);
    if (!p) {
      cache().clear();
      p = std::aligned_alloc(kAlignment, block);
    }
  }
  if (!p) {
    allocated.fetch_sub(bytes, std::memory_order_relaxed);
    throwRuntimeError("not enough memory: you tried to allocate {} bytes{}", bytes,
                      cap != 0 && now > cap ? fmt::format(", the limit is {}", cap) : "");
  }
  size_t seen = peak.load(std::memory_order_relaxed);
  while (seen < now && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
  return p;
}

void freeBlock(void* p, size_t bytes) {
  if (!p) return;
  allocated.fetch_sub(bytes, std::memory_order_relaxed);
  size_t block = blockSize(bytes);
  if (!BlockCache::caches(block) || !cache().put(p, block)) std::free(p);
}

}  // namespace

size_t allocatedBytes() {
  return allocated.load(std::memory_order_relaxed);
}
size_t peakAllocatedBytes() {
  return peak.load(std::memory_order_relaxed);
}
void setAllocationLimit(size_t bytes) {
  limit.store(bytes, std::memory_order_relaxed);
}

void checkAllocation(const char* op, size_t bytes) {
  size_t cap = limit.load(std::memory_order_relaxed);
  size_t now = allocated.load(std::memory_order_relaxed);
  WICK_CHECK(cap == 0 || (now <= cap && bytes <= cap - now),
             "{}: not enough memory: you tried to allocate {} bytes, the limit is {}", op, bytes,
             cap);
}

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
