// Plans of discrete Fourier transforms: what a length needs, made once.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/kernels/fft_lanes.h"

namespace wick::fft {

// exp(-2 pi i k / n) for 0 <= k < n, to the last bit or two of a double.
class Roots {
 public:
  explicit Roots(int64_t n);
  std::complex<double> operator[](int64_t k) const;

 private:
  int64_t n_;
  int shift_ = 0;  // 0: computed one by one
  std::vector<std::complex<double>> low_, high_;
};

// One length, in float or double. Immutable once made, so threads may share it.
template <class R>
class Plan {
 public:
  // Of more than kLongestInLanes numbers waves can be transformed together only with `in_lanes`. RuntimeError when the
  // run's limits do not allow it.
  explicit Plan(int64_t n, bool in_lanes = false);
  ~Plan();

  int64_t length() const { return n_; }
  // How many numbers each array of the data and of the work must have room for.
  int64_t room() const { return room_; }
  // Bytes that the plan keeps.
  int64_t bytes() const;

  // Transforms W waves at once: out[k] = sum over j of in[j] exp(-2 pi i j k / n). `data` holds
  // them, `work` is overwritten; the result lies in the one that is returned. W is 1 or kLanes.
  template <int W>
  Wave<R> run(Wave<R> data, Wave<R> work) const;

 private:
  struct Step {
    int64_t p, m, s;
    int64_t twiddles, roots;  // positions in table_
  };
  struct Bluestein;
  struct Square;
  template <int W>
  Wave<R> runSteps(Wave<R> x, Wave<R> work) const;
  void makeSteps(const std::vector<int64_t>& factors);

  int64_t n_, room_;
  std::vector<Step> steps_;
  std::vector<R> table_;
  std::unique_ptr<Bluestein> bluestein_;  // for lengths with a large prime factor
  std::unique_ptr<Square> square_;        // for long waves: rows and columns
};

// Real waves: those of even length are complex ones of half the length, unravelled.
template <class R>
class RealPlan {
 public:
  explicit RealPlan(int64_t n);
  int64_t length() const { return n_; }
  bool halved() const { return n_ % 2 == 0; }
  const Plan<R>& inner() const { return *inner_; }
  int64_t room() const { return std::max(inner_->room(), n_ + 1); }
  int64_t bytes() const;
  // From what inner() made of the pairs of a real wave to the first n/2 + 1 numbers of its
  // transform, in place.
  template <int W>
  void unravel(Wave<R> x) const;
  // Back, but for a factor of two: what the inverse of inner() makes the pairs of.
  template <int W>
  void ravel(Wave<R> x) const;

 private:
  int64_t n_;
  std::shared_ptr<const Plan<R>> inner_;
  std::vector<R> turns_;  // exp(-2 pi i k / n) for k <= n/4
};

// A plan that others may have made before. Thread-safe.
template <class R>
std::shared_ptr<const Plan<R>> planFor(int64_t n);
template <class R>
std::shared_ptr<const RealPlan<R>> realPlanFor(int64_t n);

}  // namespace wick::fft
