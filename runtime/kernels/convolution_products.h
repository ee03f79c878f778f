// Convolutions of float32 as one matrix product for all samples: the columns [steps, patch] of the
// input, where each row is what the kernel reads in one step, times the weight as it lies in
// memory. oneDNN's own convolutions want weights in layouts of their own. In training each step
// changes all weights, and where images are small it would take longer to turn a weight around
// than to multiply by it.
#pragma once

#include "runtime/kernels/convolution.h"

namespace wick::convproducts {

// What is computed; each has its own balance of columns against turned weights.
enum class Purpose { Output, InputGradient, WeightGradient };

// Whether a product is expected to take less time than oneDNN's convolution with a weight that has
// changed since it was last used. Depends on the sizes alone. False where these functions cannot
// compute it: transposed ones, several groups, empty tensors, patches without end.
bool pays(Purpose purpose, IntSpan input_size, IntSpan weight_size, IntSpan output_size,
          const ConvolutionParams& params);

// convolution(input, weight) + bias, which may be undefined: [N, C_out, spatial…], channels
// innermost. `output_size` is what convolutionOutputSize says. Strides may be any.
Tensor output(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
              IntSpan output_size, const ConvolutionParams& params);

// The gradient for the input, which has `input_size`: channels-last when `grad` is, else
// contiguous.
Tensor inputGradient(const char* op, const Tensor& grad, const Tensor& weight, IntSpan input_size,
                     const ConvolutionParams& params);

// The gradient for the weight, which has `weight_size`: contiguous.
Tensor weightGradient(const char* op, const Tensor& grad, const Tensor& input, IntSpan weight_size,
                      const ConvolutionParams& params);

}  // namespace wick::convproducts
