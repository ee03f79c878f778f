#include "runtime/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/error.h"
#include "core/processors.h"

namespace wick {
namespace {

std::mutex global_mutex;
size_t global_size = 0;                         // 0: as many as the machine has
std::atomic<ThreadPool*> global_pool{nullptr};  // read without the mutex by every run

// Each takes a thread.
constexpr size_t kMaxBlocked = 1000;

// How long a deadline may pass unnoticed while a thread waits.
constexpr auto kLookAtBudget = std::chrono::milliseconds(10);

// Waits for a condition, or until the budget is exhausted.
template <class Condition>
void waitUnder(const Budget* budget, std::condition_variable& changed,
               std::unique_lock<std::mutex>& lock, Condition condition) {
  if (!budget) return changed.wait(lock, condition);
  while (!condition() && !budget->exhausted()) changed.wait_for(lock, kLookAtBudget);
}

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

void ThreadPool::runUntil(FutureObject& future, const Budget* budget) {
  if (tasks_on_this_thread > 0) {
    block(future, budget);
    return;
  }
  // The lock orders the notification behind the check of done() below.
  future.whenDone([this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  Lock lock(mutex_);
  while (true) {
    waitUnder(budget, changed_, lock, [&] { return future.done() || !tasks_.empty(); });
    if (future.done() || (budget && budget->exhausted())) {
      // The wake-up may have been meant for a worker.
      if (!tasks_.empty()) changed_.notify_one();
      return;
    }
    runFirst(lock);
  }
}

void ThreadPool::block(FutureObject& future, const Budget* budget) {
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
  // Shared with the callback, which may come after an exhausted budget ended the wait.
  struct Signal {
    std::mutex mutex;
    std::condition_variable finished;
    bool done = false;
  };
  const auto signal = std::make_shared<Signal>();
  future.whenDone([signal] {
    std::lock_guard lock(signal->mutex);
    signal->done = true;
    signal->finished.notify_one();
  });
  {
    Lock lock(signal->mutex);
    waitUnder(budget, signal->finished, lock, [&] { return signal->done; });
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
    pool =
        new ThreadPool(global_size != 0 ? global_size : static_cast<size_t>(availableProcessors()));
    global_pool.store(pool, std::memory_order_release);
    watchForks();
  }
  return *pool;
}

void ThreadPool::watchForks() {
  pthread_atfork([] { global().mutex_.lock(); }, [] { global().mutex_.unlock(); },
                 [] { global().goOnInFork(); });
}

// With the mutex held. A fork of the process has none of the threads, but for the one that forked.
void ThreadPool::goOnInFork() {
  std::vector<std::thread> here;
  for (std::thread& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id()) {
      here.push_back(std::move(thread));
    } else {
      thread.detach();
    }
  }
  threads_ = std::move(here);
  alive_ = running_ = threads_.size();
  blocked_ = 0;
  // What waits belongs to runs of the other process. It stays, because what it holds may be in the
  // middle of a change.
  new std::deque<Task>(std::exchange(tasks_, {}));
  // The threads that waited would be woken instead of others.
  new (&changed_) std::condition_variable;
  mutex_.unlock();
}

bool ThreadPool::setGlobalSize(size_t size) {
  std::lock_guard lock(global_mutex);
  if (global_pool.load(std::memory_order_relaxed)) return false;
  global_size = std::max<size_t>(1, size);
  return true;
}

}  // namespace wick
