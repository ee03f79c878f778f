// Statistics and scaling for batch, instance, group and layer normalization, in float32 and
// float64. Statistics are computed in float64 whatever the dtype.
#pragma once

#include "core/counted_vector.h"
#include "core/tensor.h"

namespace wick::normalization {

struct MeanVariance {
  double mean;
  double variance;  // divided by the count, not by one less
};

// Of each index of dimension 1, over all other dimensions; any layout.
CountedVector<MeanVariance> channelStatistics(const char* op, const Tensor& x);
// Of each of the `rows` equal parts of a row-major tensor.
CountedVector<MeanVariance> rowStatistics(const char* op, const Tensor& x, int64_t rows);

// Of each sample's groups of channels, of a tensor [N, C, pixels…] with elements whose channels
// `groups` divides; any layout.
CountedVector<MeanVariance> groupStatistics(const char* op, const Tensor& x, int64_t groups);

// out = input * scale + shift, with one scale and shift for each index of dimension 1 and, when they
// hold `samples` times as many, of dimension 0 too. T's precision; the result is dense in the
// memory order of `input` (row-major unless it is channels-last).
Tensor scaleChannels(const char* op, const Tensor& input, const CountedVector<double>& scale,
                     const CountedVector<double>& shift);

// Rows of `width` elements of a row-major tensor: (x - mean) * rstd * weight + bias. `weight` and
// `bias` have `width` elements or are undefined. Writes to `out`; mean and rstd (one a row, of x's
// dtype) may be undefined.
void normalizeRows(const char* op, const Tensor& x, int64_t width, const Tensor& weight,
                   const Tensor& bias, double eps, const Tensor& out, const Tensor& mean,
                   const Tensor& rstd);

}  // namespace wick::normalization
