// Resampling of one to three spatial dimensions: nearest, linear and cubic, with or without
// anti-aliasing. Every kind is a weighted sum of a few source elements along each dimension, so one
// dimension is resampled after the other from tables of places and weights.
#include <cmath>

#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/util.h"

namespace wick {
namespace {

enum class Mode { Nearest, NearestExact, Linear, Cubic, LinearAntialias, CubicAntialias };

using Scale = std::optional<double>;

// For each output place: `width` source places and their weights. Places may repeat at the borders,
// so they are listed. Weights of zero count: times an infinity they give NaN, as in PyTorch.
struct Taps {
  int64_t width = 1;
  CountedVector<int64_t> place;
  CountedVector<double> weight;
  CountedVector<int64_t> used;  // how many of them each output place has; empty: all
};

// In which source places are computed: rounded as T they could fall on the wrong side of an
// integer.
template <class T>
using Place = std::conditional_t<std::is_same_v<T, float>, double, long double>;

double cubicWeight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Source elements an output element stands for. float32 arithmetic, as PyTorch's for float32
// tensors, decides which neighbour is nearest at a tie.
double scaleOf(int64_t input, int64_t output, bool align_corners, const Scale& scale) {
  if (align_corners) {
    return output > 1 ? static_cast<double>(input - 1) / static_cast<double>(output - 1) : 0;
  }
  if (scale && *scale > 0) return 1 / *scale;
  return static_cast<double>(input) / static_cast<double>(output);
}

// The whole part of a place, or the nearer bound: scales that a program gives may lead anywhere.
template <class F>
int64_t wholeWithin(F at, int64_t low, int64_t high) {
  if (!(at > static_cast<F>(low))) return low;  // NaN too
  if (at >= static_cast<F>(high)) return high;
  return std::min(static_cast<int64_t>(at), high);
}

Taps nearestTaps(int64_t input, int64_t output, const Scale& scale, bool exact) {
  Taps taps;
  float step = scale && *scale > 0 ? static_cast<float>(1 / *scale)
                                   : static_cast<float>(input) / static_cast<float>(output);
  for (int64_t i = 0; i < output; ++i) {
    float at = exact ? (static_cast<float>(i) + 0.5f) * step : static_cast<float>(i) * step;
    taps.place.push_back(wholeWithin(at, 0, input - 1));
    taps.weight.push_back(1);
  }
  return taps;
}

template <class T>
Taps linearTaps(int64_t input, int64_t output, bool align_corners, const Scale& scale) {
  Taps taps;
  taps.width = 2;
  using P = Place<T>;
  const P step = static_cast<T>(scaleOf(input, output, align_corners, scale));
  for (int64_t i = 0; i < output; ++i) {
    P at = align_corners ? step * static_cast<P>(i)
                         : std::max(P(0), step * (static_cast<P>(i) + P(0.5)) - P(0.5));
    if (input == output) at = static_cast<P>(i);
    int64_t first = wholeWithin(at, 0, input - 1);
    T share = std::clamp(static_cast<T>(at - static_cast<P>(first)), T(0), T(1));
    taps.place.push_back(first);
    taps.place.push_back(input == output ? first : std::min(first + 1, input - 1));
    taps.weight.push_back(static_cast<double>(T(1) - share));
    taps.weight.push_back(static_cast<double>(share));
  }
  return taps;
}

template <class T>
Taps cubicTaps(int64_t input, int64_t output, bool align_corners, const Scale& scale) {
  Taps taps;
  taps.width = 4;
  using P = Place<T>;
  const P step = static_cast<T>(scaleOf(input, output, align_corners, scale));
  for (int64_t i = 0; i < output; ++i) {
    P at = align_corners ? step * static_cast<P>(i) : step * (static_cast<P>(i) + P(0.5)) - P(0.5);
    P floor = std::floor(at);
    // An infinite place, of a scale without a finite quotient, has no fraction.
    T share = std::isfinite(at) ? static_cast<T>(at - floor) : T(0);
    const int64_t first = wholeWithin(floor, -4, input + 4);
    for (int64_t k = -1; k <= 2; ++k) {
      taps.place.push_back(std::clamp<int64_t>(first + k, 0, input - 1));
      taps.weight.push_back(
          cubicWeight(static_cast<double>(share) - static_cast<double>(k), -0.75));
    }
  }
  return taps;
}

// The kernel widens with the scale when shrinking, and its weights are normalized.
Taps antialiasTaps(int64_t input, int64_t output, bool align_corners, const Scale& scale,
                   bool cubic) {
  double step = scaleOf(input, output, align_corners, scale);
  double support = (cubic ? 2.0 : 1.0) * std::max(step, 1.0);
  double inverse = step >= 1 ? 1 / step : 1;
  Taps taps;
  taps.width = wholeWithin(std::ceil(support), 1, input) * 2 + 1;
  for (int64_t i = 0; i < output; ++i) {
    double center = step * (static_cast<double>(i) + 0.5);
    int64_t first = wholeWithin(center - support + 0.5, 0, input);
    int64_t last = wholeWithin(center + support + 0.5, 0, input);
    double total = 0;
    CountedVector<double> weights;
    for (int64_t j = first; j < last; ++j) {
      double x = (static_cast<double>(j) - center + 0.5) * inverse;
      weights.push_back(cubic ? cubicWeight(x, -0.5) : std::max(0.0, 1 - std::abs(x)));
      total += weights.back();
    }
    taps.used.push_back(std::max<int64_t>(1, last - first));
    for (int64_t k = 0; k < taps.width; ++k) {
      bool there = k < static_cast<int64_t>(weights.size());
      taps.place.push_back(std::min(first + k, input - 1));
      taps.weight.push_back(there && total != 0 ? weights[static_cast<size_t>(k)] / total : 0);
    }
  }
  return taps;
}

template <class Element>
Taps makeTaps(Mode mode, int64_t input, int64_t output, bool align_corners, const Scale& scale) {
  using T = std::conditional_t<std::is_same_v<Element, double>, double, float>;
  switch (mode) {
    case Mode::Nearest:
    case Mode::NearestExact:
      return nearestTaps(input, output, scale, mode == Mode::NearestExact);
    case Mode::Linear:
      return linearTaps<T>(input, output, align_corners, scale);
    case Mode::Cubic:
      return cubicTaps<T>(input, output, align_corners, scale);
    default:
      return antialiasTaps(input, output, align_corners, scale, mode == Mode::CubicAntialias);
  }
}

// The same for rows whose elements are next to each other: [outer, input].
template <class T>
void resampleRows(const T* x, T* out, int64_t outer, int64_t input, int64_t output,
                  const Taps& taps, const CountedVector<T>& weights) {
  const int64_t width = taps.width, work = std::max<int64_t>(1, output * width);
  parallelFor(outer, std::max<int64_t>(1, kGrainSize / work), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* const from = x + row * input;
      T* const to = out + row * output;
      const int64_t* place = taps.place.data();
      if (width == 1) {
        for (int64_t o = 0; o < output; ++o) to[o] = from[place[o]];
        continue;
      }
      const T* w = weights.data();
      for (int64_t o = 0; o < output; ++o, place += width, w += width) {
        const int64_t used = taps.used.empty() ? width : taps.used[static_cast<size_t>(o)];
        T sum = static_cast<T>(from[place[0]] * w[0]);
        for (int64_t k = 1; k < used; ++k) sum = static_cast<T>(sum + from[place[k]] * w[k]);
        to[o] = sum;
      }
    }
  });
}

// Resamples the middle of [outer, input, inner].
template <class T>
void resample(const T* x, T* out, int64_t outer, int64_t input, int64_t output, int64_t inner,
              const Taps& taps) {
  int64_t width = taps.width;
  CountedVector<T> weights(taps.weight.begin(), taps.weight.end());
  if (inner == 1) return resampleRows(x, out, outer, input, output, taps, weights);
  bool copies = width == 1;
  parallelFor(outer * output, std::max<int64_t>(1, kGrainSize / (width * inner)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const T* base = x + row / output * input * inner;
                  const int64_t* places = taps.place.data() + row % output * width;
                  const T* w = weights.data() + row % output * width;
                  T* to = out + row * inner;
                  if (copies) {
                    std::copy_n(base + places[0] * inner, inner, to);
                    continue;
                  }
                  const T* first = base + places[0] * inner;
                  for (int64_t i = 0; i < inner; ++i) to[i] = static_cast<T>(first[i] * w[0]);
                  const int64_t used =
                      taps.used.empty() ? width : taps.used[static_cast<size_t>(row % output)];
                  for (int64_t k = 1; k < used; ++k) {
                    const T* p = base + places[k] * inner;
                    for (int64_t i = 0; i < inner; ++i) to[i] = static_cast<T>(to[i] + p[i] * w[k]);
                  }
                }
              });
}

// Weights of bytes: integers with as many bits behind the point as the largest leaves of sixteen,
// as PyTorch has them.
struct ByteTaps {
  explicit ByteTaps(const Taps& taps);
  CountedVector<int32_t> weight;  // where Taps has theirs; positions that repeat count once
  int bits = 0;
};

ByteTaps::ByteTaps(const Taps& taps) : weight(taps.weight.size(), 0) {
  CountedVector<double> joined(taps.weight.size(), 0);
  const auto width = static_cast<size_t>(taps.width);
  double largest = 0;
  for (size_t row = 0; row < joined.size(); row += width) {
    for (size_t k = 0; k < width; ++k) {
      size_t first = 0;
      while (taps.place[row + first] != taps.place[row + k]) ++first;
      joined[row + first] += taps.weight[row + k];
      largest = std::max(largest, joined[row + first]);
    }
  }
  while (bits < 22 && 0.5 + largest * static_cast<double>(1 << (bits + 1)) < 32768) ++bits;
  for (size_t i = 0; i < joined.size(); ++i) {
    const double v = joined[i] * static_cast<double>(1 << bits);
    weight[i] = static_cast<int32_t>(v < 0 ? v - 0.5 : v + 0.5);
  }
}

// resample() of bytes.
void resampleBytes(const uint8_t* x, uint8_t* out, int64_t outer, int64_t input, int64_t output,
                   int64_t inner, const Taps& taps) {
  const ByteTaps exact(taps);
  const int64_t width = taps.width;
  const int32_t half = exact.bits == 0 ? 0 : 1 << (exact.bits - 1);
  parallelFor(outer * output, std::max<int64_t>(1, kGrainSize / (width * inner)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  const uint8_t* base = x + row / output * input * inner;
                  const int64_t* places = taps.place.data() + row % output * width;
                  const int32_t* w = exact.weight.data() + row % output * width;
                  for (int64_t i = 0; i < inner; ++i) {
                    int32_t sum = half;
                    for (int64_t k = 0; k < width; ++k) sum += base[places[k] * inner + i] * w[k];
                    out[row * inner + i] =
                        static_cast<uint8_t>(std::clamp(sum >> exact.bits, 0, 255));
                  }
                }
              });
}

// Two dimensions of bytes, one after the other; a size that stays as it is is left alone.
Tensor upsampleBytes(Mode mode, const Tensor& self, const DimVector& output_size,
                     bool align_corners, const std::vector<Scale>& scales) {
  Tensor x = self.contiguous();
  for (int64_t d = 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    DimVector sizes(x.sizes());
    const int64_t input = sizes[2 + i], output = output_size[i];
    if (input == output) continue;
    sizes[2 + i] = output;
    Tensor next = Tensor::empty(sizes, DType::Byte, x.device());
    const int64_t inner = d == 0 ? x.size(3) : 1;
    const Scale scale = i < scales.size() ? scales[i] : Scale();
    resampleBytes(x.data<uint8_t>(), next.data<uint8_t>(), next.numel() / (output * inner), input,
                  output, inner, makeTaps<double>(mode, input, output, align_corners, scale));
    x = next;
  }
  return x.isSame(self) ? x.clone() : x;
}

// Weights have the dtype of what they weigh.
Taps roundedTaps(Taps taps, DType dtype) {
  if (!isReducedFloat(dtype)) return taps;
  for (double& w : taps.weight) {
    const auto single = static_cast<float>(w);
    w = dtype == DType::Half ? static_cast<float>(Half(single))
                             : static_cast<float>(BFloat16(single));
  }
  return taps;
}

// Taps as a device needs them: for each output element those that it is made of.
WeightedRows rowsOf(const Taps& taps, int64_t output, bool copies) {
  WeightedRows rows;
  rows.start.push_back(0);
  for (int64_t o = 0; o < output; ++o) {
    const int64_t used = taps.used.empty() ? taps.width : taps.used[static_cast<size_t>(o)];
    for (int64_t k = 0; k < used; ++k) {
      rows.place.push_back(taps.place[static_cast<size_t>(o * taps.width + k)]);
      if (!copies) rows.weight.push_back(taps.weight[static_cast<size_t>(o * taps.width + k)]);
    }
    rows.start.push_back(static_cast<int64_t>(rows.place.size()));
  }
  return rows;
}
Tensor upsample(const char* op, Mode mode, const Tensor& self, const DimVector& output_size,
                bool align_corners, const std::vector<Scale>& scales) {
  int64_t n = static_cast<int64_t>(output_size.size());
  WICK_CHECK(self.dim() == n + 2, "{}: It is expected input_size equals to {}, but got size {}", op,
             n + 2, self.dim());
  for (int64_t d = 0; d < n; ++d) {
    int64_t output = output_size[static_cast<size_t>(d)];
    WICK_CHECK(self.size(2 + d) > 0 && output > 0 && output < (int64_t{1} << 26),
               "{}: Input and output sizes should be greater than 0, but got input {} output {}",
               op, formatInts(self.sizes()), formatInts(output_size));
  }
  bool nearest = mode == Mode::Nearest || mode == Mode::NearestExact;
  // The channels of a pixel may lie side by side: then they are what is innermost.
  const bool last = isChannelsLast(self) && isFloating(self.dtype());
  const MemoryFormat format = last ? self.suggestMemoryFormat() : MemoryFormat::Contiguous;
  Tensor x = widened(self).contiguous(format);
  auto run = [&]<class T>() {
    // The last dimension first: it is the one with the longest rows to share weights.
    for (int64_t d = n; d-- > 0;) {
      size_t i = static_cast<size_t>(d);
      DimVector sizes(x.sizes());
      int64_t input = sizes[2 + i], output = output_size[i];
      Scale scale = i < scales.size() ? scales[i] : Scale();
      if (nearest && input == output && !scale) continue;
      sizes[2 + i] = output;
      Tensor next = Tensor::empty(sizes, x.dtype(), x.device(), format);
      int64_t inner = last ? x.size(1) : 1;
      for (int64_t e = 3 + d; e < x.dim(); ++e) inner *= x.size(e);
      int64_t outer = next.numel() / (output * inner);
      const Taps taps =
          roundedTaps(makeTaps<T>(mode, input, output, align_corners, scale), self.dtype());
      if (x.device().isCpu()) {
        resample(x.data<T>(), next.data<T>(), outer, input, output, inner, taps);
      } else {
        deviceLayers(op, x.device())
            .weightedRows(op, x, next, input, inner, rowsOf(taps, output, taps.width == 1));
      }
      x = next;
    }
  };
  if (x.numel() > 0) {
    if (nearest && x.dtype() == DType::Byte) {
      run.template operator()<uint8_t>();
    } else if (x.dtype() == DType::Byte && n == 2 && x.device().isCpu()) {
      x = upsampleBytes(mode, x, output_size, align_corners, scales);
    } else {
      dispatch<kFloats>(op, x.dtype(), run);
    }
  } else {
    DimVector sizes{x.size(0), x.size(1)};
    for (int64_t s : output_size) sizes.push_back(s);
    return Tensor::empty(sizes, self.dtype(), self.device());
  }
  Tensor out = x.to(self.dtype());
  if (out.isSame(self)) out = out.clone();
  return isChannelsLast(self) ? out.contiguous(self.suggestMemoryFormat()) : out;
}

// resample() read backwards: adds every output element, weighted, to the source elements it was
// made of. The columns of a slice have no elements in common.
template <class T>
void resampleBack(const T* grad, T* out, int64_t outer, int64_t input, int64_t output,
                  int64_t inner, const Taps& taps) {
  const int64_t width = taps.width;
  const CountedVector<T> weights(taps.weight.begin(), taps.weight.end());
  const int64_t work = std::max<int64_t>(1, output * width * inner);
  parallelFor(outer, std::max<int64_t>(1, kGrainSize / work), [&](int64_t begin, int64_t end) {
    for (int64_t slice = begin; slice < end; ++slice) {
      T* const base = out + slice * input * inner;
      if (inner == 1 && width == 1) {
        const T* const from = grad + slice * output;
        for (int64_t o = 0; o < output; ++o) {
          base[taps.place[static_cast<size_t>(o)]] += from[o] * weights[static_cast<size_t>(o)];
        }
        continue;
      }
      for (int64_t o = 0; o < output; ++o) {
        const T* from = grad + (slice * output + o) * inner;
        const int64_t used = taps.used.empty() ? width : taps.used[static_cast<size_t>(o)];
        for (int64_t k = 0; k < used; ++k) {
          const T w = weights[static_cast<size_t>(o * width + k)];
          T* to = base + taps.place[static_cast<size_t>(o * width + k)] * inner;
          for (int64_t i = 0; i < inner; ++i) to[i] += from[i] * w;
        }
      }
    }
  });
}

// The gradient for an input of `sizes`.
Tensor upsampleBack(const char* op, Mode mode, const Tensor& grad, const DimVector& sizes,
                    bool align_corners, const std::vector<Scale>& scales) {
  const int64_t n = grad.dim() - 2;
  WICK_CHECK(n >= 1 && static_cast<int64_t>(sizes.size()) == n + 2 && sizes[0] == grad.size(0) &&
                 sizes[1] == grad.size(1),
             "{}: a gradient {} does not fit an input of sizes {}", op, grad.describe(),
             formatInts(sizes));
  for (int64_t d = 2; d < n + 2; ++d) {
    WICK_CHECK(sizes[static_cast<size_t>(d)] > 0 && grad.size(d) > 0,
               "{}: expected sizes greater than 0, got {} and {}", op, formatInts(sizes),
               grad.describe());
  }
  if (checkedNumel(sizes) == 0) return Tensor::zeros(sizes, grad.dtype(), grad.device());
  const bool nearest = mode == Mode::Nearest || mode == Mode::NearestExact;
  const bool last = isChannelsLast(grad);
  const MemoryFormat format = last ? grad.suggestMemoryFormat() : MemoryFormat::Contiguous;
  Tensor g = widened(grad).contiguous(format);
  dispatch<kFloats>(op, g.dtype(), [&]<class T>() {
    for (int64_t d = 0; d < n; ++d) {
      const auto i = static_cast<size_t>(d);
      const int64_t input = sizes[2 + i], output = g.size(2 + d);
      const Scale scale = i < scales.size() ? scales[i] : Scale();
      if (nearest && input == output && !scale) continue;
      DimVector now(g.sizes());
      now[2 + i] = input;
      Tensor next = Tensor::empty(now, g.dtype(), g.device(), format);
      int64_t inner = last ? g.size(1) : 1;
      for (int64_t e = 3 + d; e < g.dim(); ++e) inner *= g.size(e);
      const Taps taps = makeTaps<T>(mode, input, output, align_corners, scale);
      if (g.device().isCpu()) {
        next.fill(0);
        resampleBack(g.data<T>(), next.data<T>(), g.numel() / (output * inner), input, output,
                     inner, taps);
      } else {
        deviceLayers(op, g.device())
            .weightedRows(op, g, next, output, inner,
                          rowsOf(taps, output, false).transposed(input));
      }
      g = next;
    }
  });
  Tensor out = g.to(grad.dtype());
  return out.isSame(grad) ? out.clone() : out;
}

template <Mode M>
constexpr const char* nameOf() {
  return M == Mode::Nearest        ? "upsample_nearest"
         : M == Mode::NearestExact ? "_upsample_nearest_exact"
         : M == Mode::Linear       ? "upsample_linear"
         : M == Mode::Cubic        ? "upsample_bicubic2d"
                                   : "_upsample_aa";
}

// With a scale for each dimension (as many as there are dimensions).
template <Mode M, class... Scales>
Tensor up(const Tensor& self, const DimVector& size, bool align, Scales... scales) {
  const char* op = nameOf<M>();
  return upsample(op, M, self, expandInts(op, "output_size", size, sizeof...(scales)), align,
                  {scales...});
}
template <Mode M, class... Scales>
Tensor near(const Tensor& self, const DimVector& size, Scales... scales) {
  return up<M>(self, size, false, scales...);
}

// Either the sizes or the factors are given.
template <Mode M, size_t N>
Tensor upVec(const Tensor& input, const std::optional<DimVector>& size, bool align,
             const std::optional<std::vector<double>>& factors) {
  const char* op = nameOf<M>();
  WICK_CHECK(size.has_value() != factors.has_value(),
             "{}: Must specify exactly one of output_size and scale_factors", op);
  if (size) return upsample(op, M, input, expandInts(op, "output_size", *size, N), align, {});
  WICK_CHECK(factors->size() == N && input.dim() == static_cast<int64_t>(N) + 2,
             "{}: expected {} scale factors and {}-dimensional input, got {} and {}", op, N, N + 2,
             factors->size(), input.describe());
  DimVector sizes;
  std::vector<Scale> scales;
  for (size_t i = 0; i < N; ++i) {
    double s = static_cast<double>(input.size(static_cast<int64_t>(2 + i))) * (*factors)[i];
    WICK_CHECK(s >= 0 && s < 1e9, "{}: a scale factor is out of range: {}", op, (*factors)[i]);
    sizes.push_back(static_cast<int64_t>(s));
    scales.push_back((*factors)[i]);
  }
  return upsample(op, M, input, sizes, align, scales);
}
template <Mode M, size_t N>
Tensor nearVec(const Tensor& input, const std::optional<DimVector>& size,
               const std::optional<std::vector<double>>& factors) {
  return upVec<M, N>(input, size, false, factors);
}

// By name, for the formulas of gradients. A scale of zero counts as none.
Mode modeOf(const char* op, const std::string& name) {
  constexpr std::pair<const char*, Mode> kModes[] = {{"nearest", Mode::Nearest},
                                                     {"nearest-exact", Mode::NearestExact},
                                                     {"linear", Mode::Linear},
                                                     {"cubic", Mode::Cubic},
                                                     {"linear-antialias", Mode::LinearAntialias},
                                                     {"cubic-antialias", Mode::CubicAntialias}};
  for (const auto& [known, mode] : kModes) {
    if (name == known) return mode;
  }
  throwRuntimeError("{}: unknown mode \"{}\"", op, name);
}
std::vector<Scale> scalesOf(const std::vector<double>& scales) {
  std::vector<Scale> out;
  for (const double s : scales) out.push_back(s > 0 ? Scale(s) : Scale());
  return out;
}
Tensor upsampleNamed(const Tensor& self, const DimVector& size, const std::string& mode, bool align,
                     const std::vector<double>& scales) {
  const char* op = "upsample";
  return upsample(op, modeOf(op, mode), self, size, align, scalesOf(scales));
}
Tensor upsampleGradient(const Tensor& grad, const DimVector& sizes, const std::string& mode,
                        bool align, const std::vector<double>& scales) {
  const char* op = "upsample_gradient";
  return upsampleBack(op, modeOf(op, mode), grad, sizes, align, scalesOf(scales));
}

#define WICK_SCALES1 "float? scales=None"
#define WICK_SCALES2 "float? scales_h=None, float? scales_w=None"
#define WICK_SCALES3 "float? scales_d=None, float? scales_h=None, float? scales_w=None"
#define WICK_PAIR(name, rule, to, by_factors, kernel, vec_kernel)                       \
  {"aten::" name to " -> Tensor", WICK_KERNEL(kernel), kOutForm | kNeutral | (rule)}, { \
    "aten::" name ".vec(Tensor input, int[]? output_size, " by_factors                  \
    "float[]? scale_factors) -> Tensor",                                                \
        WICK_KERNEL(vec_kernel), kOutForm | kNeutral | ((rule)&kKeepsOrder)             \
  }
// n dimensions; the last arguments are as many scales.
#define WICK_UP(name, n, mode, rule, ...)                                                     \
  WICK_PAIR(name, rule,                                                                       \
            "(Tensor self, int[" #n "] output_size, bool align_corners, " WICK_SCALES##n ")", \
            "bool align_corners, ", (up<mode, __VA_ARGS__>), (upVec<mode, n>))
#define WICK_NEAR(name, n, mode, ...)                                         \
  WICK_PAIR(name #n "d", kOutSame | kKeepsOrder,                              \
            "(Tensor self, int[" #n "] output_size, " WICK_SCALES##n ")", "", \
            (near<mode, __VA_ARGS__>), (nearVec<mode, n>))
#define WICK_NEAREST(name, mode)                                           \
  WICK_NEAR(name, 1, mode, Scale), WICK_NEAR(name, 2, mode, Scale, Scale), \
      WICK_NEAR(name, 3, mode, Scale, Scale, Scale)

constexpr OperatorRecord kUpsampleRecords[] = {
    WICK_NEAREST("upsample_nearest", Mode::Nearest),
    WICK_NEAREST("_upsample_nearest_exact", Mode::NearestExact),
    WICK_UP("upsample_linear1d", 1, Mode::Linear, kOutSame | kKeepsOrder, Scale),
    WICK_UP("upsample_bilinear2d", 2, Mode::Linear, kOutSame | kKeepsOrder, Scale, Scale),
    WICK_UP("upsample_trilinear3d", 3, Mode::Linear, kOutSame | kKeepsOrder, Scale, Scale, Scale),
    WICK_UP("upsample_bicubic2d", 2, Mode::Cubic, kOutSame | kKeepsOrder, Scale, Scale),
    WICK_UP("_upsample_bilinear2d_aa", 2, Mode::LinearAntialias, kNoFlags, Scale, Scale),
    WICK_UP("_upsample_bicubic2d_aa", 2, Mode::CubicAntialias, kNoFlags, Scale, Scale),
    {"wick::upsample(Tensor self, int[] output_size, str mode, bool align_corners, float[] scales) "
     "-> Tensor",
     WICK_KERNEL(upsampleNamed), kNeutral},
    {"wick::upsample_gradient(Tensor grad_output, int[] input_size, str mode, bool align_corners, "
     "float[] scales) -> Tensor",
     WICK_KERNEL(upsampleGradient), kNeutral},
};

const RegisterOperators kUpsampleRegistered(kUpsampleRecords);

}  // namespace
}  // namespace wick
