#include "runtime/thread_pool.h"

#include <algorithm>
#include <atomic>

#include "core/error.h"

namespace wick {
namespace {

std::mutex global_mutex;
size_t global_size = 0;  // 0: as many as the machine has
std::atomic<ThreadPool*> global_pool{nullptr};  // read without the mutex by every run

// Each takes a thread.
constexpr size_t kMaxBlocked = 1000;

thread_local ThreadPool* worker_of = nullptr;
thread_local int tasks_on_this_thread = 0;

}  // namespace

ThreadPool::ThreadPool(size_t size) : size_(std::max<size_t>(1, size)) {}

ThreadPool::~ThreadPool() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    // The workers end, so who submits from now on wakes this thread, or one that runs tasks while
    // it waits. A task that runs may wait for one that has not begun; discarding it ends the wait.
    while (true) {
      changed_.wait(lock, [&] { return alive_ == 0 || !tasks_.empty(); });
      if (tasks_.empty()) break;
      callFirst(lock, true);
    }
  }
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::submit(Task task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    startThreadIfNeeded();
  }
  changed_.notify_one();
}

void ThreadPool::startThreadIfNeeded() {
  if (!stopping_ && !tasks_.empty() && threads_.size() - blocked_ < size_) {
    threads_.emplace_back([this] { work(); });
    ++alive_;
  }
}

void ThreadPool::callFirst(Lock& lock, bool discarded) {
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  lock.unlock();
  task(discarded);
  task = nullptr;
  lock.lock();
}

void ThreadPool::runFirst(Lock& lock) {
  ++tasks_on_this_thread;
  callFirst(lock, false);
  --tasks_on_this_thread;
}

void ThreadPool::work() {
  worker_of = this;
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || mayRun(); });
    if (stopping_) break;
    ++running_;
    runFirst(lock);
    --running_;
    // Others may have found the pool full.
    if (mayRun()) changed_.notify_one();
  }
  --alive_;
  changed_.notify_all();
}

void ThreadPool::runUntil(FutureObject& future) {
  if (tasks_on_this_thread > 0) {
    block(future);
    return;
  }
  // The lock orders the notification behind the check of done() below.
  future.whenDone([this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return future.done() || !tasks_.empty(); });
    if (future.done()) {
      // The wake-up may have been meant for a worker.
      if (!tasks_.empty()) changed_.notify_one();
      return;
    }
    runFirst(lock);
  }
}

void ThreadPool::block(FutureObject& future) {
  if (future.done()) return;
  ThreadPool* const home = worker_of;
  if (home != nullptr) {
    {
      std::lock_guard lock(home->mutex_);
      WICK_CHECK(home->blocked_ < kMaxBlocked, "more than {} threads wait for forked functions",
                 kMaxBlocked);
      ++home->blocked_;
      --home->running_;
      home->startThreadIfNeeded();
    }
    home->changed_.notify_one();
  }
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  future.whenDone([&] {
    std::lock_guard lock(mutex);
    done = true;
    finished.notify_one();
  });
  {
    Lock lock(mutex);
    finished.wait(lock, [&] { return done; });
  }
  if (home != nullptr) {
    std::lock_guard lock(home->mutex_);
    --home->blocked_;
    ++home->running_;
  }
}

ThreadPool& ThreadPool::global() {
  if (ThreadPool* pool = global_pool.load(std::memory_order_acquire)) return *pool;
  std::lock_guard lock(global_mutex);
  ThreadPool* pool = global_pool.load(std::memory_order_relaxed);
  if (!pool) {
    pool = new ThreadPool(global_size != 0 ? global_size : std::thread::hardware_concurrency());
    global_pool.store(pool, std::memory_order_release);
  }
  return *pool;
}

bool ThreadPool::setGlobalSize(size_t size) {
  std::lock_guard lock(global_mutex);
  if (global_pool.load(std::memory_order_relaxed)) return false;
  global_size = std::max<size_t>(1, size);
  return true;
}

}  // namespace wick
