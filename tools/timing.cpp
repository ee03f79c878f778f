#include "tools/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

namespace wick::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kWarmUp = std::chrono::milliseconds(300);
constexpr size_t kMinIterations = 5;
constexpr size_t kMaxIterations = 200000;

// A line on a terminal that is written over a few times a second and erased at the end.
class ProgressLine {
 public:
  explicit ProgressLine(bool shown) : shown_(shown) {}
  ~ProgressLine() {
    if (length_) std::fputs(("\r" + std::string(length_, ' ') + "\r").c_str(), stderr);
  }
  void update(Clock::time_point now, size_t calls, double fraction) {
    if (!shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    std::string line = fmt::format("{:3.0f} %, {} calls", 100 * std::min(fraction, 1.0), calls);
    length_ = std::max(length_, line.size());
    std::fputs(("\r" + line).c_str(), stderr);
    std::fflush(stderr);
  }

 private:
  bool shown_;
  size_t length_ = 0;
  Clock::time_point next_{};
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

Timings timeRepeatedly(const std::function<void()>& f, const TimingPlan& plan) {
  const auto warm_until = Clock::now() + kWarmUp;
  for (size_t i = 0; plan.warm_up < 0 ? i < kMinIterations || Clock::now() < warm_until
                                      : i < static_cast<size_t>(plan.warm_up);
       ++i) {
    f();
  }
  ProgressLine progress(plan.show_progress);
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
    progress.update(now, times.size(),
                    plan.iterations
                        ? static_cast<double>(times.size()) / static_cast<double>(plan.iterations)
                        : spent);
    times.push_back(timeOnce(f) / static_cast<double>(plan.calls));
  }
  return Timings(std::move(times));
}

}  // namespace wick::cli
