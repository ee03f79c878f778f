// Intrusive reference counting: RefCounted is the base of every heap object that an IValue can
// hold, Ref<T> the owning pointer. Counts are atomic; the objects themselves are not synchronized.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/memory_limit.h"

namespace wick {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    // An object with one owner cannot gain another while that owner releases it, so the common case
    // needs no atomic read-modify-write.
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(this);
    }
  }
  uint32_t useCount() const { return count_.load(std::memory_order_acquire); }

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

 private:
  // Deletes the object; what it held is deleted from a queue when it is nested deeply, so that no
  // chain of containers that a program builds can exhaust the stack.
  static void destroy(const RefCounted* object);

  static constexpr size_t kHeaderBytes = 16;  // of malloc
  mutable std::atomic<uint32_t> count_{0};
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

template <class T, class... Args>
Ref<T> makeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace wick
