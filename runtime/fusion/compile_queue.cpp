#include "runtime/fusion/compile_queue.h"

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>

#include "runtime/jit_mode.h"

namespace wick {

namespace {

// Never destroyed; the thread is joined before the compiler's own static objects go.
class CompileQueue {
 public:
  static CompileQueue& instance() {
    static CompileQueue& queue = *new CompileQueue;
    return queue;
  }

  void submit(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { work(); });
      std::atexit([] { instance().end(); });
    }
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ || (jobs_.empty() && !busy_); });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (jobs_.empty()) {
        changed_.wait(lock);
        continue;
      }
      std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      busy_ = true;
      lock.unlock();
      job();
      job = nullptr;
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }
  void end() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      jobs_.clear();
      changed_.notify_all();
    }
    thread_.join();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool busy_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace

void submitCompile(std::function<void()> job) {
  if (jitMode() == JitMode::Sync) {
    job();
  } else {
    CompileQueue::instance().submit(std::move(job));
  }
}

void waitForCompiles() {
  CompileQueue::instance().wait();
}

}  // namespace wick
