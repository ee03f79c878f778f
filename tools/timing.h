// Timing repeated calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace wick::cli {

struct TimingPlan {
  // Calls before the timed ones; below zero: as many as fit into 300 ms, at least five.
  int warm_up = -1;
  // Calls to time; zero: as many as fit into the duration, at least five.
  size_t iterations = 0;
  double seconds = 1.5;
  // How many calls each call of the timed function makes; times are of one.
  size_t calls = 1;
  // Shows on standard error how far it is.
  bool show_progress = false;
};

class Timings {
 public:
  explicit Timings(std::vector<double> milliseconds);
  size_t count() const { return sorted_.size(); }
  // The time below which `fraction` of the calls stayed, interpolated, in milliseconds.
  double quantile(double fraction) const;
  double median() const { return quantile(0.5); }
  double min() const { return sorted_.front(); }
  double mean() const;

 private:
  std::vector<double> sorted_;
};

inline double microseconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}
// Milliseconds that one call of `f` takes.
double timeOnce(const std::function<void()>& f);
Timings timeRepeatedly(const std::function<void()>& f, const TimingPlan& plan);

struct TimedTogether {
  Timings times;   // of all calls, each as its thread saw it
  double seconds;  // from the first call to the end of the last one
};
// Each function is called again and again by a thread of its own, all at the same time, under the caller's
// settings and budget. Each thread warms up by itself; `plan.iterations` calls are shared by all. An error of
// one call ends the others and is raised here.
TimedTogether timeTogether(const std::vector<std::function<void()>>& callers,
                           const TimingPlan& plan);

// "12.3 ms" and the like in 3 digits or more: what takes any time is never shown as 0.
std::string formatMilliseconds(double milliseconds);

}  // namespace wick::cli
