#include "runtime/cuda/allocator.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"

namespace wick::cuda {

namespace {

constexpr size_t kUnit = 512;
constexpr size_t kSmallUpTo = size_t{1} << 20;
constexpr size_t kSmallSegment = size_t{2} << 20;
constexpr size_t kLargeSegment = size_t{20} << 20;
constexpr size_t kSharedBelow = size_t{10} << 20;  // larger blocks get segments of their own
constexpr size_t kRoundSegment = size_t{2} << 20;
constexpr size_t kLargest = size_t{1} << 48;

size_t roundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

bool Allocator::BySize::operator()(const Block* a, const Block* b) const {
  return std::tie(a->small, a->stream, a->size, a->address) <
         std::tie(b->small, b->stream, b->size, b->address);
}

Allocator::Block* Allocator::findFree(size_t size, Stream stream, bool small) {
  Block wanted{0, size, stream, small};
  const auto it = free_.lower_bound(&wanted);
  if (it == free_.end() || (*it)->stream != stream || (*it)->small != small) return nullptr;
  // A large segment for a much smaller block would be lost for those that need it.
  if (!small && size >= kSharedBelow && (*it)->size >= size + kLargeSegment) return nullptr;
  Block* found = *it;
  free_.erase(it);
  return found;
}

Allocator::Block* Allocator::newSegment(size_t size, Stream stream, bool small) {
  const size_t bytes = small                 ? kSmallSegment
                       : size < kSharedBelow ? kLargeSegment
                                             : roundUp(size, kRoundSegment);
  const auto fits = [&] {
    return statistics_.limit == 0 ||
           (bytes <= statistics_.limit && statistics_.reserved <= statistics_.limit - bytes);
  };
  Address address = 0;
  const auto ask = [&] {
    if (!fits()) return kOutOfMemory;
    ++statistics_.driver_calls;
    return driver().allocate(&address, bytes);
  };
  Result result = ask();
  if (result == kOutOfMemory) {
    releaseAll();
    result = ask();
  }
  if (result == kOutOfMemory) {
    throwRuntimeError(
        "CUDA out of memory: tried to allocate {} bytes; {} bytes are in use and {} reserved{}",
        size, statistics_.allocated, statistics_.reserved,
        statistics_.limit == 0 ? "" : fmt::format(", the limit is {}", statistics_.limit));
  }
  check(result, "allocating memory");
  statistics_.reserved += bytes;
  statistics_.peak_reserved = std::max(statistics_.peak_reserved, statistics_.reserved);
  auto block = std::make_unique<Block>(Block{address, bytes, stream, small});
  Block* made = block.get();
  blocks_.emplace(address, std::move(block));
  return made;
}

void Allocator::split(Block* block, size_t size) {
  const size_t least = block->small ? kUnit : kSmallUpTo;
  if (block->size < size + least) return;
  auto rest = std::make_unique<Block>(
      Block{block->address + size, block->size - size, block->stream, block->small});
  rest->before = block;
  rest->after = block->after;
  if (rest->after) rest->after->before = rest.get();
  block->after = rest.get();
  block->size = size;
  free_.insert(rest.get());
  blocks_.emplace(rest->address, std::move(rest));
}

Address Allocator::allocate(size_t bytes, Stream stream) {
  WICK_CHECK(bytes <= kLargest, "CUDA out of memory: tried to allocate {} bytes", bytes);
  const size_t size = roundUp(bytes, kUnit);
  const bool small = size <= kSmallUpTo;
  std::lock_guard lock(mutex_);
  if (!waiting_.empty()) [[unlikely]]
    collect();
  Block* block = findFree(size, stream, small);
  if (!block) block = newSegment(size, stream, small);
  split(block, size);
  block->free = false;
  statistics_.allocated += block->size;
  statistics_.peak_allocated = std::max(statistics_.peak_allocated, statistics_.allocated);
  return block->address;
}

void Allocator::free(Address address, Stream user) noexcept {
  std::lock_guard lock(mutex_);
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return;
  Block* block = it->second.get();
  statistics_.allocated -= block->size;
  const auto waitsForShared = [&](Stream s) { return apart_.count(s) == 0; };
  const bool in_order = user == block->stream || (!user && waitsForShared(block->stream)) ||
                        (!block->stream && waitsForShared(user)) || pinned_.count(user) != 0 ||
                        pinned_.count(block->stream) != 0;
  if (in_order) return reclaim(block);
  constexpr unsigned kWithoutTime = 2;
  Event event = nullptr;
  if (driver().createEvent(&event, kWithoutTime) == 0) {
    if (driver().recordEvent(event, user) == 0) return waiting_.push_back({block, event});
    driver().destroyEvent(event);
  }
  driver().synchronizeStream(user);
  reclaim(block);
}

// Takes back what streams have done with.
void Allocator::collect() noexcept {
  std::erase_if(waiting_, [&](const Waiting& w) {
    if (driver().queryEvent(w.event) == kNotReady) return false;
    driver().destroyEvent(w.event);
    reclaim(w.block);
    return true;
  });
}

void Allocator::reclaim(Block* block) noexcept {
  const auto absorbNext = [&](Block* first) {
    Block* next = first->after;
    first->size += next->size;
    first->after = next->after;
    if (first->after) first->after->before = first;
    blocks_.erase(next->address);
  };
  block->free = true;
  if (block->after && block->after->free) {
    free_.erase(block->after);
    absorbNext(block);
  }
  if (block->before && block->before->free) {
    block = block->before;
    free_.erase(block);
    absorbNext(block);
  }
  free_.insert(block);
}

void Allocator::release(Block* segment) noexcept {
  driver().free(segment->address);
  statistics_.reserved -= segment->size;
  free_.erase(segment);
  blocks_.erase(segment->address);
}

void Allocator::releaseAll() noexcept {
  driver().synchronizeContext();
  collect();
  for (auto it = free_.begin(); it != free_.end();) {
    Block* block = *it++;
    const bool whole = !block->before && !block->after;
    if (whole && pinned_.count(block->stream) == 0) release(block);
  }
}

void Allocator::releaseKept() noexcept {
  std::lock_guard lock(mutex_);
  releaseAll();
}

void Allocator::pin(Stream stream) {
  std::lock_guard lock(mutex_);
  pinned_.insert(stream);
}
void Allocator::unpin(Stream stream) {
  std::lock_guard lock(mutex_);
  pinned_.erase(stream);
}

void Allocator::noteApart(Stream stream) {
  std::lock_guard lock(mutex_);
  apart_.insert(stream);
}

AllocatorStatistics Allocator::statistics() const {
  std::lock_guard lock(mutex_);
  return statistics_;
}
void Allocator::resetPeaks() {
  std::lock_guard lock(mutex_);
  statistics_.peak_allocated = statistics_.allocated;
  statistics_.peak_reserved = statistics_.reserved;
}
void Allocator::setLimit(size_t bytes) {
  std::lock_guard lock(mutex_);
  statistics_.limit = bytes;
}

}  // namespace wick::cuda
