#include "runtime/ops/values/pairs.h"

#include "runtime/ops/layers/util.h"

namespace wick::linalg {

void checkDistances(const Tensor& x1, const Tensor& x2, double p) {
  WICK_CHECK(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1),
             "cdist: X1 and X2 must have at least 2 dimensions and the same number of columns. X1: "
             "{} X2: {}",
             formatInts(x1.sizes()), formatInts(x2.sizes()));
  WICK_CHECK(p >= 0, "cdist only supports non-negative p values");
  WICK_CHECK(x1.dtype() == x2.dtype(), "cdist: expected one dtype, got {} and {}", x1.describe(),
             x2.describe());
}

bool distancesByProduct(double p, std::optional<int64_t> mode, int64_t rows, int64_t others) {
  const int64_t chosen = mode.value_or(0);
  WICK_CHECK(chosen >= 0 && chosen <= 2, "Possible modes: 0, 1, 2, but was: {}", chosen);
  return p == 2 && (chosen == 1 || (chosen == 0 && (rows > 25 || others > 25)));
}

CdistGradient cdistGradientOf(const char* op, const Tensor& grad, const Tensor& x1,
                              const Tensor& x2, double p, const Tensor& distances) {
  WICK_CHECK(x1.dim() >= 2 && x2.dim() >= 2 && distances.dim() >= 2 && x1.size(-1) == x2.size(-1) &&
                 x1.size(-2) == distances.size(-2) && x2.size(-2) == distances.size(-1),
             "{}: distances {} do not fit rows {} and {}", op, formatInts(distances.sizes()),
             formatInts(x1.sizes()), formatInts(x2.sizes()));
  WICK_CHECK(p >= 0, "{}: expected a non-negative p, got {}", op, p);
  WICK_CHECK(x1.dtype() == x2.dtype() && x1.dtype() == distances.dtype() &&
                 x1.dtype() == grad.dtype() && isFloating(x1.dtype()),
             "{}: expected tensors of one floating dtype, got {}, {}, {} and {}", op,
             grad.describe(), x1.describe(), x2.describe(), distances.describe());
  const int64_t r = x1.size(-2), s = x2.size(-2), n = x1.size(-1);
  const IntSpan batch = distances.sizes().first(static_cast<size_t>(distances.dim() - 2));
  const auto whole = [&](const Tensor& t, int64_t rows, int64_t columns) {
    DimVector sizes(batch);
    sizes.push_back(rows);
    sizes.push_back(columns);
    return widened(t).expand(sizes).contiguous();
  };
  return {whole(x1, r, n), whole(x2, s, n), whole(grad, r, s), whole(distances, r, s)};
}

void checkPdistGradient(const char* op, const Tensor& grad, const Tensor& self, double p,
                        const Tensor& distances) {
  WICK_CHECK(self.dim() == 2, "{}: expected a matrix, got {}", op, self.describe());
  WICK_CHECK(p >= 0, "{}: expected a non-negative p, got {}", op, p);
  WICK_CHECK(grad.dim() == 1 && distances.dim() == 1 && grad.numel() == distances.numel() &&
                 distances.numel() == pairsOf(op, self.size(0)) && grad.dtype() == self.dtype() &&
                 distances.dtype() == self.dtype(),
             "{}: distances {} and gradients {} do not fit rows {}", op, distances.describe(),
             grad.describe(), self.describe());
}

}  // namespace wick::linalg
