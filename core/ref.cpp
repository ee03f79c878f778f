// Pinned objects. The references to an object are those that its count says and those that its
// stripes say. To unpin it each stripe is closed by an exchange that takes out what it held, and
// the sum moves into the count together with the end of the pin. A thread that still believes the
// object pinned finds its stripe closed and counts in the count. Each of these steps is one atomic
// read-modify-write, so no reference is counted twice or lost, and none needs to wait for another.
#include "core/ref.h"

#include <mutex>
#include <vector>

#include "core/stripes.h"

namespace wick {

struct RefCounted::Stripes {
  static constexpr int64_t kClosed = INT64_MIN / 2;
  static bool isClosed(int64_t references) { return references < kClosed / 2; }

  struct alignas(kCacheLine) Cell {
    std::atomic<int64_t> references{kClosed};
  };
  std::array<Cell, kStripes> cells;
  uint32_t pins = 0;  // belongs to whoever holds pin_mutex
};

namespace {

// Of all objects: they are pinned when a module gets its second thread, and unpinned when it ends.
constinit std::mutex pin_mutex;

// Nested deletes that may recurse before the rest waits in the queue.
constexpr uint32_t kMaxNestedDeletes = 64;

constinit thread_local uint32_t nested_deletes = 0;
constinit thread_local std::vector<const RefCounted*>* waiting = nullptr;

}  // namespace

void RefCounted::destroy(const RefCounted* object) {
  if (nested_deletes >= kMaxNestedDeletes) {
    // Owned by the outermost delete on this thread, which is still running.
    if (!waiting) waiting = new std::vector<const RefCounted*>;
    waiting->push_back(object);
    return;
  }
  ++nested_deletes;
  delete object;
  if (nested_deletes == 1 && waiting) {
    while (!waiting->empty()) {
      const RefCounted* next = waiting->back();
      waiting->pop_back();
      delete next;
    }
    delete waiting;
    waiting = nullptr;
  }
  --nested_deletes;
}

bool RefCounted::pin() const {
  std::lock_guard lock(pin_mutex);
  Stripes* stripes = stripes_.load(std::memory_order_relaxed);
  if (!stripes) {
    stripes = new Stripes;
    stripes_.store(stripes, std::memory_order_relaxed);
  }
  if (stripes->pins++ != 0) return false;
  // Who sees the pin sees the stripes. They open behind it, for a thread that takes the object for
  // pinned since an earlier pin must not count in a stripe that nobody adds up.
  count_.fetch_add(kPinned + kBias, std::memory_order_acq_rel);
  for (Stripes::Cell& cell : stripes->cells) cell.references.store(0, std::memory_order_release);
  return true;
}

bool RefCounted::unpin() const {
  std::lock_guard lock(pin_mutex);
  Stripes* stripes = stripes_.load(std::memory_order_relaxed);
  if (!stripes || stripes->pins == 0 || --stripes->pins != 0) return false;
  int64_t references = 0;
  for (Stripes::Cell& cell : stripes->cells) {
    references += cell.references.exchange(Stripes::kClosed, std::memory_order_acq_rel);
  }
  count_.fetch_add(static_cast<uint64_t>(references) - kPinned - kBias, std::memory_order_acq_rel);
  return true;
}

void RefCounted::retainPinned() const {
  auto& cell = stripes_.load(std::memory_order_relaxed)->cells[threadStripe()].references;
  if (Stripes::isClosed(cell.fetch_add(1, std::memory_order_relaxed))) {
    count_.fetch_add(1, std::memory_order_relaxed);
  }
}

void RefCounted::releasePinned() const {
  auto& cell = stripes_.load(std::memory_order_relaxed)->cells[threadStripe()].references;
  if (!Stripes::isClosed(cell.fetch_sub(1, std::memory_order_acq_rel))) return;
  if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy(this);
}

void RefCounted::freeStripes() {
  delete stripes_.load(std::memory_order_relaxed);
}

}  // namespace wick
