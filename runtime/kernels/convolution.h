// Convolution and transposed convolution in one to three spatial dimensions.
#pragma once

#include "core/tensor.h"
#include "runtime/kernels/activation.h"

namespace wick {

struct ConvolutionParams {
  DimVector stride;         // one entry a spatial dimension, as all the vectors
  DimVector padding;        // before the first element
  DimVector padding_after;  // after the last; equal to `padding` but for padding="same"
  DimVector dilation;
  DimVector output_padding;  // transposed only
  int64_t groups = 1;
  bool transposed = false;
  // A transposed one answers channels-last to an input that is; otherwise it is row-major.
  bool keeps_layout = false;
};

// The sizes [N, C_out, spatial…] of the result. RuntimeError when the shapes do not fit.
DimVector convolutionOutputSize(const char* op, const Tensor& input, const Tensor& weight,
                                const Tensor& bias, const ConvolutionParams& params);

// activation(convolution(input, weight) + bias + residual); `bias` and `residual` may be undefined.
// `input` is [N, C_in, spatial…], `weight` [C_out, C_in / groups, kernel…] (transposed: [C_in,
// C_out / groups, kernel…]). All dtypes but bool; the result is channels-last when the input or
// the weight is and nothing is transposed (or `keeps_layout`). Packed weights are kept with the weight's storage.
Tensor convolution(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const ConvolutionParams& params, const Tensor& residual = {},
                   Activation activation = Activation::None);

// Packs the weight of such a convolution (no transposed one) now rather than in the first call, if
// it is large and its layout does not depend on the size of the images.
void packConvolutionWeight(const Tensor& weight, bool has_bias, const ConvolutionParams& params,
                           bool has_residual, Activation activation);

// As startProducts (runtime/kernels/gemm.h), for convolutions.
void startConvolutions();

namespace onednn {
// The dtypes that oneDNN computes. `channels_last` says which layout the result has.
Tensor convolution(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const ConvolutionParams& params, const Tensor& residual, Activation activation,
                   IntSpan output_size, bool channels_last);
// The same for weights of any size, asking for the layouts of images of 7 to 56 points a side.
void packConvolutionWeight(const char* op, const Tensor& weight, bool has_bias,
                           const ConvolutionParams& params, bool has_residual,
                           Activation activation);
}  // namespace onednn

}  // namespace wick
