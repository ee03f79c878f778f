// Timing repeated calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
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

}  // namespace wick::cli
