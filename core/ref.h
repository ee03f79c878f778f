// Intrusive reference counting: RefCounted is the base of every heap object that an IValue can
// hold, Ref<T> the owning pointer. Counts are atomic; the objects themselves are not synchronized.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/memory_limit.h"

#pragma GCC visibility push(default)

namespace wick {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() {
    if (stripes_.load(std::memory_order_relaxed)) freeStripes();
  }

  void retain() const {
    if ((count_.load(std::memory_order_acquire) & kPinned) != 0) [[unlikely]] {
      retainPinned();
    } else {
      count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  void release() const {
    // An object with one owner cannot gain another while that owner releases it, so the common case
    // needs no atomic read-modify-write.
    const uint64_t count = count_.load(std::memory_order_acquire);
    if (count == 1) {
      destroy(this);
    } else if ((count & kPinned) != 0) [[unlikely]] {
      releasePinned();
    } else if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(this);
    }
  }
  // More than there are, and never one, while the object is pinned.
  uint64_t useCount() const { return count_.load(std::memory_order_acquire); }

  // Programs make objects without bound, so each counts (core/memory_limit.h).
  static void* operator new(size_t bytes) {
    void* memory = ::operator new(bytes);
    noteMemory(static_cast<int64_t>(bytes + kHeaderBytes));
    return memory;
  }
  static void operator delete(void* memory, size_t bytes) {
    noteMemory(-static_cast<int64_t>(bytes + kHeaderBytes));
    ::operator delete(memory);
  }

  // For objects that many threads refer to at a time, as they do to the parameters of a module that
  // they all run. While an object is pinned each thread counts its references in a place of its own
  // (2 KiB an object), and nobody looks whether any is left: whoever pins holds a reference, and
  // unpins before giving it up. Pins nest. pin() answers whether this one is the first, unpin()
  // whether it was the last; without a pin it does nothing. Thread-safe.
  bool pin() const;
  bool unpin() const;
  bool isPinned() const { return (count_.load(std::memory_order_relaxed) & kPinned) != 0; }

 private:
  struct Stripes;
  // Deletes the object; what it held is deleted from a queue when it is nested deeply, so that no
  // chain of containers that a program builds can exhaust the stack.
  static void destroy(const RefCounted* object);
  void retainPinned() const;
  void releasePinned() const;
  void freeStripes();

  static constexpr size_t kHeaderBytes = 16;  // of malloc
  // While pinned the count is what is written here less kBias, and what the stripes hold: either
  // may be negative, for a reference that one thread takes another may give up.
  static constexpr uint64_t kPinned = uint64_t{1} << 63;
  static constexpr uint64_t kBias = uint64_t{1} << 62;
  // No memory holds so many references that they reach these bits.
  mutable std::atomic<uint64_t> count_{0};
  // Made by the first pin; they live as long as the object.
  mutable std::atomic<Stripes*> stripes_{nullptr};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  Ref(const Ref<U>& other) : Ref(other.get()) {}
  ~Ref() {
    if (object_) object_->release();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  // Takes over a reference that the caller already owns.
  static Ref adopt(T* object) {
    Ref r;
    r.object_ = object;
    return r;
  }
  // Gives the reference up to the caller.
  T* leak() { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

// A reference that is set at most once while other threads read: what reading an object finds out
// and keeps with it. Null at first.
template <class T>
class AttachedRef {
 public:
  AttachedRef() = default;
  AttachedRef(const AttachedRef&) = delete;
  AttachedRef& operator=(const AttachedRef&) = delete;
  ~AttachedRef() { clear(); }

  T* get() const { return object_.load(std::memory_order_acquire); }
  explicit operator bool() const { return get() != nullptr; }
  // Attaches `object` unless something is attached already; returns what is attached now.
  // Thread-safe.
  T* attach(Ref<T> object) {
    T* attached = nullptr;
    if (object_.compare_exchange_strong(attached, object.get(), std::memory_order_acq_rel)) {
      attached = object.leak();
    }
    return attached;
  }
  // Only while no other thread reads.
  void clear() {
    if (T* object = object_.exchange(nullptr, std::memory_order_acq_rel)) object->release();
  }

 private:
  std::atomic<T*> object_{nullptr};
};

template <class T, class... Args>
Ref<T> makeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace wick

#pragma GCC visibility pop
