#include "streams/linear/fir.h"

#include "core/budget.h"

namespace wick::streams {

namespace {

// Whether a * b * c stays within `most`; all are at least 1.
bool fits(int64_t a, int64_t b, int64_t c, int64_t most) {
  int64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_mul_overflow(product, c, &product) &&
         product <= most;
}

// Whether, for inputs of any length, both give equally many results from the same places: the
// windows are centred alike.
bool alike(const Fir& a, const Fir& b) {
  return a.in == b.in && a.stride == b.stride && 2 * a.padding - a.taps == 2 * b.padding - b.taps;
}

}  // namespace

std::optional<Fir> makeFir(int64_t out, int64_t in, int64_t taps) {
  if (out < 1 || in < 1 || taps < 1 || !fits(out, in, taps, kMostWeights)) return std::nullopt;
  Fir fir;
  fir.out = out;
  fir.in = in;
  fir.taps = taps;
  fir.weight.assign(static_cast<size_t>(out * in * taps), 0);
  fir.bias.assign(static_cast<size_t>(out), 0);
  return fir;
}

std::optional<Fir> identityFir(int64_t channels) {
  std::optional<Fir> fir = makeFir(channels, channels, 1);
  for (int64_t c = 0; fir && c < channels; ++c) fir->at(c, c, 0) = 1;
  return fir;
}

std::optional<Fir> compose(const Fir& first, const Fir& second) {
  if (second.padding != 0 || second.in != first.out) return std::nullopt;
  int64_t reach = 0;
  if (__builtin_mul_overflow(second.taps - 1, first.stride, &reach) || reach > kMostWeights) {
    return std::nullopt;
  }
  std::optional<Fir> fir = makeFir(second.out, first.in, reach + first.taps);
  int64_t pairs = 0;
  if (!fir || !fits(first.out, second.taps, first.taps, kMostWork) ||
      __builtin_mul_overflow(second.out * first.in, first.out * second.taps * first.taps, &pairs) ||
      pairs > kMostWork || !fits(first.stride, second.stride, 1, kMostWeights)) {
    return std::nullopt;
  }
  fir->stride = first.stride * second.stride;
  fir->padding = first.padding;
  Pace pace;
  for (int64_t o = 0; o < second.out; ++o) {
    double bias = second.bias[static_cast<size_t>(o)];
    for (int64_t m = 0; m < first.out; ++m) {
      pace.step(second.taps * first.in * first.taps);
      for (int64_t k = 0; k < second.taps; ++k) {
        const double factor = second.at(o, m, k);
        bias += factor * first.bias[static_cast<size_t>(m)];
        for (int64_t i = 0; i < first.in; ++i) {
          for (int64_t j = 0; j < first.taps; ++j) {
            fir->at(o, i, k * first.stride + j) += factor * first.at(m, i, j);
          }
        }
      }
    }
    fir->bias[static_cast<size_t>(o)] = bias;
  }
  return fir;
}

std::optional<Fir> sum(const Fir& a, const Fir& b, double factor_of_b) {
  if (!alike(a, b) || a.out != b.out) return std::nullopt;
  const Fir& wide = a.taps >= b.taps ? a : b;
  std::optional<Fir> fir = makeFir(a.out, a.in, wide.taps);
  if (!fir) return std::nullopt;
  fir->stride = a.stride;
  fir->padding = wide.padding;
  const auto add = [&](const Fir& part, double factor) {
    const int64_t shift = wide.padding - part.padding;
    for (int64_t o = 0; o < part.out; ++o) {
      fir->bias[static_cast<size_t>(o)] += factor * part.bias[static_cast<size_t>(o)];
      for (int64_t i = 0; i < part.in; ++i) {
        for (int64_t k = 0; k < part.taps; ++k)
          fir->at(o, i, shift + k) += factor * part.at(o, i, k);
      }
    }
  };
  add(a, 1);
  add(b, factor_of_b);
  return fir;
}

std::optional<Fir> stack(const std::vector<const Fir*>& parts) {
  int64_t out = 0;
  const Fir* wide = parts.at(0);
  for (const Fir* part : parts) {
    if (!alike(*part, *parts[0])) return std::nullopt;
    if (part->taps > wide->taps) wide = part;
    out += part->out;
  }
  std::optional<Fir> fir = makeFir(out, wide->in, wide->taps);
  if (!fir) return std::nullopt;
  fir->stride = wide->stride;
  fir->padding = wide->padding;
  int64_t row = 0;
  for (const Fir* part : parts) {
    const int64_t shift = wide->padding - part->padding;
    for (int64_t o = 0; o < part->out; ++o, ++row) {
      fir->bias[static_cast<size_t>(row)] = part->bias[static_cast<size_t>(o)];
      for (int64_t i = 0; i < part->in; ++i) {
        for (int64_t k = 0; k < part->taps; ++k) fir->at(row, i, shift + k) = part->at(o, i, k);
      }
    }
  }
  return fir;
}

Fir scaled(Fir fir, double factor) {
  for (double& w : fir.weight) w *= factor;
  for (double& b : fir.bias) b *= factor;
  return fir;
}

}  // namespace wick::streams
