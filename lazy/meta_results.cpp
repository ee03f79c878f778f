// What kernels of gradients make, on the device "meta", which has nothing else for them.
#include "core/error.h"
#include "ir/device_kernels.h"

namespace wick::lazy {

namespace {

// (Tensor grad_output, int[] size, …)
void nllGradient(CallFrame& frame) {
  const Tensor gradient = frame.args[0].toTensor();
  frame.results[0] =
      IValue(Tensor::empty(frame.args[1].toDims(), gradient.dtype(), gradient.device()));
}

// (Tensor grad_output, Tensor input, Tensor? weight, …) -> input's, and two of channels.
void normGradient(CallFrame& frame) {
  const Tensor gradient = frame.args[0].toTensor(), input = frame.args[1].toTensor();
  WICK_CHECK(input.dim() >= 2 && input.isContiguous() && input.dtype() == gradient.dtype() &&
                 isFloating(input.dtype()) && !isReducedFloat(input.dtype()) && input.numel() > 0,
             "gradients of normalization: not available on device meta");
  const Tensor channels = Tensor::empty({input.size(1)}, input.dtype(), input.device());
  frame.results[0] = IValue(Tensor::empty(input.sizes(), input.dtype(), input.device()));
  frame.results[1] = IValue(channels);
  frame.results[2] = IValue(Tensor::emptyLike(channels, channels.dtype()));
}

// (Tensor input, …) -> the same normalized, and two of channels.
void normInTraining(CallFrame& frame) {
  const Tensor input = frame.args[0].toTensor();
  WICK_CHECK(input.dim() >= 2 && input.isContiguous() && isFloating(input.dtype()) &&
                 !isReducedFloat(input.dtype()) && input.numel() > 0,
             "normalization: not available on device meta");
  const Tensor channels = Tensor::empty({input.size(1)}, input.dtype(), input.device());
  frame.results[0] = IValue(Tensor::empty(input.sizes(), input.dtype(), input.device()));
  frame.results[1] = IValue(channels);
  frame.results[2] = IValue(Tensor::emptyLike(channels, channels.dtype()));
}

constexpr DeviceKernel kKernels[] = {
    {"wick::batch_norm_train", normInTraining},
    {"wick::nll_loss_gradient", nllGradient},
    {"wick::batch_norm_gradient", normGradient},
};
const RegisterDeviceKernels registered(DeviceType::Meta, kKernels);

}  // namespace

}  // namespace wick::lazy
