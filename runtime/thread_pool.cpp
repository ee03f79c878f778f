#include "runtime/thread_pool.h"

#include <algorithm>

namespace wick {
namespace {

std::mutex global_mutex;
size_t global_size = 0;  // 0: as many as the machine has
ThreadPool* global_pool = nullptr;

}  // namespace

ThreadPool::ThreadPool(size_t size) : size_(std::max<size_t>(1, size)) {}

ThreadPool::~ThreadPool() {
  std::deque<Task> discarded;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    discarded.swap(tasks_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::submit(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
    if (threads_.size() < size_) threads_.emplace_back([this] { work(); });
  }
  changed_.notify_one();
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

void ThreadPool::runUntil(FutureObject& future) {
  // The lock orders the notification behind the check of done() below.
  future.whenDone([this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return future.done() || !tasks_.empty(); });
    if (future.done()) {
      // The wake-up may have been meant for a worker.
      if (!tasks_.empty()) changed_.notify_one();
      return;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

ThreadPool& ThreadPool::global() {
  std::lock_guard lock(global_mutex);
  if (!global_pool) {
    size_t size = global_size != 0 ? global_size : std::thread::hardware_concurrency();
    global_pool = new ThreadPool(size);
  }
  return *global_pool;
}

bool ThreadPool::setGlobalSize(size_t size) {
  std::lock_guard lock(global_mutex);
  if (global_pool) return false;
  global_size = std::max<size_t>(1, size);
  return true;
}

}  // namespace wick
