// Linear filters over time: what a convolution along the last dimension computes, with channels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace wick::streams {

// y[o][t] = bias[o] + sum over i, k of weight[o][i][k] * x[i][t * stride - padding + k], with zeros
// outside of x on both sides.
struct Fir {
  int64_t out = 1;
  int64_t in = 1;
  int64_t taps = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  std::vector<double> weight;  // [out][in][taps]
  std::vector<double> bias;    // [out]

  double& at(int64_t o, int64_t i, int64_t k) {
    return weight[static_cast<size_t>((o * in + i) * taps + k)];
  }
  double at(int64_t o, int64_t i, int64_t k) const {
    return weight[static_cast<size_t>((o * in + i) * taps + k)];
  }
};

// Fails, nullopt, where there is no such filter, and where it would be too large: more than
// kMostWeights numbers, or more than kMostWork products to find it.
inline constexpr int64_t kMostWeights = int64_t{1} << 22;
inline constexpr int64_t kMostWork = int64_t{1} << 28;

// A filter of zeros.
std::optional<Fir> makeFir(int64_t out, int64_t in, int64_t taps);
// The filter that hands its channels on.
std::optional<Fir> identityFir(int64_t channels);
// `second` behind `first`; only where `second` has no padding, because its
// zeros are not those of `first`.
std::optional<Fir> compose(const Fir& first, const Fir& second);
// Both beside each other on one input, results added; where both give equally many results.
std::optional<Fir> sum(const Fir& a, const Fir& b, double factor_of_b);
// Results one below the other.
std::optional<Fir> stack(const std::vector<const Fir*>& parts);
Fir scaled(Fir fir, double factor);

}  // namespace wick::streams
