// Gradients of normalization over planes of an image [N, C, pixels…]: batch normalization, whose
// statistics are a channel's, and group normalization, whose are a sample's group of channels'.
// With hat = (x - mean) * rstd and the sums over all elements that share statistics,
//
//   input:  rstd * (w * g - sum(w * g) / count - hat * sum(w * g * hat) / count)
//   weight: sum(g * hat)      bias: sum(g)
//
// so two sums of each plane are all that is needed, and a second pass gives the first line.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/normalization.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/normalization.h"
#include "runtime/ops/layers/util.h"

namespace wick::autograd {

namespace {

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(32)));
  static constexpr int64_t kCount = 32 / sizeof(T);
  static Vector load(const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }
  static void store(T* to, const Vector& v) { std::memcpy(to, &v, sizeof(v)); }
};

struct Sums {
  double grad = 0, product = 0;
};

// sum(g) and sum(g * (x - mean)), each stretch in its own precision.
template <class T>
Sums planeSums(const T* g, const T* x, int64_t n, T mean) {
  using L = Lanes<T>;
  constexpr int64_t kStretch = 1024, kTogether = 2 * L::kCount;
  Sums all;
  int64_t i = 0;
  while (i + kTogether <= n) {
    const int64_t end = i + std::min(kStretch, (n - i) / kTogether * kTogether);
    typename L::Vector s0{}, s1{}, p0{}, p1{};
    for (; i < end; i += kTogether) {
      const auto g0 = L::load(g + i), g1 = L::load(g + i + L::kCount);
      s0 += g0;
      s1 += g1;
      p0 += g0 * (L::load(x + i) - mean);
      p1 += g1 * (L::load(x + i + L::kCount) - mean);
    }
    s0 += s1;
    p0 += p1;
    for (int64_t k = 0; k < L::kCount; ++k) {
      all.grad += static_cast<double>(s0[k]);
      all.product += static_cast<double>(p0[k]);
    }
  }
  for (; i < n; ++i) {
    all.grad += static_cast<double>(g[i]);
    all.product += static_cast<double>(g[i]) * static_cast<double>(x[i] - mean);
  }
  return all;
}

// Of a plane: out = scale * g + slope * (x - mean) + shift.
struct Line {
  double scale, slope, mean, shift;
};

struct NormShape {
  NormShape(const char* op, const Tensor& grad, const Tensor& input, const Tensor& weight)
      : samples(input.size(0)), channels(input.size(1)) {
    WICK_CHECK(std::ranges::equal(grad.sizes(), input.sizes()) && grad.dtype() == input.dtype(),
               "{}: a gradient {} does not fit an input {}", op, grad.describe(), input.describe());
    checkChannels(op, "weight", weight, channels);
    planes = samples * channels;
    pixels = input.numel() / planes;
  }
  int64_t samples, channels, planes, pixels;
};

// Whether each pixel's channels lie side by side.
bool channelsInnermost(const Tensor& t) {
  return isChannelsLast(t) && t.isContiguous(t.suggestMemoryFormat());
}

// A gradient as its input lies in memory.
Tensor laidOutAs(const Tensor& input, const Tensor& grad) {
  return channelsInnermost(input) ? grad.contiguous(input.suggestMemoryFormat())
                                  : grad.contiguous();
}
Tensor denseInput(const Tensor& input) {
  return channelsInnermost(input) ? input : input.contiguous();
}

CountedVector<double> toDoubles(const Tensor& t) {
  const Tensor d = t.to(DType::Double).contiguous();
  return CountedVector<double>(d.data<double>(), d.data<double>() + d.numel());
}

Tensor fromDoubles(const CountedVector<double>& values, DType dtype) {
  return Tensor::fromData(values.data(), DimVector{static_cast<int64_t>(values.size())}).to(dtype);
}

// Adds what planeSums() sums of `rows` rows of channels to the sums of each channel.
template <class T>
void columnSums(const T* g, const T* x, int64_t rows, int64_t channels, const T* mean, T* grad,
                T* product) {
  using L = Lanes<T>;
  int64_t c = 0;
  for (; c + L::kCount <= channels; c += L::kCount) {
    const auto middle = L::load(mean + c);
    typename L::Vector s{}, p{};
    for (int64_t row = 0; row < rows; ++row) {
      const auto v = L::load(g + row * channels + c);
      s += v;
      p += v * (L::load(x + row * channels + c) - middle);
    }
    L::store(grad + c, L::load(grad + c) + s);
    L::store(product + c, L::load(product + c) + p);
  }
  for (; c < channels; ++c) {
    for (int64_t row = 0; row < rows; ++row) {
      const T v = g[row * channels + c];
      grad[c] += v;
      product[c] += v * (x[row * channels + c] - mean[c]);
    }
  }
}

// planeSums() of all planes at once, for channels that lie side by side. Blocks of pixels are added
// one after the other, whatever the threads are.
template <class T, class MeanOf>
CountedVector<Sums> sumsOfPlanesLast(const T* g, const T* x, const NormShape& shape,
                                     MeanOf&& mean_of) {
  constexpr int64_t kBlock = 64;
  const int64_t pixels = shape.pixels, blocks = (pixels + kBlock - 1) / kBlock;
  const auto width = static_cast<size_t>(shape.channels);
  CountedVector<T> means, parts(static_cast<size_t>(shape.samples * blocks * 2) * width);
  for (int64_t p = 0; p < shape.planes; ++p) means.push_back(static_cast<T>(mean_of(p)));
  const int64_t work = std::min(kBlock, pixels) * shape.channels;
  parallelFor(shape.samples * blocks, std::max<int64_t>(1, kGrainSize / work),
              [&](int64_t begin, int64_t end) {
                for (int64_t b = begin; b < end; ++b) {
                  const int64_t sample = b / blocks, first = b % blocks * kBlock;
                  const int64_t last = std::min(pixels, first + kBlock);
                  const T* const mean = means.data() + sample * shape.channels;
                  T* const grad = parts.data() + static_cast<size_t>(b * 2) * width;
                  T* const product = grad + width;
                  const int64_t at = (sample * pixels + first) * shape.channels;
                  columnSums(g + at, x + at, last - first, shape.channels, mean, grad, product);
                }
              });
  CountedVector<Sums> sums(static_cast<size_t>(shape.planes));
  for (int64_t b = 0; b < shape.samples * blocks; ++b) {
    const T* const grad = parts.data() + static_cast<size_t>(b * 2) * width;
    Sums* const to = sums.data() + b / blocks * shape.channels;
    for (size_t c = 0; c < width; ++c) {
      to[c].grad += static_cast<double>(grad[c]);
      to[c].product += static_cast<double>(grad[width + c]);
    }
  }
  return sums;
}

// `mean_of(plane)` gives a plane's mean. Both tensors are dense, row-major or with their channels
// innermost.
template <class MeanOf>
CountedVector<Sums> sumsOf(const char* op, const Tensor& g, const Tensor& x, const NormShape& shape,
                           MeanOf&& mean_of) {
  if (channelsInnermost(x)) {
    return dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
      return sumsOfPlanesLast(g.data<T>(), x.data<T>(), shape, mean_of);
    });
  }
  CountedVector<Sums> sums(static_cast<size_t>(shape.planes));
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    const T *pg = g.data<T>(), *px = x.data<T>();
    parallelFor(shape.planes, std::max<int64_t>(1, kGrainSize / shape.pixels),
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    sums[static_cast<size_t>(p)] =
                        planeSums(pg + p * shape.pixels, px + p * shape.pixels, shape.pixels,
                                  static_cast<T>(mean_of(p)));
                  }
                });
  });
  return sums;
}

// The lines of a sample's channels.
template <class T>
struct LastLines {
  const T *scale, *slope, *mean, *shift;
};

template <class T>
void alongRows(const T* g, const T* x, T* out, int64_t rows, int64_t channels,
               const LastLines<T>& lines) {
  using L = Lanes<T>;
  int64_t c = 0;
  for (; c + L::kCount <= channels; c += L::kCount) {
    const auto scale = L::load(lines.scale + c), slope = L::load(lines.slope + c),
               mean = L::load(lines.mean + c), shift = L::load(lines.shift + c);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = row * channels + c;
      L::store(out + at, L::load(g + at) * scale + (L::load(x + at) - mean) * slope + shift);
    }
  }
  for (; c < channels; ++c) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = row * channels + c;
      out[at] = g[at] * lines.scale[c] + (x[at] - lines.mean[c]) * lines.slope[c] + lines.shift[c];
    }
  }
}

// along() for channels that lie side by side.
template <class LineOf>
Tensor alongLast(const char* op, const Tensor& g, const Tensor& x, const NormShape& shape,
                 LineOf&& line_of) {
  Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device(), x.suggestMemoryFormat());
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    CountedVector<T> scale, slope, mean, shift;
    for (int64_t p = 0; p < shape.planes; ++p) {
      const Line line = line_of(p);
      scale.push_back(static_cast<T>(line.scale));
      slope.push_back(static_cast<T>(line.slope));
      mean.push_back(static_cast<T>(line.mean));
      shift.push_back(static_cast<T>(line.shift));
    }
    const T *pg = g.data<T>(), *px = x.data<T>();
    T* po = out.data<T>();
    // Some rows at a time, so that what is the same for all stays in registers.
    constexpr int64_t kRows = 32;
    const int64_t blocks = (shape.pixels + kRows - 1) / kRows;
    const int64_t work = std::min(kRows, shape.pixels) * shape.channels;
    parallelFor(shape.samples * blocks, std::max<int64_t>(1, kGrainSize / work),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const int64_t sample = i / blocks, first = i % blocks * kRows;
                    const int64_t plane = sample * shape.channels;
                    const int64_t at = (sample * shape.pixels + first) * shape.channels;
                    const LastLines<T> lines{scale.data() + plane, slope.data() + plane,
                                             mean.data() + plane, shift.data() + plane};
                    alongRows(pg + at, px + at, po + at, std::min(kRows, shape.pixels - first),
                              shape.channels, lines);
                  }
                });
  });
  return out;
}

template <class LineOf>
Tensor along(const char* op, const Tensor& g, const Tensor& x, const NormShape& shape,
             LineOf&& line_of) {
  if (channelsInnermost(x)) return alongLast(op, g, x, shape, line_of);
  Tensor out = Tensor::empty(x.sizes(), x.dtype());
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    const T *pg = g.data<T>(), *px = x.data<T>();
    T* po = out.data<T>();
    parallelFor(shape.planes, std::max<int64_t>(1, kGrainSize / shape.pixels),
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    const Line line = line_of(p);
                    const T scale = static_cast<T>(line.scale), slope = static_cast<T>(line.slope),
                            mean = static_cast<T>(line.mean), shift = static_cast<T>(line.shift);
                    for (int64_t i = p * shape.pixels; i < (p + 1) * shape.pixels; ++i) {
                      po[i] = pg[i] * scale + (px[i] - mean) * slope + shift;
                    }
                  }
                });
  });
  return out;
}

// `mean` and `rstd` are what native_batch_norm gave in training.
Triple batchNormGradient(const Tensor& grad, const Tensor& input, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, double) {
  const char* op = "batch_norm_gradient";
  channelsOf(op, input);
  if (input.numel() == 0) return gradientsOfNothing(input);
  const Tensor x = denseInput(widened(input)), g = laidOutAs(x, widened(grad));
  const NormShape shape(op, g, x, weight);
  WICK_CHECK(mean.numel() == shape.channels && rstd.numel() == shape.channels,
             "{}: expected statistics of {} channels, got {} and {}", op, shape.channels,
             mean.describe(), rstd.describe());
  const CountedVector<double> m = toDoubles(mean), r = toDoubles(rstd);
  const auto n = static_cast<size_t>(shape.channels);
  const CountedVector<double> w =
      weight.defined() ? toDoubles(weight) : CountedVector<double>(n, 1);
  const auto channel = [&](int64_t plane) { return static_cast<size_t>(plane % shape.channels); };
  const CountedVector<Sums> sums =
      sumsOf(op, g, x, shape, [&](int64_t plane) { return m[channel(plane)]; });
  CountedVector<double> for_weight(n, 0), for_bias(n, 0);
  for (int64_t p = 0; p < shape.planes; ++p) {
    for_weight[channel(p)] += sums[static_cast<size_t>(p)].product;
    for_bias[channel(p)] += sums[static_cast<size_t>(p)].grad;
  }
  const auto count = static_cast<double>(shape.samples * shape.pixels);
  CountedVector<Line> lines;
  for (size_t c = 0; c < n; ++c) {
    const double scale = w[c] * r[c];
    lines.push_back(
        {scale, -scale * r[c] * r[c] * for_weight[c] / count, m[c], -scale * for_bias[c] / count});
    for_weight[c] *= r[c];
  }
  return {along(op, g, x, shape, [&](int64_t plane) { return lines[channel(plane)]; }),
          fromDoubles(for_weight, x.dtype()), fromDoubles(for_bias, x.dtype())};
}

Triple groupNormGradient(const Tensor& grad, const Tensor& input, const Tensor& weight,
                         int64_t groups, double eps) {
  const char* op = "group_norm_gradient";
  checkGroups(op, input, channelsOf(op, input), groups);
  if (input.numel() == 0) return gradientsOfNothing(input);
  const Tensor x = denseInput(widened(input)), g = laidOutAs(x, widened(grad));
  const NormShape shape(op, g, x, weight);
  const int64_t each = shape.channels / groups, rows = shape.samples * groups;
  const auto statistics = normalization::groupStatistics(op, x, groups);
  const auto row = [&](int64_t plane) { return static_cast<size_t>(plane / each); };
  const auto n = static_cast<size_t>(shape.channels);
  const CountedVector<double> w =
      weight.defined() ? toDoubles(weight) : CountedVector<double>(n, 1);
  const CountedVector<Sums> sums =
      sumsOf(op, g, x, shape, [&](int64_t plane) { return statistics[row(plane)].mean; });
  CountedVector<double> for_weight(n, 0), for_bias(n, 0);
  CountedVector<Sums> of_rows(static_cast<size_t>(rows));
  CountedVector<double> rstd;
  for (const auto& s : statistics) rstd.push_back(1 / std::sqrt(s.variance + eps));
  for (int64_t p = 0; p < shape.planes; ++p) {
    const Sums& s = sums[static_cast<size_t>(p)];
    const auto c = static_cast<size_t>(p % shape.channels);
    for_weight[c] += s.product * rstd[row(p)];
    for_bias[c] += s.grad;
    of_rows[row(p)].grad += w[c] * s.grad;
    of_rows[row(p)].product += w[c] * s.product;
  }
  const auto count = static_cast<double>(each * shape.pixels);
  const auto line_of = [&](int64_t plane) -> Line {
    const size_t at = row(plane);
    const double r = rstd[at];
    return {r * w[static_cast<size_t>(plane % shape.channels)],
            -r * r * r * of_rows[at].product / count, statistics[at].mean,
            -r * of_rows[at].grad / count};
  };
  return {along(op, g, x, shape, line_of), fromDoubles(for_weight, x.dtype()),
          fromDoubles(for_bias, x.dtype())};
}

constexpr OperatorRecord kKernelsNnNormGradientsRecords[] = {
    {"wick::batch_norm_gradient(Tensor grad_output, Tensor input, Tensor? weight, Tensor mean, "
     "Tensor rstd, float eps) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(batchNormGradient)},
    {"wick::group_norm_gradient(Tensor grad_output, Tensor input, Tensor? weight, int groups, "
     "float eps) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(groupNormGradient)},
};
const RegisterOperators kKernelsNnNormGradientsRegistered(kKernelsNnNormGradientsRecords);

}  // namespace

}  // namespace wick::autograd
