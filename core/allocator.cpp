// Small blocks are lists of blocks of one size, first the thread's own, then everybody's.
//
// Bytes in use are counted in one number, and each thread sets some of them apart: as long as it
// can pay for small blocks from those, and they can take what it frees, it writes nothing that
// others read.
//
// Large blocks are parts of segments, which are mappings. A free neighbour is joined at once, so
// that a segment serves a large tensor after it served several small ones: a program whose batch
// sizes change needs no more segments than the largest batch did. Free blocks are listed by size,
// sixteen lists between two powers of two, and a request is rounded up to the beginning of a list,
// so that the first block of the first list that is not empty fits.
#include "core/allocator.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/budget.h"
#include "core/error.h"
#include "core/large_pages.h"
#include "core/memory_limit.h"
#include "core/tensor.h"
#include "core/unlimited_memory.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, size) ((void)(begin), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(begin, size) ((void)(begin), (void)(size))
#endif

namespace wick {

namespace {

// The limit of a run is reached: of the class that tells so, whoever notices.
template <class... Args>
[[noreturn]] void throwOverLimit(fmt::format_string<Args...> format, Args&&... args) {
  throw RuntimeError(fmt::format(format, std::forward<Args>(args)...), "MemoryError");
}

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;
constexpr size_t kSmallUpTo = size_t{32} << 10;
constexpr size_t kThreadKeeps = size_t{2} << 20;
constexpr size_t kAlwaysKept = size_t{64} << 20;
// Blocks below this share segments of kSharedSegment; others may split each other's.
constexpr size_t kSharedBelow = size_t{2} << 20;
constexpr size_t kSharedSegment = size_t{4} << 20;

// What threads have set apart counts as used here.
std::atomic<size_t> allocated{0};
std::atomic<size_t> peak{0};
std::atomic<size_t> limit{0};
std::atomic<size_t> system_bytes{0};
std::atomic<uint64_t> system_allocations{0};

// Requests beyond what the machine has are mistakes (sizes from a broken file, overflowed
// products). Some systems grant them all the same and kill the process when it writes there.
size_t largestBlock() {
  static const size_t bytes = [] {
    struct sysinfo machine {};
    if (sysinfo(&machine) != 0) return size_t{1} << 46;
    return (machine.totalram + machine.totalswap) * machine.mem_unit;
  }();
  return bytes;
}

size_t roundUp(size_t bytes, size_t step) {
  return (bytes + step - 1) / step * step;
}

constinit thread_local bool unlimited = false;

// What tensors may take: the limit less what is noted besides (core/memory_limit.h).
size_t tensorLimit() {
  const size_t cap = limit.load(std::memory_order_relaxed);
  if (cap == 0 || unlimited) return SIZE_MAX;
  return cap - std::min(cap, static_cast<size_t>(std::max<int64_t>(notedMemory(), 0)));
}

// Whether more is held than may be.
bool holdsTooMuch() {
  const size_t held = system_bytes.load(std::memory_order_relaxed);
  const size_t most = peak.load(std::memory_order_relaxed);
  return held > most + most / 8 && held > allocatedBytes() + kAlwaysKept;
}

void countSystemAllocation(size_t bytes) {
  system_allocations.fetch_add(1, std::memory_order_relaxed);
  system_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

// ---- small blocks

// 64, 128, … 512, then eight sizes between two powers of two.
size_t smallBlockSize(size_t bytes) {
  if (bytes <= 512) return roundUp(bytes, kAlignment);
  return roundUp(bytes, std::bit_floor(bytes - 1) / 8);
}
size_t smallClass(size_t block) {
  if (block <= 512) return block / kAlignment - 1;
  size_t log = static_cast<size_t>(std::bit_width(block - 1)) - 1;
  return (log - 9) * 8 + 7 + (block - (size_t{1} << log)) / (size_t{1} << (log - 3));
}
constexpr size_t kSmallClasses = 56;

// Free blocks of one size, linked through their first bytes.
class BlockList {
 public:
  bool empty() const { return !head_; }
  uint32_t count() const { return count_; }
  void push(void* block) {
    ASAN_UNPOISON_MEMORY_REGION(block, sizeof(void*));
    *static_cast<void**>(block) = head_;
    ASAN_POISON_MEMORY_REGION(block, sizeof(void*));
    head_ = block;
    ++count_;
  }
  void* pop() {
    void* block = head_;
    ASAN_UNPOISON_MEMORY_REGION(block, sizeof(void*));
    head_ = *static_cast<void**>(block);
    ASAN_POISON_MEMORY_REGION(block, sizeof(void*));
    --count_;
    return block;
  }

 private:
  void* head_ = nullptr;
  uint32_t count_ = 0;
};

void giveBackSmall(void* block, size_t size) {
  ASAN_UNPOISON_MEMORY_REGION(block, size);
  std::free(block);
  system_bytes.fetch_sub(size, std::memory_order_relaxed);
}

class SharedSmallBlocks {
 public:
  // Moves up to `count` blocks.
  void take(size_t index, uint32_t count, BlockList& to) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (BlockList& list = lists_[index]; count > 0 && !list.empty(); --count) to.push(list.pop());
  }
  void put(size_t index, size_t size, uint32_t count, BlockList& from) {
    bool keeps = !holdsTooMuch();
    std::lock_guard<std::mutex> lock(mutex_);
    for (; count > 0 && !from.empty(); --count) {
      void* block = from.pop();
      if (keeps) {
        lists_[index].push(block);
        sizes_[index] = size;
      } else {
        giveBackSmall(block, size);
      }
    }
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < kSmallClasses; ++i) {
      while (!lists_[i].empty()) giveBackSmall(lists_[i].pop(), sizes_[i]);
    }
  }

 private:
  std::mutex mutex_;
  std::array<BlockList, kSmallClasses> lists_;
  std::array<size_t, kSmallClasses> sizes_{};
};

// Never destroyed, as the large blocks: tensors of static lifetime are freed after it would be.
SharedSmallBlocks& sharedSmallBlocks() {
  static SharedSmallBlocks* instance = new SharedSmallBlocks;
  return *instance;
}

// Trivial, so that it can be used while other objects of the thread are destroyed.
struct ThreadBlocks {
  enum class State : uint8_t { New, Open, Closed };
  std::array<BlockList, kSmallClasses> lists;
  std::array<uint32_t, kSmallClasses> sizes;
  size_t bytes;
  State state;
  // What is set apart, written by this thread alone.
  std::atomic<size_t> apart;

  void giveUp(size_t index, uint32_t count) {
    if (lists[index].empty()) return;
    count = std::min(count, lists[index].count());
    sharedSmallBlocks().put(index, sizes[index], count, lists[index]);
    bytes -= size_t{count} * sizes[index];
  }
  void giveUpAll() {
    for (size_t i = 0; i < kSmallClasses; ++i) giveUp(i, lists[i].count());
  }
};
constinit thread_local ThreadBlocks thread_blocks{};

// The threads that may have set something apart.
struct OpenThreads {
  std::mutex mutex;
  std::vector<const ThreadBlocks*> list;

  // Of all of them; with the mutex held.
  size_t apart() const {
    size_t sum = 0;
    for (const ThreadBlocks* blocks : list) sum += blocks->apart.load(std::memory_order_relaxed);
    return sum;
  }
  // With the mutex held. What threads do meanwhile may count or not.
  size_t used() const {
    const size_t counted = allocated.load(std::memory_order_relaxed);
    return counted - std::min(counted, apart());
  }
};
OpenThreads& openThreads() {
  static OpenThreads* instance = new OpenThreads;
  return *instance;
}

struct AtThreadEnd {
  ~AtThreadEnd() {
    ThreadBlocks& blocks = thread_blocks;
    blocks.giveUpAll();
    blocks.state = ThreadBlocks::State::Closed;
    OpenThreads& open = openThreads();
    std::lock_guard lock(open.mutex);
    std::erase(open.list, &blocks);
    allocated.fetch_sub(blocks.apart.exchange(0), std::memory_order_relaxed);
  }
};

void open(ThreadBlocks& blocks) {
  {
    OpenThreads& open = openThreads();
    std::lock_guard lock(open.mutex);
    open.list.push_back(&blocks);
  }
  thread_local AtThreadEnd at_end;
  // Its construction is what counts.
  (void)&at_end;
  blocks.state = ThreadBlocks::State::Open;
}

// How much a thread sets apart at a time, and the most that it keeps apart.
constexpr size_t kApart = size_t{256} << 10;
constexpr size_t kMostApart = 2 * kApart;

void notePeak(size_t used) {
  size_t seen = peak.load(std::memory_order_relaxed);
  while (seen < used && !peak.compare_exchange_weak(seen, used, std::memory_order_relaxed)) {
  }
}

// Whether so many more bytes may be used; then they are counted.
bool countUsed(size_t bytes) {
  ThreadBlocks& blocks = thread_blocks;
  const size_t cap = tensorLimit();
  const bool small = bytes <= kSmallUpTo && blocks.state != ThreadBlocks::State::Closed;
  const size_t apart = blocks.apart.load(std::memory_order_relaxed);
  size_t counted = allocated.load(std::memory_order_relaxed);
  // What is apart is counted already, so that the limit holds when the count is below.
  if (small && bytes <= apart && counted <= cap) {
    blocks.apart.store(apart - bytes, std::memory_order_relaxed);
    notePeak(counted - std::min(counted, apart - bytes));
    return true;
  }
  if (bytes > cap || counted + kApart > cap - bytes) {
    // Near the limit every byte is counted.
    OpenThreads& open = openThreads();
    std::lock_guard lock(open.mutex);
    const size_t used = open.used();
    if (bytes > cap || used > cap - bytes) return false;
    allocated.fetch_add(bytes, std::memory_order_relaxed);
    notePeak(used + bytes);
    return true;
  }
  if (small && blocks.state == ThreadBlocks::State::New) open(blocks);
  const size_t more = small ? kApart : 0;
  counted = allocated.fetch_add(bytes + more, std::memory_order_relaxed) + bytes + more;
  if (more != 0) blocks.apart.store(apart + more, std::memory_order_relaxed);
  notePeak(counted - std::min(counted, apart + more));
  return true;
}

// Whether `bytes` more would be within the limit of the process.
bool mayBeUsed(size_t bytes) {
  const size_t cap = tensorLimit();
  const auto fits = [&](size_t used) { return bytes <= cap && used <= cap - bytes; };
  return fits(allocated.load(std::memory_order_relaxed)) || fits(allocatedBytes());
}

void countFreed(size_t bytes) {
  ThreadBlocks& blocks = thread_blocks;
  if (bytes > kSmallUpTo || blocks.state != ThreadBlocks::State::Open) {
    allocated.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  size_t apart = blocks.apart.load(std::memory_order_relaxed) + bytes;
  if (apart > kMostApart) {
    allocated.fetch_sub(apart - kApart, std::memory_order_relaxed);
    apart = kApart;
  }
  blocks.apart.store(apart, std::memory_order_relaxed);
}

void* takeSmall(size_t bytes) {
  const size_t size = smallBlockSize(bytes);
  const size_t index = smallClass(size);
  ThreadBlocks& blocks = thread_blocks;
  BlockList& list = blocks.lists[index];
  if (list.empty()) {
    const auto batch = static_cast<uint32_t>(std::clamp<size_t>(size_t{4096} / size, 1, 16));
    sharedSmallBlocks().take(index, batch, list);
    blocks.sizes[index] = static_cast<uint32_t>(size);
    blocks.bytes += list.count() * size;
    // What is left of them goes back when the thread ends, also if it never frees anything.
    if (blocks.state == ThreadBlocks::State::New && !list.empty()) open(blocks);
  }
  void* block = nullptr;
  if (!list.empty()) {
    block = list.pop();
    blocks.bytes -= size;
  } else {
    block = std::aligned_alloc(kAlignment, size);
    if (!block) return nullptr;
    countSystemAllocation(size);
#if defined(__SANITIZE_ADDRESS__)
    // Kept blocks hang together by poisoned memory, where LeakSanitizer does not look. Who forgets
    // a tensor's memory forgets the Storage that owns it, which is found.
    __lsan_ignore_object(block);
#endif
    ASAN_POISON_MEMORY_REGION(block, size);
  }
  if (blocks.state == ThreadBlocks::State::Closed) blocks.giveUpAll();
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

void putSmall(void* block, size_t bytes) {
  const size_t size = smallBlockSize(bytes);
  const size_t index = smallClass(size);
  ThreadBlocks& blocks = thread_blocks;
  if (blocks.state == ThreadBlocks::State::New) open(blocks);
  ASAN_POISON_MEMORY_REGION(block, size);
  blocks.lists[index].push(block);
  blocks.sizes[index] = static_cast<uint32_t>(size);
  blocks.bytes += size;
  if (blocks.state == ThreadBlocks::State::Closed) {
    blocks.giveUpAll();
  } else if (blocks.bytes > kThreadKeeps) [[unlikely]] {
    blocks.giveUp(index, blocks.lists[index].count() / 2 + 1);
  }
}

// ---- large blocks

// Stands before the memory that it describes.
struct alignas(kAlignment) Block {
  size_t size;    // with this header
  Block* before;  // in memory, in the same segment
  Block* after;
  Block* next;  // in the list of free blocks of this size
  Block* previous;
  // While the block is a whole free segment: those that became so later and earlier.
  Block* younger;
  Block* older;
  bool free;
  bool shares;  // its segment

  void* memory() { return this + 1; }
  bool isSegment() const { return !before && !after; }
};
static_assert(sizeof(Block) == kAlignment);

// What one block leaves of another is listed when it is at least this large.
constexpr size_t kSmallestRest = kPage;
constexpr size_t kFirstLog = 12;
constexpr size_t kLists = (48 - kFirstLog) * 16;

size_t largeBlockSize(size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  bytes += kAlignment;  // poisoned, between this block and the next one
#endif
  bytes = roundUp(bytes + sizeof(Block), kAlignment);
  return roundUp(bytes, std::bit_floor(bytes) / 16);
}
size_t listOf(size_t size) {
  size_t log = static_cast<size_t>(std::bit_width(size)) - 1;
  return (log - kFirstLog) * 16 + (size >> (log - 4)) % 16;
}

// Free blocks by size.
class FreeBlocks {
 public:
  void add(Block* block) {
    size_t index = listOf(block->size);
    block->previous = nullptr;
    block->next = lists_[index];
    if (block->next) block->next->previous = block;
    lists_[index] = block;
    present_[index / 64] |= uint64_t{1} << index % 64;
  }
  void remove(Block* block) {
    size_t index = listOf(block->size);
    (block->previous ? block->previous->next : lists_[index]) = block->next;
    if (block->next) block->next->previous = block->previous;
    if (!lists_[index]) present_[index / 64] &= ~(uint64_t{1} << index % 64);
  }
  // A block of at least `size`, which begins a list, or null.
  Block* find(size_t size) const {
    size_t index = listOf(size);
    size_t word = index / 64;
    uint64_t bits = present_[word] & ~uint64_t{0} << index % 64;
    while (bits == 0) {
      if (++word == present_.size()) return nullptr;
      bits = present_[word];
    }
    return lists_[word * 64 + static_cast<size_t>(std::countr_zero(bits))];
  }

 private:
  std::array<Block*, kLists> lists_{};
  std::array<uint64_t, kLists / 64> present_{};
};

// The size of a segment for one block: whole huge pages, unless that wastes more than an eighth of
// the block.
size_t segmentSize(size_t block) {
  const size_t huge = roundUp(block, kHugePage);
  return huge - block <= block / 8 ? huge : roundUp(block, kPage);
}

// Null when the system has no more.
//
// A segment begins with a huge page and has as many as it can hold: the first call of a program
// writes memory that it has just been given, and page faults were most of what it cost beyond later
// calls. What is behind the last whole huge page comes in small pages, so nothing is wasted there.
void* mapSegment(size_t size) {
  const size_t mapped = size + (size < kHugePage ? 0 : kHugePage);
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (size < kHugePage) return memory;
  char* begin = static_cast<char*>(memory);
  char* aligned = begin + (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (aligned != begin) munmap(begin, static_cast<size_t>(aligned - begin));
  char* end = begin + mapped;
  if (aligned + size != end) munmap(aligned + size, static_cast<size_t>(end - aligned) - size);
  adviseLargePages(aligned, size);
  return aligned;
}

class LargeBlocks {
 public:
  // Null when the system has no more.
  void* take(size_t bytes) {
    const size_t size = largeBlockSize(bytes);
    const bool shares = size < kSharedBelow;
    std::lock_guard<std::mutex> lock(mutex_);
    Block* block = free_[shares].find(size);
    if (block) {
      unlist(block);
    } else {
      block = newSegment(shares ? kSharedSegment : segmentSize(size), shares);
      if (!block) return nullptr;
    }
    split(block, size);
    block->free = false;
    ASAN_UNPOISON_MEMORY_REGION(block->memory(), bytes);
    return block->memory();
  }
  void put(void* memory) {
    Block* block = static_cast<Block*>(memory) - 1;
    std::lock_guard<std::mutex> lock(mutex_);
    ASAN_POISON_MEMORY_REGION(memory, block->size - sizeof(Block));
    if (block->after && block->after->free) {
      unlist(block->after);
      absorbNext(block);
    }
    if (block->before && block->before->free) {
      block = block->before;
      unlist(block);
      absorbNext(block);
    }
    list(block);
    while (oldest_ && holdsTooMuch()) releaseOldest();
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (oldest_) releaseOldest();
  }

 private:
  void list(Block* block) {
    block->free = true;
    free_[block->shares].add(block);
    if (!block->isSegment()) return;
    block->younger = nullptr;
    block->older = youngest_;
    (youngest_ ? youngest_->younger : oldest_) = block;
    youngest_ = block;
  }
  void unlist(Block* block) {
    free_[block->shares].remove(block);
    if (!block->isSegment()) return;
    (block->older ? block->older->younger : oldest_) = block->younger;
    (block->younger ? block->younger->older : youngest_) = block->older;
  }
  // Joins a block that is not listed with the one behind it, neither of them listed.
  static void absorbNext(Block* block) {
    Block* next = block->after;
    block->size += next->size;
    block->after = next->after;
    if (block->after) block->after->before = block;
    ASAN_POISON_MEMORY_REGION(next, sizeof(Block));
  }
  // Lists what a block has beyond `size`.
  void split(Block* block, size_t size) {
    if (block->size < size + kSmallestRest) return;
    auto* rest = reinterpret_cast<Block*>(reinterpret_cast<char*>(block) + size);
    ASAN_UNPOISON_MEMORY_REGION(rest, sizeof(Block));
    *rest = Block{};
    rest->size = block->size - size;
    rest->shares = block->shares;
    rest->before = block;
    rest->after = block->after;
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->size = size;
    list(rest);
  }
  Block* newSegment(size_t size, bool shares) {
    // What is kept and was of no use here goes first when there would be too much.
    countSystemAllocation(size);
    while (oldest_ && holdsTooMuch()) releaseOldest();
    void* memory = mapSegment(size);
    while (!memory && oldest_) {
      releaseOldest();
      memory = mapSegment(size);
    }
    if (!memory) {
      system_bytes.fetch_sub(size, std::memory_order_relaxed);
      return nullptr;
    }
    Block* block = new (memory) Block{};
    block->size = size;
    block->shares = shares;
    ASAN_POISON_MEMORY_REGION(block->memory(), size - sizeof(Block));
    return block;
  }
  void releaseOldest() {
    Block* segment = oldest_;
    unlist(segment);
    size_t size = segment->size;
    ASAN_UNPOISON_MEMORY_REGION(segment, size);
    munmap(segment, size);
    system_bytes.fetch_sub(size, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::array<FreeBlocks, 2> free_;
  Block* oldest_ = nullptr;  // of the segments that are free as a whole
  Block* youngest_ = nullptr;
};

LargeBlocks& largeBlocks() {
  static LargeBlocks* instance = new LargeBlocks;
  return *instance;
}

void* takeBlock(size_t bytes) {
  if (bytes > kSmallUpTo) return largeBlocks().take(bytes);
  void* block = takeSmall(bytes);
  if (block) return block;
  largeBlocks().clear();
  return takeSmall(bytes);
}

}  // namespace

void* allocateBlock(size_t bytes) {
  Budget* const budget = currentBudget();
  if (budget && budget->used() > budget->memoryLimit() -
                                     static_cast<int64_t>(std::min<size_t>(bytes, INT64_MAX))) {
    throwOverLimit("not enough memory: you tried to allocate {} bytes, the run's limit is {}",
                   bytes, budget->memoryLimit());
  }
  void* block = nullptr;
  const bool allowed = bytes <= largestBlock() && countUsed(bytes);
  if (allowed) {
    block = takeBlock(bytes);
    if (!block) countFreed(bytes);
  }
  if (!block) {
    const size_t cap = limit.load(std::memory_order_relaxed);
    throwRuntimeError("not enough memory: you tried to allocate {} bytes{}", bytes,
                      cap != 0 && !allowed ? fmt::format(", the limit is {}", cap) : "");
  }
  if (budget) budget->charge(static_cast<int64_t>(bytes));
  return block;
}

void freeBlock(void* block, size_t bytes) noexcept {
  if (!block) return;
  countFreed(bytes);
  if (Budget* budget = currentBudget()) budget->charge(-static_cast<int64_t>(bytes));
  if (bytes > kSmallUpTo) {
    largeBlocks().put(block);
  } else {
    putSmall(block, bytes);
  }
}

AllocatorStatistics allocatorStatistics() {
  AllocatorStatistics s;
  s.system_allocations = system_allocations.load(std::memory_order_relaxed);
  s.system_bytes = system_bytes.load(std::memory_order_relaxed);
  const size_t used = allocatedBytes();
  s.kept_bytes = s.system_bytes > used ? s.system_bytes - used : 0;
  return s;
}

void releaseKeptMemory() {
  thread_blocks.giveUpAll();
  sharedSmallBlocks().clear();
  largeBlocks().clear();
}

size_t allocatedBytes() {
  OpenThreads& open = openThreads();
  std::lock_guard lock(open.mutex);
  return open.used();
}
size_t countedBytes() {
  return allocatedBytes() + static_cast<size_t>(std::max<int64_t>(notedMemory(), 0));
}
size_t peakAllocatedBytes() {
  return peak.load(std::memory_order_relaxed);
}
void setAllocationLimit(size_t bytes) {
  limit.store(bytes, std::memory_order_relaxed);
}

void checkAllocation(const char* op, size_t bytes) {
  const size_t cap = limit.load(std::memory_order_relaxed);
  const bool fits = bytes <= largestBlock() && (cap == 0 || mayBeUsed(bytes));
  WICK_CHECK(fits, "{}: not enough memory: you tried to allocate {} bytes, the limit is {}", op,
             bytes, cap == 0 ? largestBlock() : cap);
  const Budget* budget = currentBudget();
  if (budget && budget->used() > budget->memoryLimit() - static_cast<int64_t>(bytes)) {
    throwOverLimit("{}: not enough memory: you tried to allocate {} bytes, the run's limit is {}",
                   op, bytes, budget->memoryLimit());
  }
}

UnlimitedMemoryScope::UnlimitedMemoryScope() : before_(std::exchange(unlimited, true)) {}
UnlimitedMemoryScope::~UnlimitedMemoryScope() {
  unlimited = before_;
}

bool memoryExceeded() {
  // What is noted may exceed the limit alone, while there is no tensor at all.
  const size_t cap = limit.load(std::memory_order_relaxed);
  if (cap == 0 || unlimited) return false;
  return notedMemory() > static_cast<int64_t>(std::min<size_t>(cap, INT64_MAX)) || !mayBeUsed(0);
}

void throwMemoryExceeded() {
  throw RuntimeError(fmt::format("not enough memory: the limit is {} bytes",
                                 limit.load(std::memory_order_relaxed)),
                     "MemoryError");
}

}  // namespace wick
