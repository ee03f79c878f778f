// Discrete Fourier transforms of tensors along dimensions, of any length, on all threads. Each is
// computed in the tensor's own precision: float or double.
#pragma once

#include "core/tensor.h"

namespace wick::fft {

// All take tensors however they lie, and give new row-major ones. `forward` chooses exp(-2 pi i j k
// / n), else the sign is plus; the result is multiplied by `scale`. Dimensions are wrapped already,
// and their lengths positive where the tensor has elements.

// Complex, along each of the dimensions.
Tensor complexToComplex(const Tensor& input, IntSpan dims, bool forward, double scale);
// Real along one dimension: the first n/2 + 1 numbers of the result, or all.
Tensor realToComplex(const Tensor& x, int64_t dim, bool forward, bool onesided, double scale);
// The other way: n real numbers from the first n/2 + 1 complex ones, which must be there. The
// imaginary parts that would not let the result be real are not looked at.
Tensor complexToReal(const Tensor& input, int64_t dim, int64_t n, bool forward, double scale);

}  // namespace wick::fft
