// What kernels do for tensors that are not on the CPU: the functions of gemm.h, convolution.h and
// pooling.h come here for them, so that operators above need not ask.
#pragma once

#include "runtime/kernels/convolution.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/pooling.h"

namespace wick {

// Of a type of device. Arguments are checked already, as far as shapes and dtypes of the CPU go.
class DeviceLayers {
 public:
  virtual ~DeviceLayers() = default;
  virtual Tensor batchedProduct(const char* op, const Tensor& a, const Tensor& b) = 0;
  virtual Tensor linearProduct(const char* op, const Tensor& x, const Tensor& weight,
                               const Tensor& bias, const Epilogue& epilogue) = 0;
  virtual Tensor convolution(const char* op, const Tensor& input, const Tensor& weight,
                             const Tensor& bias, const ConvolutionParams& params,
                             const Tensor& residual, Activation activation) = 0;
  virtual pooling::MaxResult maxPool(const char* op, const Tensor& x, const pooling::Axes& axes,
                                     bool want_indices) = 0;
  virtual Tensor averagePool(const char* op, const Tensor& x, const pooling::Axes& axes,
                             bool count_padding, std::optional<int64_t> divisor) = 0;
};

// Throws RuntimeError that names the operator when the device has none.
DeviceLayers& deviceLayers(const char* op, Device device);
// Set once, before anything runs.
void setDeviceLayers(DeviceType type, DeviceLayers* layers);

}  // namespace wick
