// Mean and squared deviations in one pass.
#pragma once

namespace wick {

// Welford's update (Technometrics 4, 1962), and the merging of two parts by Chan, Golub and
// LeVeque (1979): no cancellation, whatever the mean.
struct RunningMoments {
  double mean = 0;
  double squares = 0;  // sum of squared distances from the mean
  double count = 0;

  void add(double x) {
    count += 1;
    const double delta = x - mean;
    mean += delta / count;
    squares += delta * (x - mean);
  }
  void merge(const RunningMoments& other) {
    if (other.count == 0) return;
    const double total = count + other.count, delta = other.mean - mean;
    squares += other.squares + delta * delta * count * other.count / total;
    mean += delta * other.count / total;
    count = total;
  }
};

}  // namespace wick
