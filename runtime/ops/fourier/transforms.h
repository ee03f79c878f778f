// What Fourier transforms check on every device, and how their results are scaled.
#pragma once

#include "core/tensor.h"

namespace wick::ops::fourier {

// The dimensions along which to transform, wrapped, and what the result is multiplied by.
struct Transform {
  DimVector dims;
  double scale = 1;
  // All but the last one, whose numbers are real on one side.
  IntSpan others() const { return IntSpan(dims).first(dims.size() - 1); }
};
// Of the arguments of _fft_c2c, _fft_r2c and _fft_c2r; RuntimeError when they do not fit together. Without a dimension the
// first of them copies; the others must have one. The last gives n real numbers.
Transform planComplex(const Tensor& self, const DimVector& dim, int64_t normalization);
Transform planOfReal(const Tensor& self, const DimVector& dim, int64_t normalization);
Transform planToReal(const Tensor& self, const DimVector& dim, int64_t normalization, int64_t n);

// The sizes of frames [batch, count, n] that are added up, each `hop` elements behind the one before.
DimVector overlapSizes(const Tensor& frames, int64_t hop);

// Cut or padded with zeros to `size` along a dimension.
Tensor fitted(const char* op, const Tensor& t, int64_t d, int64_t size);
// As transforms on the CPU scale their results: each part by itself, so that zeros keep their signs.
Tensor scaled(const Tensor& t, double scale);

}  // namespace wick::ops::fourier
