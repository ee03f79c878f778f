#include "runtime/compile_queue.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/jit_mode.h"

namespace wick {

namespace {

// The holds of the calling thread.
struct Holds {
  int depth = 0;
  bool submitted = false;  // something that waits for the end of the outermost
};
thread_local constinit Holds holds;

// Never destroyed: programs may still run while the process ends.
class CompileQueue {
 public:
  static CompileQueue& instance() {
    static CompileQueue& queue = *new CompileQueue;
    return queue;
  }

  void submit(std::function<void()> job, CompileStart start) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { work(); });
      std::atexit([] { instance().end(); });
    }
    if (start == CompileStart::AtOnce) {
      jobs_.push_back(std::move(job));
    } else {
      const Clock::time_point now = Clock::now();
      const bool held = holds.depth > 0;
      holds.submitted |= held;
      later_.push_back({now + kCompileGrace, held ? now + kLongestHold : now + kCompileGrace,
                        held ? std::this_thread::get_id() : std::thread::id(), std::move(job)});
    }
    changed_.notify_all();
  }

  // Ends the waiting for what the calling thread holds.
  void release() {
    std::lock_guard lock(mutex_);
    for (LaterJob& later : later_) {
      if (later.holder != std::this_thread::get_id()) continue;
      later.holder = std::thread::id();
      later.from = later.earliest;
    }
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ended_ || (jobs_.empty() && later_.empty() && !busy_); });
    --waiting_;
  }

  // Drops the jobs that wait, and waits for the one that runs.
  void end() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      jobs_.clear();
      later_.clear();
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct LaterJob {
    Clock::time_point earliest;
    Clock::time_point from;
    std::thread::id holder;  // no thread's when nothing holds it
    std::function<void()> job;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (jobs_.empty()) {
        if (later_.empty()) {
          changed_.wait(lock);
          continue;
        }
        const auto next =
            std::min_element(later_.begin(), later_.end(),
                             [](const LaterJob& a, const LaterJob& b) { return a.from < b.from; });
        if (const Clock::time_point from = next->from; waiting_ == 0 && Clock::now() < from) {
          changed_.wait_until(lock, from);
          continue;
        }
        jobs_.push_back(std::move(next->job));
        later_.erase(next);
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

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::vector<LaterJob> later_;  // in the order of submission
  int waiting_ = 0;              // threads in wait()
  bool busy_ = false;
  bool ended_ = false;
  std::thread thread_;
};

// A compiler that still runs while the process ends would find its own static objects destroyed,
// those among them that it made during the compilation. What is thread_local in the initial thread
// goes before everything static ([basic.start.term]), so the queue ends with it. The handler of
// atexit is for processes that another thread ends.
struct EndOfInitialThread {
  ~EndOfInitialThread() { CompileQueue::instance().end(); }
};
thread_local EndOfInitialThread end_of_initial_thread;
[[maybe_unused]] EndOfInitialThread* const made_in_initial_thread = &end_of_initial_thread;

}  // namespace

CompileHold::CompileHold() {
  ++holds.depth;
}

CompileHold::~CompileHold() {
  if (--holds.depth > 0 || !holds.submitted) return;
  holds.submitted = false;
  CompileQueue::instance().release();
}

void submitCompile(std::function<void()> job, CompileStart start) {
  if (jitMode() == JitMode::Sync) {
    job();
  } else {
    CompileQueue::instance().submit(std::move(job), start);
  }
}

void waitForCompiles() {
  CompileQueue::instance().wait();
}

}  // namespace wick
