#include "runtime/cuda/pinned.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/pinned_memory.h"
#include "runtime/cuda/device.h"

namespace wick::cuda {

namespace {

constexpr size_t kLeast = 4096;
constexpr size_t kLargest = size_t{1} << 46;

class PinnedBlocks : public PinnedMemory {
 public:
  void* allocate(size_t bytes) override {
    WICK_CHECK(bytes <= kLargest, "pin_memory: tried to allocate {} bytes", bytes);
    const size_t size = std::bit_ceil(std::max(bytes, kLeast));
    // Throws where there is no driver or no device. Memory can be used by all of them.
    enter({DeviceType::CUDA, -1});
    std::lock_guard lock(mutex_);
    beginGeneration();
    collect();
    if (void* const kept = takeFree(size)) return kept;
    void* memory = nullptr;
    Result result = ask(&memory, size);
    if (result == kOutOfMemory) {
      releaseFree();
      result = ask(&memory, size);
    }
    check(result, "allocating pinned memory");
    statistics_.reserved += size;
    statistics_.allocated += size;
    blocks_.emplace(reinterpret_cast<uintptr_t>(memory), Block{size, true, {}});
    any_.store(true, std::memory_order_release);
    return memory;
  }

  void free(void* memory) noexcept override {
    std::lock_guard lock(mutex_);
    const auto it = blocks_.find(reinterpret_cast<uintptr_t>(memory));
    // Unknown: of a driver that is gone.
    if (it == blocks_.end() || generation_ != driverGeneration()) return;
    it->second.used = false;
    if (it->second.copies.empty()) {
      keep(it->first, it->second);
    } else {
      waiting_.push_back(it->first);
    }
  }

  bool holds(const void* memory) noexcept override {
    if (!any_.load(std::memory_order_acquire)) return false;
    std::lock_guard lock(mutex_);
    const auto it = find(memory);
    return it != blocks_.end() && it->second.used && generation_ == driverGeneration();
  }

  void noteUse(const void* memory, Stream stream) {
    std::lock_guard lock(mutex_);
    const auto it = find(memory);
    if (it == blocks_.end()) return;
    std::vector<Event>& copies = it->second.copies;
    dropReached(copies);
    constexpr unsigned kWithoutTime = 2;
    Event event = nullptr;
    if (driver().createEvent(&event, kWithoutTime) == 0) {
      if (driver().recordEvent(event, stream) == 0) return copies.push_back(event);
      driver().destroyEvent(event);
    }
    check(driver().synchronizeStream(stream), "waiting for a copy");
  }

  void release() noexcept {
    std::lock_guard lock(mutex_);
    if (generation_ != driverGeneration()) return;
    collect();
    releaseFree();
  }

  PinnedStatistics statistics() {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  struct Block {
    size_t size;
    bool used;
    std::vector<Event> copies;  // behind those that may not have ended
  };
  using Blocks = std::map<uintptr_t, Block>;

  // What another driver gave is gone with it.
  void beginGeneration() {
    if (generation_ == driverGeneration()) return;
    blocks_.clear();
    free_.clear();
    waiting_.clear();
    statistics_ = {};
    generation_ = driverGeneration();
  }
  Blocks::iterator find(const void* memory) {
    const auto at = reinterpret_cast<uintptr_t>(memory);
    auto it = blocks_.upper_bound(at);
    if (it == blocks_.begin()) return blocks_.end();
    --it;
    return at < it->first + it->second.size ? it : blocks_.end();
  }
  Result ask(void** memory, size_t size) {
    constexpr unsigned kPortable = 1;
    ++statistics_.driver_calls;
    return driver().allocateHost(memory, size, kPortable);
  }
  void* takeFree(size_t size) {
    std::vector<uintptr_t>& kept = free_[size];
    if (kept.empty()) return nullptr;
    const uintptr_t at = kept.back();
    kept.pop_back();
    blocks_.at(at).used = true;
    statistics_.allocated += size;
    ++statistics_.reused;
    return reinterpret_cast<void*>(at);
  }
  void keep(uintptr_t at, const Block& block) {
    statistics_.allocated -= block.size;
    free_[block.size].push_back(at);
  }
  static void dropReached(std::vector<Event>& copies) {
    std::erase_if(copies, [](Event event) {
      if (driver().queryEvent(event) == kNotReady) return false;
      driver().destroyEvent(event);
      return true;
    });
  }
  void collect() {
    std::erase_if(waiting_, [&](uintptr_t at) {
      Block& block = blocks_.at(at);
      dropReached(block.copies);
      if (!block.copies.empty()) return false;
      keep(at, block);
      return true;
    });
  }
  void releaseFree() {
    for (auto& [size, kept] : free_) {
      for (const uintptr_t at : kept) {
        driver().freeHost(reinterpret_cast<void*>(at));
        statistics_.reserved -= size;
        blocks_.erase(at);
      }
      kept.clear();
    }
  }

  std::mutex mutex_;
  std::atomic<bool> any_{false};
  uint64_t generation_ = 0;
  Blocks blocks_;
  std::unordered_map<size_t, std::vector<uintptr_t>> free_;  // by size
  std::vector<uintptr_t> waiting_;                           // given back, with copies queued
  PinnedStatistics statistics_;
};

// Memory may be given back while the process ends.
PinnedBlocks& blocks() {
  static PinnedBlocks& all = *new PinnedBlocks;
  return all;
}

const struct Registration {
  Registration() { setPinnedMemory(&blocks()); }
} registration;

}  // namespace

PinnedStatistics pinnedStatistics() {
  return blocks().statistics();
}
bool isPinnedMemory(const void* memory) noexcept {
  return blocks().holds(memory);
}
void notePinnedUse(const void* memory, Stream stream) {
  blocks().noteUse(memory, stream);
}
void releasePinned() noexcept {
  blocks().release();
}

}  // namespace wick::cuda
