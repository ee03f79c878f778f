#include "core/slot_access.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <mutex>

#include "core/error.h"

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace wick {

using detail::SlotReader;

namespace {

// The list's first; nodes are never freed, so that it can be walked without a lock.
std::atomic<SlotReader*> newest{nullptr};
// Threads that have a node.
std::atomic<uint32_t> threads{0};

// Never destroyed: threads may end after static objects.
std::mutex& registry() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

struct alignas(kCacheLine) Lock {
  std::atomic_flag taken;
};
constexpr size_t kLocks = 64;
std::array<Lock, kLocks> locks;

void pauseSpinning(int& spins) {
  constexpr int kSpins = 64;
  if (++spins < kSpins) {
    __builtin_ia32_pause();
  } else {
    sched_yield();
  }
}

#ifndef __SANITIZE_THREAD__
int membarrier(int command) {
  return static_cast<int>(syscall(__NR_membarrier, command, 0, 0));
}
#endif

// All threads of the process have executed a barrier when it returns.
void barrierForAll() {
#ifndef __SANITIZE_THREAD__
  if (!detail::readersFence()) {
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    return;
  }
#endif
  // Readers do it themselves.
  static std::atomic<uint32_t> order{0};
  order.fetch_add(1);
}

void awaitOthers(const SlotReader* me) {
  barrierForAll();
  for (const SlotReader* reader = newest.load(std::memory_order_acquire); reader;
       reader = reader->next) {
    if (reader == me) continue;
    const uint64_t turn = reader->turn.load(std::memory_order_acquire);
    int spins = 0;
    while (turn % 2 != 0 && reader->turn.load(std::memory_order_acquire) == turn) {
      pauseSpinning(spins);
    }
  }
}

// What reads slots afterwards, while other objects of the thread are destroyed, gets a node that
// nobody gives back.
struct AtThreadEnd {
  SlotReader* reader = nullptr;
  ~AtThreadEnd() {
    const std::lock_guard guard(registry());
    reader->taken = false;
    detail::slot_reader = nullptr;
    threads.fetch_sub(1);
  }
};

}  // namespace

#ifndef __SANITIZE_THREAD__
std::atomic<bool> detail::readers_fence{true};
#endif

SlotReader& detail::claimSlotReader() {
#ifndef __SANITIZE_THREAD__
  static const bool expedited = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
  // Before any reader has a node.
  if (expedited) readers_fence.store(false, std::memory_order_relaxed);
#endif
  SlotReader* claimed = nullptr;
  {
    const std::lock_guard guard(registry());
    for (claimed = newest.load(); claimed && claimed->taken;) claimed = claimed->next;
    if (!claimed) {
      claimed = new SlotReader;
      claimed->next = newest.load();
      newest.store(claimed);
    }
    claimed->taken = true;
    threads.fetch_add(1);
  }
  // Who believed to be alone must have ended.
  awaitOthers(claimed);
  slot_reader = claimed;
  thread_local AtThreadEnd at_end;
  if (!at_end.reader) at_end.reader = claimed;
  return *claimed;
}

void detail::loadWhole(const IValue& from, void* to) {
  using Whole = long long __attribute__((vector_size(16)));
  Whole whole;
  asm volatile("vmovdqa %1, %0" : "=x"(whole) : "m"(reinterpret_cast<const Whole&>(from)));
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(const_cast<IValue*>(&from));
#endif
  std::memcpy(to, &whole, sizeof(whole));
}

SlotWriting::SlotWriting(const IValue& slot)
    : reader_(detail::slot_reader ? *detail::slot_reader : detail::claimSlotReader()),
      before_(reader_.turn.load(std::memory_order_relaxed)) {
  WICK_ASSERT(before_ % 2 == 0, "a slot is set while slots are read");
  // As a reader, so that a second thread which comes now waits until this ends.
  if (detail::readersFence()) {
    reader_.turn.exchange(before_ + 1);
  } else {
    reader_.turn.store(before_ + 1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  if (threads.load(std::memory_order_relaxed) <= 1) return;
  reader_.turn.store(before_ + 2, std::memory_order_release);
  const auto place = reinterpret_cast<uintptr_t>(&slot) / sizeof(IValue);
  lock_ = &locks[(place ^ place >> 8) % kLocks].taken;
  int spins = 0;
  while (lock_->test_and_set(std::memory_order_acquire)) pauseSpinning(spins);
}

SlotWriting::~SlotWriting() {
  if (lock_) {
    lock_->clear(std::memory_order_release);
  } else {
    reader_.turn.store(before_ + 2, std::memory_order_release);
  }
}

void SlotWriting::exchange(IValue& slot, IValue& value) {
  using Whole = long long __attribute__((vector_size(16)));
  Whole before, after;
  std::memcpy(&after, static_cast<void*>(&value), sizeof(after));
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(&slot);
  __tsan_release(&slot);
#endif
  asm volatile("vmovdqa %1, %0" : "=x"(before) : "m"(reinterpret_cast<const Whole&>(slot)));
  asm volatile("vmovdqa %1, %0" : "=m"(reinterpret_cast<Whole&>(slot)) : "x"(after) : "memory");
  std::memcpy(static_cast<void*>(&value), &before, sizeof(before));
}

void awaitSlotReaders() {
  awaitOthers(detail::slot_reader);
}

}  // namespace wick
