// The p-norm over dimensions, for kernels that are composed of it.
#pragma once

#include <cmath>
#include <complex>
#include <optional>

#include "core/convert.h"
#include "core/tensor.h"

namespace wick {

// (sum |x|^p)^(1/p) over `dims` (all when empty); p may be 0 or infinite. The result is real.
Tensor vectorNorm(const char* op, const Tensor& self, double p, IntSpan dims, bool keepdim,
                  std::optional<DType> dtype);

// |v|, computed in float64.
template <class T>
double magnitude(T v) {
  if constexpr (kIsComplex<T>) {
    return std::abs(std::complex<double>(v));
  } else {
    return std::abs(static_cast<double>(v));
  }
}

}  // namespace wick
