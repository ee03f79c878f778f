#include "tools/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>

#include "core/budget.h"
#include "core/error_types.h"
#include "core/thread_context.h"
#include "tools/terminal.h"

namespace wick::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWarmUp = std::chrono::milliseconds(300);
constexpr size_t kMinIterations = 5;
constexpr size_t kMaxIterations = 200000;

// How far a measurement is.
class CallProgress {
 public:
  explicit CallProgress(bool shown) : line_(shown) {}
  void update(size_t calls, double fraction) {
    line_.show(
        [&] { return fmt::format("{:3.0f} %, {} calls", 100 * std::min(fraction, 1.0), calls); });
  }

 private:
  ProgressLine line_;
};

double toMilliseconds(Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace

Timings::Timings(std::vector<double> milliseconds) : sorted_(std::move(milliseconds)) {
  std::sort(sorted_.begin(), sorted_.end());
}

double Timings::quantile(double fraction) const {
  const double place = fraction * static_cast<double>(sorted_.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted_.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted_[below] * (1 - part) + sorted_[above] * part;
}

double Timings::mean() const {
  return std::accumulate(sorted_.begin(), sorted_.end(), 0.0) / static_cast<double>(count());
}

double timeOnce(const std::function<void()>& f) {
  const auto begin = Clock::now();
  f();
  return toMilliseconds(Clock::now() - begin);
}

namespace {

// `goes_on` may end it early.
template <class GoesOn>
void warmUp(const std::function<void()>& f, const TimingPlan& plan, const GoesOn& goes_on) {
  const auto until = Clock::now() + kWarmUp;
  for (size_t i = 0; goes_on() && (plan.warm_up < 0 ? i < kMinIterations || Clock::now() < until
                                                    : i < static_cast<size_t>(plan.warm_up));
       ++i) {
    f();
  }
}

// The threads of timeTogether().
class Together {
 public:
  Together(const std::vector<std::function<void()>>& callers, const TimingPlan& plan)
      : callers_(callers),
        plan_(plan),
        ready_(static_cast<ptrdiff_t>(callers.size()) + 1),
        start_(static_cast<ptrdiff_t>(callers.size()) + 1) {}

  TimedTogether run() {
    std::vector<std::thread> threads;
    try {
      for (const auto& caller : callers_) {
        threads.emplace_back([this, &caller, context = threadContext(), budget = currentBudget()] {
          const ThreadContextScope settings(context);
          const BudgetScope scope(budget);
          work(caller);
        });
      }
    } catch (const std::system_error& e) {
      fail(std::make_exception_ptr(
          UsageError(fmt::format("{} threads cannot be started: {}", callers_.size(), e.what()))));
      for (size_t i = threads.size(); i < callers_.size(); ++i) {
        ready_.arrive_and_drop();
        start_.arrive_and_drop();
        ++ended_;
      }
    }
    ready_.arrive_and_wait();
    begin_ = Clock::now();
    start_.arrive_and_wait();
    watch();
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    return {Timings(std::move(times_)), toMilliseconds(last_ - begin_) / 1000};
  }

 private:
  void fail(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    failed_ = true;
  }
  bool goesOn() const { return !failed_.load(std::memory_order_relaxed); }

  void work(const std::function<void()>& f) {
    std::vector<double> times;
    Clock::time_point last{};
    const auto guarded = [&](const auto& calls) {
      try {
        calls();
      } catch (...) {
        fail(std::current_exception());
      }
    };
    guarded([&] { warmUp(f, plan_, [&] { return goesOn(); }); });
    ready_.arrive_and_wait();
    start_.arrive_and_wait();
    guarded([&] {
      while (goesOn() && takesNext()) {
        times.push_back(timeOnce(f));
        last = Clock::now();
        ++done_;
      }
    });
    std::lock_guard lock(mutex_);
    times_.insert(times_.end(), times.begin(), times.end());
    last_ = std::max(last_, last);
    ++ended_;
  }

  // Whether there is one more call to make.
  bool takesNext() {
    const size_t number = begun_.fetch_add(1);
    if (plan_.iterations) return number < plan_.iterations;
    return number < kMinIterations * callers_.size() ||
           (number < kMaxIterations && spent() < plan_.seconds);
  }
  double spent() const { return toMilliseconds(Clock::now() - begin_) / 1000; }

  void watch() {
    CallProgress progress(plan_.show_progress);
    while (ended_ < callers_.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto done = static_cast<double>(done_);
      progress.update(done_, plan_.iterations ? done / static_cast<double>(plan_.iterations)
                                              : spent() / plan_.seconds);
    }
  }

  const std::vector<std::function<void()>>& callers_;
  const TimingPlan& plan_;
  std::barrier<> ready_, start_;  // all are warm; the clock runs
  Clock::time_point begin_{}, last_{};
  std::atomic<size_t> begun_{0}, done_{0}, ended_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::vector<double> times_;
  std::exception_ptr error_;
};

}  // namespace

TimedTogether timeTogether(const std::vector<std::function<void()>>& callers,
                           const TimingPlan& plan) {
  return Together(callers, plan).run();
}

std::string formatMilliseconds(double milliseconds) {
  constexpr int kDigits = 3, kMostDecimals = 9;
  if (!(milliseconds > 0)) return "0";
  const int before = static_cast<int>(std::floor(std::log10(milliseconds))) + 1;
  return fmt::format("{:.{}f}", milliseconds, std::clamp(kDigits + 1 - before, 1, kMostDecimals));
}

Timings timeRepeatedly(const std::function<void()>& f, const TimingPlan& plan) {
  warmUp(f, plan, [] { return true; });
  CallProgress progress(plan.show_progress);
  std::vector<double> times;
  const auto begin = Clock::now();
  for (;;) {
    const auto now = Clock::now();
    const double spent = toMilliseconds(now - begin) / (1000 * plan.seconds);
    if (plan.iterations) {
      if (times.size() == plan.iterations) break;
    } else if (times.size() >= kMinIterations && (spent >= 1 || times.size() >= kMaxIterations)) {
      break;
    }
    progress.update(times.size(), plan.iterations ? static_cast<double>(times.size()) /
                                                        static_cast<double>(plan.iterations)
                                                  : spent);
    times.push_back(timeOnce(f) / static_cast<double>(plan.calls));
  }
  return Timings(std::move(times));
}

}  // namespace wick::cli
