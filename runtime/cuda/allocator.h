// Memory of one CUDA device, kept between uses.
//
// Blocks belong to the stream that they were allocated for: what is freed is used again at once for
// the same stream, because work there happens in order. What is freed while another stream is used
// is kept until that stream has done its work so far; the stream that all threads share and those
// of captures wait for others, or others for them, anyway. Small blocks are cut from segments of 2 MiB,
// larger ones from segments of 20 MiB or their own. Free neighbours are joined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/driver.h"

namespace wick::cuda {

struct AllocatorStatistics {
  size_t allocated = 0;  // bytes of blocks in use
  size_t peak_allocated = 0;
  size_t reserved = 0;  // bytes that the driver has given and not got back
  size_t peak_reserved = 0;
  uint64_t driver_calls = 0;  // how often the driver was asked for memory
  size_t limit = 0;           // of what is reserved; 0: none
};

// Thread-safe. The device's context must be the thread's.
class Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // `bytes` > 0, aligned to 512. Throws RuntimeError when neither the driver nor what is kept has
  // room, or the limit is reached.
  Address allocate(size_t bytes, Stream stream);
  // `user`: the stream whose work may still use it.
  void free(Address address, Stream user) noexcept;
  // Gives segments that are free as a whole back to the driver. They must not be in use by queued
  // work: it waits for the device first.
  void releaseKept() noexcept;

  // Segments of a pinned stream are never given back: captured work refers to their memory.
  void pin(Stream stream);
  void unpin(Stream stream);

  // The stream and the one that all threads share do not wait for each other.
  void noteApart(Stream stream);

  AllocatorStatistics statistics() const;
  void resetPeaks();
  void setLimit(size_t bytes);

 private:
  struct Block {
    Address address;
    size_t size;
    Stream stream;
    bool small;
    bool free = true;
    Block* before = nullptr;  // in the same segment
    Block* after = nullptr;
  };
  struct BySize {
    bool operator()(const Block* a, const Block* b) const;
  };
  using FreeBlocks = std::set<Block*, BySize>;

  Block* findFree(size_t size, Stream stream, bool small);
  Block* newSegment(size_t size, Stream stream, bool small);
  void split(Block* block, size_t size);
  void release(Block* segment) noexcept;
  void releaseAll() noexcept;
  void reclaim(Block* block) noexcept;
  void collect() noexcept;

  struct Waiting {
    Block* block;
    Event event;
  };
  std::vector<Waiting> waiting_;  // freed, and perhaps in use
  mutable std::mutex mutex_;
  std::unordered_map<Address, std::unique_ptr<Block>> blocks_;
  FreeBlocks free_;
  std::set<Stream> pinned_;
  std::set<Stream> apart_;  // noteApart()
  AllocatorStatistics statistics_;
};

}  // namespace wick::cuda
