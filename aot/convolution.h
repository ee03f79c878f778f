// Convolutions that compiled models compute without a library.
#pragma once

#include <optional>

#include "aot/program.h"
#include "runtime/kernels/convolution.h"

namespace wick::aot {

// The step, with its packed weight among the constants of the recording, when oneDNN would compute the
// convolution in the order that wick_aot_convolution.h has: on a processor with AVX2 and without
// AVX-512, with a finite weight that is known; of standalone programs wherever that header can; with `winograd` by that
// method (wick_aot_winograd.h) where it pays. `from`, `to`, `bias` and `residual` are left to the caller. Images are
// [samples, channels, spatial…].
std::optional<ConvolutionStep> ownConvolution(const Tensor& weight, bool has_bias,
                                              const ConvolutionParams& params, bool has_residual,
                                              Activation activation, IntSpan input, IntSpan output);

// A weight [groups * results, channels, kernel…] as wick_aot_convolution.h wants it.
Tensor packConvolution(const Tensor& weight, int64_t groups);

// A weight [results, channels, 3, 3] as wick_aot_winograd.h wants it; results are a multiple of 16.
Tensor packWinograd(const Tensor& weight);
// How many of `tiles` it computes at a time, and how many elements of scratch those have.
int64_t winogradTiles(int64_t tiles, int64_t channels, int64_t results);
int64_t winogradScratch(int64_t tiles_at_once, int64_t channels, int64_t results);

}  // namespace wick::aot
