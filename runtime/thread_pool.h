// The threads that run forked script functions.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/ivalue.h"

namespace wick {

// Runs tasks in the order of submission on `size` threads, which start with the first task.
// Thread-safe. A task must not block on another task: it waits with runUntil, or returns and
// submits its continuation.
class ThreadPool {
 public:
  explicit ThreadPool(size_t size);
  // Finishes the tasks that run and discards those that have not begun.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  using Task = std::function<void()>;
  // `task` must not throw.
  void submit(Task task);
  // Returns when `future` is done. The calling thread runs waiting tasks meanwhile, so this makes
  // progress whatever the size of the pool and whoever calls.
  void runUntil(FutureObject& future);
  size_t size() const { return size_; }

  // The pool of runs that name no other. Never destroyed.
  static ThreadPool& global();
  // Takes effect when the global pool has not been used yet; returns whether it did.
  static bool setGlobalSize(size_t size);

 private:
  void work();
  const size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace wick
