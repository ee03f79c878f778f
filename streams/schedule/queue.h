// A bounded queue between two threads, one that pushes and one that pops.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace wick::streams {

// Elements are moved, never copied. push() and pop() wait for each other; cancel(), from any thread,
// ends all waiting for good. The two ends write to cache lines of their own.
template <class T>
class BoundedQueue {
 public:
  // Holds at least one element.
  explicit BoundedQueue(size_t capacity) : slots_(capacity == 0 ? 1 : capacity) {}
  BoundedQueue(const BoundedQueue&) = delete;
  BoundedQueue& operator=(const BoundedQueue&) = delete;

  // False, and the element is dropped, when the queue is cancelled.
  bool push(T&& element) {
    const uint64_t count = back_.count.load(std::memory_order_relaxed);
    const auto has_room = [&] {
      return count - front_.count.load(std::memory_order_acquire) < slots_.size();
    };
    if (!await(front_, has_room)) return false;
    slots_[count % slots_.size()] = std::move(element);
    back_.count.store(count + 1, std::memory_order_release);
    wake(back_);
    return true;
  }

  // False when the queue is cancelled, or when it is finished and empty.
  bool pop(T& element) {
    const uint64_t count = front_.count.load(std::memory_order_relaxed);
    const auto has_element = [&] { return back_.count.load(std::memory_order_acquire) != count; };
    const auto has_news = [&] {
      return has_element() || finished_.load(std::memory_order_acquire);
    };
    if (!await(back_, has_news) || !has_element()) return false;
    element = std::move(slots_[count % slots_.size()]);
    front_.count.store(count + 1, std::memory_order_release);
    wake(front_);
    return true;
  }

  // By the thread that pushes: nothing more comes.
  void finish() {
    finished_.store(true, std::memory_order_release);
    wake(back_);
  }
  void cancel() {
    cancelled_.store(true, std::memory_order_release);
    wake(back_);
    wake(front_);
  }

 private:
  struct alignas(64) End {
    std::atomic<uint64_t> count{0};   // elements that passed
    std::atomic<uint32_t> signal{0};  // changes with every news for who waits
  };

  static void wake(End& end) {
    end.signal.fetch_add(1, std::memory_order_acq_rel);
    end.signal.notify_one();
  }

  // Waits until `ready`, for news at the other side's end; false when cancelled.
  template <class Ready>
  bool await(End& end, const Ready& ready) {
    for (;;) {
      const uint32_t seen = end.signal.load(std::memory_order_acquire);
      if (cancelled_.load(std::memory_order_acquire)) return false;
      if (ready()) return true;
      // Looks for some time before it sleeps.
      end.signal.wait(seen, std::memory_order_acquire);
    }
  }

  std::vector<T> slots_;
  End back_;
  End front_;
  std::atomic<bool> finished_{false};
  std::atomic<bool> cancelled_{false};
};

}  // namespace wick::streams
