// The threads that run forked script functions.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/budget.h"
#include "core/ivalue.h"

namespace wick {

// Runs tasks in the order of submission, `size` at a time, on threads that start when needed.
// Thread-safe. A task that must wait for another returns and submits its continuation, or waits
// with runUntil.
class ThreadPool {
 public:
  explicit ThreadPool(size_t size);
  // Finishes the tasks that run and discards those that have not begun, also those that are
  // submitted meanwhile.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Called once, with whether it is discarded, for which somebody may wait. Must not throw.
  using Task = std::function<void(bool discarded)>;
  void submit(Task task);
  // Returns when `future` is done, or when the budget is exhausted (null: none), whatever the size of
  // the pool and whoever calls. Called from
  // outside of any task, the calling thread runs waiting tasks meanwhile. Within a task it must
  // not, since a task on top of it could wait for the one below; another thread takes its place.
  // RuntimeError when too many threads wait in this way.
  void runUntil(FutureObject& future, const Budget* budget = nullptr);
  size_t size() const { return size_; }

  // The pool of runs that name no other. Never destroyed.
  static ThreadPool& global();
  // Takes effect when the global pool has not been used yet; returns whether it did.
  static bool setGlobalSize(size_t size);

 private:
  using Lock = std::unique_lock<std::mutex>;
  static void watchForks();
  void goOnInFork();
  void work();
  void runFirst(Lock& lock);
  void startThreadIfNeeded();
  void callFirst(Lock& lock, bool discarded);
  void block(FutureObject& future, const Budget* budget);
  bool mayRun() const { return !tasks_.empty() && running_ < size_; }

  const size_t size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<std::thread> threads_;
  size_t running_ = 0;  // tasks on threads_ that do not block
  size_t blocked_ = 0;  // threads_ that wait within a task
  size_t alive_ = 0;    // threads_ that have not ended
  bool stopping_ = false;
};

}  // namespace wick
