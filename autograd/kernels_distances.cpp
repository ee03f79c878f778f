// Gradients of distances between rows, without the differences of all pairs in memory.
#include <cmath>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/values/pairs.h"

namespace wick::autograd {

namespace {

// Adds the gradient of one distance, of rows a and b, to that of a. A distance of zero has none.
template <class T>
void addSlope(const T* a, const T* b, int64_t n, double grad, double distance, double p, T* out) {
  if (p == 0 || (distance == 0 && p != 1)) return;
  const double scale = p == 1 || std::isinf(p) ? grad : grad / std::pow(distance, p - 1);
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    if (d == 0) continue;
    const double sign = d > 0 ? 1 : d < 0 ? -1 : d;
    double slope;
    if (p == 2) {
      slope = scale * d;
    } else if (p == 1) {
      slope = scale * sign;
    } else if (std::isinf(p)) {
      // The distance was rounded to T.
      slope = static_cast<T>(std::abs(d)) == static_cast<T>(distance) ? scale * sign : 0;
    } else {
      slope = scale * sign * std::pow(std::abs(d), p - 1);
    }
    out[i] += static_cast<T>(slope);
  }
}

// Of x1 [..., r, n], whose distances from the rows of x2 [..., s, n] these are [..., r, s].
Tensor cdistBackward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                     const Tensor& cdist) {
  const char* op = "_cdist_backward";
  const auto [a, b, g, d] = linalg::cdistGradientOf(op, grad, x1, x2, p, cdist);
  const int64_t r = a.size(-2), s = b.size(-2), n = a.size(-1);
  const int64_t rows = checkedNumel(a.sizes().first(static_cast<size_t>(a.dim() - 1)));
  const Tensor out = Tensor::zeros(a.sizes(), a.dtype());
  dispatch<kFloats>(op, a.dtype(), [&]<class T>() {
    parallelFor(rows, 1 + 8192 / (1 + s * n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t j = 0; j < s; ++j) {
          addSlope(a.data<T>() + row * n, b.data<T>() + (row / r * s + j) * n, n,
                   static_cast<double>(g.data<T>()[row * s + j]),
                   static_cast<double>(d.data<T>()[row * s + j]), p, out.data<T>() + row * n);
        }
      }
    });
  });
  return out.to(x1.dtype());
}

// Of the distances of all pairs of rows i < j.
Tensor pdistBackward(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist) {
  const char* op = "_pdist_backward";
  linalg::checkPdistGradient(op, grad, self, p, pdist);
  const int64_t rows = self.size(0), n = self.size(1);
  const Tensor x = self.contiguous(), g = grad.contiguous(), d = pdist.contiguous();
  const Tensor out = Tensor::zeros(x.sizes(), x.dtype());
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    parallelFor(rows, 1 + 8192 / (1 + rows * n), [&](int64_t begin, int64_t end) {
      Pace pace;
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < rows; ++j) {
          pace.step(1 + n);
          if (i == j) continue;
          const int64_t low = std::min(i, j), high = std::max(i, j);
          // The pairs of row `low` follow those of all rows above it.
          const int64_t at = low * (2 * rows - low - 1) / 2 + high - low - 1;
          addSlope(x.data<T>() + i * n, x.data<T>() + j * n, n,
                   static_cast<double>(g.data<T>()[at]), static_cast<double>(d.data<T>()[at]), p,
                   out.data<T>() + i * n);
        }
      }
    });
  });
  return out;
}

constexpr OperatorRecord kKernelsDistancesRecords[] = {
    {"aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
     WICK_KERNEL(cdistBackward)},
    {"aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
     WICK_KERNEL(pdistBackward)},
};
const RegisterOperators kKernelsDistancesRegistered(kKernelsDistancesRecords);

}  // namespace

}  // namespace wick::autograd
