// Gradients of distances between rows, without the differences of all pairs in memory.
#include <cmath>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
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
  WICK_CHECK(x1.dim() >= 2 && x2.dim() >= 2 && cdist.dim() >= 2 && x1.size(-1) == x2.size(-1) &&
                 x1.size(-2) == cdist.size(-2) && x2.size(-2) == cdist.size(-1),
             "{}: distances {} do not fit rows {} and {}", op, formatInts(cdist.sizes()),
             formatInts(x1.sizes()), formatInts(x2.sizes()));
  WICK_CHECK(p >= 0, "{}: expected a non-negative p, got {}", op, p);
  WICK_CHECK(x1.dtype() == x2.dtype() && x1.dtype() == cdist.dtype() && x1.dtype() == grad.dtype(),
             "{}: expected tensors of one dtype, got {}, {}, {} and {}", op, grad.describe(),
             x1.describe(), x2.describe(), cdist.describe());
  const int64_t r = x1.size(-2), s = x2.size(-2), n = x1.size(-1);
  const DimVector batch(cdist.sizes().first(static_cast<size_t>(cdist.dim() - 2)));
  const auto whole = [&](const Tensor& t, int64_t rows, int64_t columns) {
    DimVector sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(columns);
    return widened(t).expand(sizes).contiguous();
  };
  const Tensor a = whole(x1, r, n), b = whole(x2, s, n), g = whole(grad, r, s),
               d = whole(cdist, r, s);
  const Tensor out = Tensor::zeros(a.sizes(), a.dtype());
  dispatch<kFloats>(op, a.dtype(), [&]<class T>() {
    parallelFor(checkedNumel(batch) * r, 1 + 8192 / (1 + s * n), [&](int64_t begin, int64_t end) {
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
  WICK_CHECK(self.dim() == 2, "{}: expected a matrix, got {}", op, self.describe());
  WICK_CHECK(p >= 0, "{}: expected a non-negative p, got {}", op, p);
  const int64_t rows = self.size(0), n = self.size(1);
  WICK_CHECK(grad.dim() == 1 && pdist.dim() == 1 && grad.numel() == pdist.numel() &&
                 pdist.numel() == linalg::pairsOf(op, rows) && grad.dtype() == self.dtype() &&
                 pdist.dtype() == self.dtype(),
             "{}: distances {} and gradients {} do not fit rows {}", op, pdist.describe(),
             grad.describe(), self.describe());
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

constexpr OperatorRecord kRecords[] = {
    {"aten::_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
     WICK_KERNEL(cdistBackward)},
    {"aten::_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor",
     WICK_KERNEL(pdistBackward)},
};
const RegisterOperators registered(kRecords);

}  // namespace

}  // namespace wick::autograd
