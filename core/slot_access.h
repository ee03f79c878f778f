// Slots of objects that several threads read and set at a time, as they do when an application runs
// methods of one module on several threads.
//
// A value takes 16 bytes, and who replaces one gives up what it held. So that no reader finds half
// of one value and half of another, slots are loaded and stored as a whole, which the processors
// that the engine is compiled for (AVX) do in one piece when the address is aligned; and so that
// none takes a reference to what is gone, a writer waits, before it gives the old value up, for
// readers that are just then between loading and taking a reference. Readers pay two stores to
// memory of their own: the barrier that this needs is executed by the writer for all (membarrier).
// While only one thread has ever read or set slots, writers do not wait either.
//
// What threads read is one value or another that was set; which one, is up to them.
#pragma once

#include <atomic>
#include <cstring>

#include "core/ivalue.h"

namespace wick {

namespace detail {

struct alignas(kCacheLine) SlotReader {
  std::atomic<uint64_t> turn{0};  // odd while the thread reads
  SlotReader* next = nullptr;     // of the list of all, which only grows
  bool taken = false;             // by a thread; belongs to the registry's lock
};

inline constinit thread_local SlotReader* slot_reader = nullptr;
SlotReader& claimSlotReader();
// Whether readers must execute the barrier themselves.
#ifdef __SANITIZE_THREAD__
inline bool readersFence() {
  return true;
}
#else
extern std::atomic<bool> readers_fence;
inline bool readersFence() {
  return readers_fence.load(std::memory_order_relaxed);
}
#endif

// 16 bytes in one piece.
void loadWhole(const IValue& from, void* to);

}  // namespace detail

// While it lives, no value that the thread finds in a slot goes away. It should be short, and the
// thread must not set slots meanwhile. May be nested.
class SlotReading {
 public:
  SlotReading()
      : reader_(detail::slot_reader ? *detail::slot_reader : detail::claimSlotReader()),
        before_(reader_.turn.load(std::memory_order_relaxed)) {
    if (before_ % 2 != 0) return;
    if (detail::readersFence()) {
      reader_.turn.exchange(before_ + 1);
    } else {
      reader_.turn.store(before_ + 1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  }
  ~SlotReading() {
    if (before_ % 2 == 0) reader_.turn.store(before_ + 2, std::memory_order_release);
  }
  SlotReading(const SlotReading&) = delete;
  SlotReading& operator=(const SlotReading&) = delete;

 private:
  detail::SlotReader& reader_;
  const uint64_t before_;
};

// What a slot holds, without a reference of its own, for as long as this lives.
class SlotView {
 public:
  SlotView(const Object& object, size_t slot) : SlotView(object.slot(slot)) {}
  explicit SlotView(const IValue& slot) { detail::loadWhole(slot, &raw_); }
  const IValue& value() const { return raw_.value; }

 private:
  union Raw {
    Raw() {}
    ~Raw() {}
    IValue value;
  };
  const SlotReading reading_;
  Raw raw_;
};

// What a slot holds. Thread-safe.
inline IValue readSlot(const Object& object, size_t slot) {
  return SlotView(object, slot).value();
}

// The turn of a thread that sets this slot, or pins what it holds.
class SlotWriting {
 public:
  explicit SlotWriting(const IValue& slot);
  ~SlotWriting();
  SlotWriting(const SlotWriting&) = delete;
  SlotWriting& operator=(const SlotWriting&) = delete;

  // Stores `value` and leaves in it what the slot held. Before that is given up, the caller must
  // let this end and call awaitSlotReaders(), unless it is alone().
  static void exchange(IValue& slot, IValue& value);
  bool alone() const { return !lock_; }

 private:
  detail::SlotReader& reader_;
  const uint64_t before_;
  std::atomic_flag* lock_ = nullptr;  // null: no other thread reads or sets slots
};

// Returns when no thread that read a slot before is without a reference to what it found.
void awaitSlotReaders();

}  // namespace wick
