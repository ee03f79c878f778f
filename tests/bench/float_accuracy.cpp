// How far float32 functions are from their true values, in units in the last place, over all
// magnitudes: float_accuracy [STRIDE] looks at every STRIDE-th float, every 64th by default.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>

#include "codegen/scalar/activations.h"
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/mathematics.h"
#include "core/dtype.h"

namespace wick {
namespace {

constexpr size_t kBlock = 1024;
using Floats = std::array<float, kBlock>;

// The distance of neighbouring floats at x.
double unitAt(double x) {
  int exponent;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Worst {
  double units = 0;
  float at = 0;
  uint64_t wrong = 0;  // NaN, infinities and zeros that should be numbers, or the other way round

  void compare(float x, float found, double exact) {
    const auto nearest = static_cast<float>(exact);
    if (std::isnan(nearest) || std::isinf(nearest) || nearest == 0 || !std::isfinite(found)) {
      const bool same = std::isnan(nearest) ? std::isnan(found) : found == nearest;
      const bool close = std::fabs(found - exact) <= unitAt(exact);
      wrong += !same && !close;
      return;
    }
    const double off = std::fabs(found - exact) / unitAt(exact);
    if (off > units) {
      units = off;
      at = x;
    }
  }
  void print(const char* name) const {
    fmt::print("{:8} {:.3f} units at {:.9g}, {} wrong\n", name, units, at, wrong);
  }
};

template <class Definition>
void measure(const char* name, uint64_t stride, double (*exact)(double)) {
  const ScalarLoop loop = kScalar<Definition>.entry(DType::Float).loop;
  Worst worst;
  Floats in, out;
  const void* inputs[] = {in.data()};
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride * kBlock) {
    for (size_t i = 0; i < kBlock; ++i) {
      in[i] = std::bit_cast<float>(static_cast<uint32_t>(bits + i * stride));
    }
    loop(out.data(), inputs, kBlock);
    for (size_t i = 0; i < kBlock; ++i) worst.compare(in[i], out[i], exact(in[i]));
  }
  worst.print(name);
}

// Random bases of all magnitudes, with exponents that keep most powers finite.
void measurePow(uint64_t stride) {
  const ScalarLoop loop = kScalar<scalar::Pow>.entry(DType::Float).loop;
  Worst worst;
  Floats base, exponent, out;
  const void* inputs[] = {base.data(), exponent.data()};
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  for (uint64_t n = 0; n < (uint64_t{1} << 32) / stride; n += kBlock) {
    for (size_t i = 0; i < kBlock; ++i) {
      base[i] = std::bit_cast<float>(static_cast<uint32_t>(rng() >> 1));
      const float log = std::log(base[i]);
      exponent[i] = std::isfinite(log) && log != 0 ? 40 * normal(rng) / log : normal(rng);
    }
    loop(out.data(), inputs, kBlock);
    for (size_t i = 0; i < kBlock; ++i) {
      worst.compare(base[i], out[i],
                    std::pow(static_cast<double>(base[i]), static_cast<double>(exponent[i])));
    }
  }
  worst.print("pow");
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  using namespace wick;
  const uint64_t stride = argc > 1 ? std::max(1, std::atoi(argv[1])) : 64;
  measure<scalar::Exp>("exp", stride, std::exp);
  measure<scalar::Log>("log", stride, std::log);
  measure<scalar::Tanh>("tanh", stride, std::tanh);
  measure<scalar::Sigmoid>("sigmoid", stride, [](double x) { return 1 / (1 + std::exp(-x)); });
  measure<scalar::Erf>("erf", stride, std::erf);
  measure<scalar::Sin>("sin", stride, std::sin);
  measure<scalar::Cos>("cos", stride, std::cos);
  measure<scalar::Rsqrt>("rsqrt", stride, [](double x) { return 1 / std::sqrt(x); });
  measurePow(stride);
  return 0;
}
