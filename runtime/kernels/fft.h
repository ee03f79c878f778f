// Discrete Fourier transforms of any length, in float64.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/counted_vector.h"
#include "core/tensor.h"

namespace wick::fft {

// One length, either direction. Immutable once made, so threads may share it.
class Plan {
 public:
  explicit Plan(int64_t n);
  ~Plan();
  // out[k] = sum over j of in[j] * exp(-2 pi i j k / n), with a plus sign for the inverse; no
  // scaling. `in` and `out` hold n elements and do not overlap.
  void run(const std::complex<double>* in, std::complex<double>* out, bool forward) const;

 private:
  struct Bluestein;
  void recurse(const std::complex<double>* in, int64_t stride, std::complex<double>* out, int64_t n,
               size_t level, bool forward) const;
  int64_t n_;
  CountedVector<int64_t> factors_;                // primes, smallest first
  CountedVector<std::complex<double>> twiddles_;  // exp(-2 pi i k / n)
  std::unique_ptr<Bluestein> bluestein_;          // for lengths with a large prime factor
};

// Transforms complex `x` along the dimensions (wrapped already) and multiplies by `scale`.
Tensor transform(const Tensor& x, IntSpan dims, bool forward, double scale);

}  // namespace wick::fft
