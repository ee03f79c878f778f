// Convolution and transposed convolution in one to three spatial dimensions.
#pragma once

#include <string_view>

#include "core/tensor.h"

namespace wick {

enum class Activation : uint8_t { None, Relu, Sigmoid, Tanh, Gelu, Silu, HardTanh, HardSwish };
// "none" or "", "relu", "sigmoid", "tanh", "gelu", "silu", "relu6", "hardswish"; RuntimeError for
// another name.
Activation activationFromName(std::string_view name);

struct ConvolutionParams {
  DimVector stride;         // one entry a spatial dimension, as all the vectors
  DimVector padding;        // before the first element
  DimVector padding_after;  // after the last; equal to `padding` but for padding="same"
  DimVector dilation;
  DimVector output_padding;  // transposed only
  int64_t groups = 1;
  bool transposed = false;
};

// The sizes [N, C_out, spatial…] of the result. RuntimeError when the shapes do not fit.
DimVector convolutionOutputSize(const char* op, const Tensor& input, const Tensor& weight,
                                const Tensor& bias, const ConvolutionParams& params);

// activation(convolution(input, weight) + bias + residual); `bias` and `residual` may be undefined.
// `input` is [N, C_in, spatial…], `weight` [C_out, C_in / groups, kernel…] (transposed: [C_in,
// C_out / groups, kernel…]). All dtypes but bool; the result is channels-last when the input or
// the weight is and nothing is transposed. Packed weights are kept with the weight's storage.
Tensor convolution(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const ConvolutionParams& params, const Tensor& residual = {},
                   Activation activation = Activation::None);

// As startProducts (runtime/kernels/gemm.h), for convolutions.
void startConvolutions();

namespace onednn {
// The dtypes that oneDNN computes. `channels_last` says which layout the result has.
Tensor convolution(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const ConvolutionParams& params, const Tensor& residual, Activation activation,
                   IntSpan output_size, bool channels_last);
}  // namespace onednn

}  // namespace wick
