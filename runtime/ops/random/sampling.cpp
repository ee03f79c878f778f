// Positions by their weights, and Poisson variates, with the draws and the arithmetic of PyTorch's CPU kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/budget.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/paced.h"
#include "runtime/kernels/element_order.h"
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"
#include "runtime/ops/random/checks.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

// Positions in n weights, each as likely as its weight. PyTorch adds the weights in their own
// precision, and what lies between two sums depends on every last bit.
template <class T>
void drawAgain(int64_t n, T* sums, int64_t* to, int64_t samples, Generator& g) {
  T total = sums[n - 1];
  // All sums are divided by the last one. A search looks at few of them, and divides these.
  if (samples > n / 16) {
    for (int64_t i = 0; i < n; ++i) sums[i] /= total;
    total = 1;
  }
  Pace pace;
  for (int64_t s = 0; s < samples; ++s) {
    pace.step();
    to[s] = order::placeOfShare(sums, n, total, g.uniformDouble());
  }
}

// sums[r * n + k] = weights[r * n] + ... + weights[r * n + k] for a few rows: what one row's sum
// waits for the others use.
constexpr int64_t kSummedRows = 8;
template <class T>
void sumRows(const T* weights, int64_t n, int64_t rows, T* sums) {
  if (rows < kSummedRows) {
    for (int64_t r = 0; r < rows; ++r) {
      T total = 0;
      for (int64_t i = 0; i < n; ++i) sums[r * n + i] = total += weights[r * n + i];
    }
    return;
  }
  T totals[kSummedRows] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t r = 0; r < kSummedRows; ++r) {
      sums[r * n + i] = totals[r] += weights[r * n + i];
    }
  }
}

// Refuses weights that nothing can be drawn by.
template <class T>
void checkWeights(const T* weights, int64_t n) {
  uint32_t wrong = 0, some = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T w = weights[i];
    wrong |= w >= 0 ? 0 : 1;
    wrong |= w <= std::numeric_limits<T>::max() ? 0 : 1;
    some |= w > 0 ? 1 : 0;
  }
  WICK_CHECK(wrong == 0, "probability tensor contains either `inf`, `nan` or element < 0");
  WICK_CHECK(some != 0, "invalid multinomial distribution (sum of probabilities <= 0)");
}

// Different positions: those of the largest weights after division by exponential noise.
template <class T>
void drawOnce(const T* weights, int64_t n, int64_t* to, int64_t samples, Generator& g) {
  CountedVector<T> keys(static_cast<size_t>(n));
  CountedVector<int64_t> order(static_cast<size_t>(n));
  Pace pace;
  for (int64_t i = 0; i < n; ++i) {
    pace.step();
    keys[i] = weights[i] / static_cast<T>(-std::log1p(-g.uniformDouble()));
  }
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   paced(pace, [&](int64_t a, int64_t b) { return keys[a] > keys[b]; }));
  std::copy_n(order.begin(), samples, to);
}

}  // namespace

DimVector multinomialSizes(const Tensor& self, int64_t samples, bool replacement) {
  WICK_CHECK(isFloating(self.dtype()),
             "multinomial only supports floating-point dtypes for input, got: {}",
             scalarTypeName(self.dtype()));
  WICK_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  WICK_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  WICK_CHECK(replacement || samples <= self.size(-1),
             "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  DimVector sizes(self.sizes());
  sizes.back() = samples;
  return sizes;
}

namespace {

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, Generator* g) {
  const Tensor t = Tensor::empty(multinomialSizes(self, samples, replacement), DType::Long);
  const int64_t n = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  const Tensor weights =
      (isReducedFloat(self.dtype()) ? self.to(DType::Double) : self).contiguous();
  dispatch<kFloats>("multinomial", weights.dtype(), [&]<class T>() -> void {
    CountedVector<T> sums(static_cast<size_t>(replacement ? std::min(rows, kSummedRows) * n : 0));
    Pace pace;
    for (int64_t r = 0; r < rows; ++r) {
      pace.step(n);
      const T* const row = weights.data<T>() + r * n;
      checkWeights(row, n);
      int64_t* const to = t.data<int64_t>() + r * samples;
      if (replacement) {
        const int64_t place = r % kSummedRows;
        if (place == 0) sumRows(row, n, std::min(rows - r, kSummedRows), sums.data());
        drawAgain(n, sums.data() + place * n, to, samples, *g);
      } else {
        drawOnce(row, n, to, samples, *g);
      }
    }
  });
  return t;
}

// One Poisson variate: inversion by multiplication below ten, transformed rejection (Hörmann 1993)
// above.
int64_t poissonOf(double lambda, Generator& g) {
  if (lambda == 0) return 0;
  if (lambda < 10) {
    double limit = std::exp(-lambda);
    double product = 1;
    for (int64_t k = 0;; ++k) {
      product *= g.uniformDouble();
      if (product <= limit) return k;
    }
  }
  double slam = std::sqrt(lambda);
  double loglam = std::log(lambda);
  double b = 0.931 + 2.53 * slam;
  double a = -0.059 + 0.02483 * b;
  double invalpha = 1.1239 + 1.1328 / (b - 3.4);
  double vr = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    double u = g.uniformDouble() - 0.5;
    double v = g.uniformDouble();
    double us = 0.5 - std::fabs(u);
    int64_t k = truncateTo<int64_t>(std::floor((2 * a / us + b) * u + lambda + 0.43));
    if (us >= 0.07 && v <= vr) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(invalpha) - std::log(a / (us * us) + b) <=
        -lambda + static_cast<double>(k) * loglam - std::lgamma(static_cast<double>(k) + 1)) {
      return k;
    }
  }
}
Tensor poisson(const Tensor& self, Generator* g) {
  Tensor from = self.contiguous();
  Tensor t = Tensor::empty(self.sizes(), self.dtype());
  dispatch<kAnyFloat>("poisson", self.dtype(), [&]<class T>() -> void {
    Pace pace;
    for (int64_t i = 0; i < from.numel(); ++i) {
      pace.step(8);
      double lambda = convert<double>(from.data<T>()[i]);
      WICK_CHECK(lambda >= 0, "invalid Poisson rate, expected rate to be non-negative");
      // No number of events would be found that an int64 holds.
      WICK_CHECK(lambda < 0x1p62, "invalid Poisson rate {}, which is too large", lambda);
      t.data<T>()[i] = convert<T>(poissonOf(lambda, *g));
    }
  });
  return t;
}

const OperatorRecord kSamplingRecords[] = {
    {"aten::multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? "
     "generator=None) -> Tensor",
     WICK_KERNEL(multinomial), kDraw | kOutForm | kOutSame},
    {"aten::poisson(Tensor self, Generator? generator=None) -> Tensor", WICK_KERNEL(poisson),
     kDraw | kOutForm, shapes::likeFirst},
};

const RegisterOperators kSamplingRegistered(kSamplingRecords);

}  // namespace

}  // namespace wick::ops
