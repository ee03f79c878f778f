#include "runtime/compile_queue.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
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
thread_local constinit bool on_compile_thread = false;

// Never destroyed: programs may still run while the process ends.
class CompileQueue {
 public:
  using Clock = std::chrono::steady_clock;

  static CompileQueue& instance() {
    static CompileQueue& queue = *new CompileQueue;
    return queue;
  }

  void submit(std::function<void()> job, CompileStart start) {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    beginWork();
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
    while (!ended_ && !(jobs_.empty() && later_.empty() && !busy_)) {
      beginWork();
      changed_.wait(lock);
    }
    --waiting_;
  }

  // Waits for the job that runs. Those that wait go on doing so until the next is submitted, or
  // somebody waits for them.
  void rest() { stop(/*for_good=*/false); }

  void pause(Clock::time_point end) {
    std::unique_lock lock(mutex_);
    ++pauses_;
    changed_.wait_until(lock, end, [&] { return !busy_; });
  }
  void unpause() {
    std::lock_guard lock(mutex_);
    --pauses_;
    changed_.notify_all();
  }

  // Drops the jobs that wait, and waits for the one that runs.
  void end() { stop(/*for_good=*/true); }

 private:
  struct LaterJob {
    Clock::time_point earliest;
    Clock::time_point from;
    std::thread::id holder;  // no thread's when nothing holds it
    std::function<void()> job;
  };

  // With the mutex held. While somebody waits for the thread to rest, the next one begins later.
  void beginWork() {
    if (resting_ > 0) wanted_ = true;
    if (ended_ || thread_.joinable() || resting_ > 0) return;
    [[maybe_unused]] static const int watched =
        pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                       [] { instance().goOnInFork(); });
    thread_ = std::thread([this] { work(); });
    std::atexit([] { instance().end(); });
    restWithInitialThread();
  }
  static void restWithInitialThread();

  // A fork has none of the threads: what is not compiled yet runs without there. The jobs stay,
  // because what they hold may be in the middle of a change.
  void goOnInFork() {
    if (thread_.joinable()) {
      thread_.detach();
      busy_ = false;
      ended_ = true;
    }
    mutex_.unlock();
  }

  void stop(bool for_good) {
    std::vector<std::function<void()>> dropped;  // what a job holds may ask for the queue
    std::thread stopped;
    {
      std::lock_guard lock(mutex_);
      if (for_good) {
        ended_ = true;
        for (auto& job : jobs_) dropped.push_back(std::move(job));
        for (auto& later : later_) dropped.push_back(std::move(later.job));
        jobs_.clear();
        later_.clear();
      }
      ++resting_;
      stopped = std::move(thread_);
      changed_.notify_all();
    }
    // The compile thread itself gets here when a job ends the process.
    const bool by_job = on_compile_thread;
    if (stopped.joinable()) by_job ? stopped.detach() : stopped.join();
    std::unique_lock lock(mutex_);
    // Another call may have taken the thread.
    if (!by_job) changed_.wait(lock, [&] { return !busy_; });
    if (--resting_ == 0 && std::exchange(wanted_, false)) beginWork();
    changed_.notify_all();
  }

  void work() {
    on_compile_thread = true;
    std::unique_lock lock(mutex_);
    while (!ended_ && resting_ == 0) {
      if (pauses_ > 0) {
        changed_.wait(lock);
        continue;
      }
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
      // Handlers of atexit run before objects that became static earlier are destroyed: those of
      // the compiler, which its first jobs made, among them.
      if (std::has_single_bit(++jobs_done_)) std::atexit([] { instance().end(); });
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::vector<LaterJob> later_;  // in the order of submission
  int waiting_ = 0;              // threads in wait()
  bool busy_ = false;
  bool ended_ = false;
  int pauses_ = 0;
  int resting_ = 0;      // calls of stop() that wait for the thread
  bool wanted_ = false;  // meanwhile
  uint64_t jobs_done_ = 0;
  std::thread thread_;
};

bool isInitialThread() {
  return syscall(SYS_gettid) == getpid();
}

// A compiler that still runs while the process ends would find its own static objects destroyed,
// those among them that it made during the compilation. What is thread_local in the initial thread
// goes before everything static ([basic.start.term]), so the queue rests when that thread ends. It
// does not end, for the process may go on. A library may be loaded by any thread, and the end of
// another says nothing. Handlers of atexit end the queue, also in processes that another thread
// ends.
struct EndOfInitialThread {
  ~EndOfInitialThread() {
    if (isInitialThread()) CompileQueue::instance().rest();
  }
};
thread_local EndOfInitialThread end_of_initial_thread;
[[maybe_unused]] EndOfInitialThread* const made_by_the_loading_thread = &end_of_initial_thread;

void CompileQueue::restWithInitialThread() {
  // Its construction is what counts.
  if (isInitialThread()) (void)&end_of_initial_thread;
}

}  // namespace

CompileHold::CompileHold() {
  ++holds.depth;
}

CompileHold::~CompileHold() {
  if (--holds.depth > 0 || !holds.submitted) return;
  holds.submitted = false;
  CompileQueue::instance().release();
}

CompilePause::CompilePause(std::chrono::steady_clock::time_point end) {
  CompileQueue::instance().pause(end);
}

CompilePause::~CompilePause() {
  CompileQueue::instance().unpause();
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
