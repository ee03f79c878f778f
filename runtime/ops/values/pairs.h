// What operators on the distances of rows check on every device.
#pragma once

#include <cstdint>
#include <optional>

#include "core/error.h"
#include "core/tensor.h"

namespace wick::linalg {

// n (n - 1) / 2. RuntimeError that names `op` when that is too large for any tensor.
inline int64_t pairsOf(const char* op, int64_t n) {
  constexpr int64_t kMost = int64_t{1} << 31;
  WICK_CHECK(n <= kMost, "{}: {} rows have too many pairs", op, n);
  return n * (n - 1) / 2;
}

// RuntimeError when cdist has no distances for these arguments.
void checkDistances(const Tensor& x1, const Tensor& x2, double p);
// Whether the distances of so many rows and others are computed by a product: where there are more than 25 rows, always, or
// never, as `mode` 0, 1 or 2 says; of the 2-norm alone. RuntimeError for another mode.
bool distancesByProduct(double p, std::optional<int64_t> mode, int64_t rows, int64_t others);

// The arguments of a gradient of cdist, each for the whole batch; contiguous, no 16-bit floats.
struct CdistGradient {
  Tensor x1, x2, grad, distances;  // [..., r, n], [..., s, n], [..., r, s] twice
};
// RuntimeError when they do not fit together.
CdistGradient cdistGradientOf(const char* op, const Tensor& grad, const Tensor& x1,
                              const Tensor& x2, double p, const Tensor& distances);
// RuntimeError when the arguments of a gradient of pdist do not fit together.
void checkPdistGradient(const char* op, const Tensor& grad, const Tensor& self, double p,
                        const Tensor& distances);

}  // namespace wick::linalg
