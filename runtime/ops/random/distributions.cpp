// Gamma, binomial and Dirichlet variates, dropout that returns its mask, and randomized leaky relu,
// with the draws and the arithmetic of PyTorch's CPU kernels.
#include <array>
#include <cmath>
#include <limits>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/random/checks.h"

namespace wick::ops {

namespace {

// Marsaglia and Tsang (2000); shapes below one are drawn at one more and scaled.
double gammaOf(double shape, Generator& g) {
  double scale = 1;
  if (shape < 1) {
    if (shape == 0) return 0;
    scale *= std::pow(1 - g.uniformDouble(), 1 / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    double x = 0, y = 0;
    do {
      x = g.normal();
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y, u = 1 - g.uniformDouble(), xx = x * x;
    if (u < 1 - 0.0331 * xx * xx) return scale * d * v;
    if (std::log(u) < 0.5 * xx + d * (1 - v + std::log(v))) return scale * d * v;
  }
}

template <class T>
T smallestPositive() {
  if constexpr (std::is_same_v<T, double>) {
    return std::numeric_limits<double>::min();
  } else {
    return convert<T>(std::is_same_v<T, Half> ? 6.103515625e-05
                                              : double{std::numeric_limits<float>::min()});
  }
}

void checkShapes(const char* op, const Tensor& shapes) {
  Tensor wide = shapes.to(DType::Double).contiguous();
  for (int64_t i = 0; i < wide.numel(); ++i) {
    const double v = wide.data<double>()[i];
    WICK_CHECK(std::isfinite(v) && v >= 0, "{}: expected finite shapes of at least 0, got {}", op,
               v);
  }
}

Tensor standardGamma(const Tensor& self, Generator* g) {
  checkShapes("_standard_gamma", self);
  Tensor from = self.contiguous(), out = Tensor::empty(self.sizes(), self.dtype());
  dispatch<kAnyFloat>("_standard_gamma", self.dtype(), [&]<class T>() -> void {
    for (int64_t i = 0; i < from.numel(); ++i) {
      T drawn = convert<T>(gammaOf(convert<double>(from.data<T>()[i]), *g));
      out.data<T>()[i] = std::max(smallestPositive<T>(), drawn);
    }
  });
  return out;
}

Tensor sampleDirichlet(const Tensor& self, Generator* g) {
  WICK_CHECK(self.dim() > 0, "_sample_dirichlet: expected one or more dimensions");
  checkShapes("_sample_dirichlet", self);
  Tensor from = self.to(DType::Double).contiguous();
  Tensor drawn = Tensor::empty(self.sizes(), DType::Double);
  for (int64_t i = 0; i < from.numel(); ++i) {
    drawn.data<double>()[i] = gammaOf(from.data<double>()[i], *g);
  }
  Tensor share = ops::div(drawn, sumDims(drawn, DimVector{-1}, true));
  Tensor out = share.to(self.dtype()).contiguous();
  dispatch<kAnyFloat>("_sample_dirichlet", self.dtype(), [&]<class T>() -> void {
    T* data = out.data<T>();
    const T most = convert<T>(1 - std::numeric_limits<double>::epsilon() / 2);
    for (int64_t i = 0; i < out.numel(); ++i) {
      data[i] = std::min(std::max(data[i], smallestPositive<T>()), most);
    }
  });
  return out;
}

// ln(k!) less Stirling's formula.
double stirlingTail(double k) {
  constexpr std::array<double, 10> kSmall = {
      0.0810614667953272,  0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
      0.0166446911898211,  0.0138761288230707, 0.0118967099458917, 0.0104112652619720,
      0.00925546218271273, 0.00833056343336287};
  if (k <= 9) return kSmall[static_cast<size_t>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Counts geometric waiting times that fit into the trials; for a small mean.
double binomialByWaiting(double count, double p, Generator& g) {
  const double log_miss = std::log1p(-p);
  double sum = 0, successes = 0;
  while (true) {
    sum += std::ceil(std::log(g.uniformDouble()) / log_miss);
    if (sum > count) return successes;
    successes += 1;
  }
}

// Transformed rejection with squeeze (Hörmann 1993); for a mean of ten and more.
double binomialByRejection(double count, double p, Generator& g) {
  const double deviation = std::sqrt(count * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = count * p + 0.5, v_r = 0.92 - 4.2 / b, r = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation, m = std::floor((count + 1) * p);
  while (true) {
    const double u = g.uniformDouble() - 0.5;
    double v = g.uniformDouble();
    const double us = 0.5 - std::fabs(u), k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > count) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound = (m + 0.5) * std::log((m + 1) / (r * (count - m + 1))) +
                         (count + 1) * std::log((count - m + 1) / (count - k + 1)) +
                         (k + 0.5) * std::log(r * (count - k + 1) / (k + 1)) + stirlingTail(m) +
                         stirlingTail(count - m) - stirlingTail(k) - stirlingTail(count - k);
    if (v <= bound) return k;
  }
}

double binomialOf(double count, double p, Generator& g) {
  if (!(count > 0) || p <= 0) return 0;
  if (p >= 1) return count;
  if (p != p) return p;
  const bool mirrored = p > 0.5;
  const double q = mirrored ? 1 - p : p;
  const double drawn =
      count * q >= 10 ? binomialByRejection(count, q, g) : binomialByWaiting(count, q, g);
  return mirrored ? count - drawn : drawn;
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator* g) {
  WICK_CHECK(count.dtype() == prob.dtype(),
             "binomial: expected count and prob of one dtype, got "
             "{} and {}",
             toString(count.dtype()), toString(prob.dtype()));
  DimVector sizes = broadcastShapes(count.sizes(), prob.sizes());
  Tensor n = count.expand(sizes).to(DType::Double).contiguous();
  Tensor p = prob.expand(sizes).to(DType::Double).contiguous();
  Tensor out = Tensor::empty(sizes, count.dtype());
  dispatch<kAnyFloat>("binomial", count.dtype(), [&]<class T>() -> void {
    for (int64_t i = 0; i < out.numel(); ++i) {
      const double trials = n.data<double>()[i];
      WICK_CHECK(!std::isinf(trials), "binomial: expected a finite count, got {}", trials);
      out.data<T>()[i] = convert<T>(binomialOf(trials, p.data<double>()[i], *g));
    }
  });
  return out;
}

Pair nativeDropout(const Tensor& input, double p, std::optional<bool> train) {
  if (input.numel() == 0) return {input, Tensor::empty(input.sizes(), input.dtype())};
  if (!train.value_or(true)) return {input, Tensor::full(input.sizes(), 1, DType::Bool)};
  checkDropout(p);
  Tensor mask = ops::bernoulli(Tensor::emptyLike(input, DType::Bool), 1 - p);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return {mulScalar(mul(input, mask), scale), mask};
}

// Negative elements are scaled by a slope drawn for each, which is written to `noise`.
Tensor rreluWithNoise(const Tensor& self, const Tensor& noise, const Scalar& lower,
                      const Scalar& upper, bool training, Generator* g) {
  if (!training) {
    return ops::leakyRelu(self, (lower.toDouble() + upper.toDouble()) / 2);
  }
  const char* op = "rrelu_with_noise";
  WICK_CHECK(noise.dtype() == self.dtype() && std::ranges::equal(noise.sizes(), self.sizes()),
             "{}: expected noise like the input {}, got {}", op, self.describe(), noise.describe());
  markWritten(op, noise);
  Tensor x = self.contiguous(), out = Tensor::empty(self.sizes(), self.dtype());
  Tensor slopes = Tensor::empty(self.sizes(), self.dtype());
  const double low = lower.toDouble(), high = upper.toDouble();
  dispatch<kAnyFloat>(op, self.dtype(), [&]<class T>() -> void {
    for (int64_t i = 0; i < x.numel(); ++i) {
      T value = x.data<T>()[i];
      const bool scaled = convert<double>(value) <= 0;
      const double slope = scaled ? g->uniformDouble() * (high - low) + low : 1;
      slopes.data<T>()[i] = convert<T>(slope);
      out.data<T>()[i] =
          scaled ? convert<T>(convert<double>(value) * convert<double>(convert<T>(slope))) : value;
    }
  });
  noise.copyFrom(slopes);
  return out;
}

Tensor normalFunctional(const Tensor& self, double mean, double std, Generator* g) {
  return ops::normalInto(self.clone(), mean, std, IValue(GeneratorRef(g)));
}

Tensor nativeDropoutBackward(const Tensor& grad_output, const Tensor& mask, double scale) {
  return ops::mulScalar(ops::mul(grad_output, mask), Scalar(scale));
}

const OperatorRecord kDistributionsRecords[] = {
    {"aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
     WICK_KERNEL(standardGamma), kNondeterministic},
    {"aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
     WICK_KERNEL(sampleDirichlet), kNondeterministic},
    {"aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
     WICK_KERNEL(binomial), kDraw},
    {"aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
     WICK_KERNEL(nativeDropoutBackward), kOutForm | kNeutral},
    {"aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
     WICK_KERNEL(nativeDropout), kNondeterministic},
    {"aten::rrelu_with_noise(Tensor self, Tensor noise, Scalar lower=0.125, Scalar "
     "upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor",
     WICK_KERNEL(rreluWithNoise), kNondeterministic | kInplaceForm, nullptr, nullptr,
     "noise if training"},
    {"aten::normal_functional(Tensor self, float mean=0., float std=1., *, Generator? "
     "generator=None) -> Tensor",
     WICK_KERNEL(normalFunctional), kDraw | kNeutral},
};

const RegisterOperators kDistributionsRegistered(kDistributionsRecords);

}  // namespace

}  // namespace wick::ops
