// What kernels of gradients make, on the device "meta", which has nothing else for them.
#include <algorithm>

#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/layers/util.h"

namespace wick::lazy {

namespace {

// (Tensor grad_output, int[] size, …)
void nllGradient(CallFrame& frame) {
  const Tensor gradient = frame.args[0].toTensor();
  frame.results[0] =
      IValue(Tensor::empty(frame.args[1].toDims(), gradient.dtype(), gradient.device()));
}

// Results like the input, and two of its channels.
void normResults(CallFrame& frame, const Tensor& input, const char* what, bool others_fit = true) {
  WICK_CHECK(others_fit && input.dim() >= 2 && input.isContiguous() && isFloating(input.dtype()) &&
                 !isReducedFloat(input.dtype()) && input.numel() > 0,
             "{}: not available on device meta", what);
  const Tensor channels = Tensor::empty({input.size(1)}, input.dtype(), input.device());
  frame.results[0] = IValue(Tensor::empty(input.sizes(), input.dtype(), input.device()));
  frame.results[1] = IValue(channels);
  frame.results[2] = IValue(Tensor::emptyLike(channels, channels.dtype()));
}

// (Tensor grad_output, Tensor input, Tensor? weight, …)
void normGradient(CallFrame& frame) {
  const Tensor gradient = frame.args[0].toTensor(), input = frame.args[1].toTensor();
  normResults(frame, input, "gradients of normalization", input.dtype() == gradient.dtype());
}

// (Tensor input, …)
void normInTraining(CallFrame& frame) {
  normResults(frame, frame.args[0].toTensor(), "normalization");
}

// (Tensor values, Tensor indices, int[] sizes, int n, …)
void scattered(CallFrame& frame) {
  const Tensor values = frame.args[0].toTensor(), indices = frame.args[1].toTensor();
  const DimVector sizes = frame.args[2].toDims();
  const auto dims = static_cast<int64_t>(sizes.size());
  const int64_t n = frame.args[3].toInt();
  WICK_CHECK(indices.dtype() == DType::Long && indices.dim() == dims && n >= 0 && n <= dims &&
                 std::ranges::equal(values.sizes(), indices.sizes()) && indices.numel() > 0 &&
                 checkedNumel(sizes) > 0,
             "gradients of maxima: not available on device meta");
  const bool channels_last = n == dims - 2 && isChannelsLast(indices);
  frame.results[0] = IValue(
      Tensor::empty(sizes, values.dtype(), values.device(),
                    channels_last ? indices.suggestMemoryFormat() : MemoryFormat::Contiguous));
}

// (Tensor grad_output, Tensor indices, int num_weights, …)
void embeddingGradient(CallFrame& frame) {
  const Tensor gradient = frame.args[0].toTensor(), indices = frame.args[1].toTensor();
  const int64_t rows = frame.args[2].toInt();
  const bool positions = indices.dtype() == DType::Long || indices.dtype() == DType::Int;
  int64_t elements = 0;
  WICK_CHECK(positions && gradient.dim() >= 1 && rows >= 0 &&
                 !__builtin_mul_overflow(indices.numel(), gradient.size(-1), &elements) &&
                 gradient.numel() == elements,
             "gradients of embeddings: not available on device meta");
  frame.results[0] =
      IValue(Tensor::empty({rows, gradient.size(-1)}, gradient.dtype(), gradient.device()));
}

constexpr DeviceKernel kMetaResultsKernels[] = {
    {"aten::embedding_dense_backward", embeddingGradient},
    {"wick::plane_scatter", scattered},
    {"wick::max_pool_gradient", scattered},
    {"wick::batch_norm_train", normInTraining},
    {"wick::nll_loss_gradient", nllGradient},
    {"wick::batch_norm_gradient", normGradient},
};
const RegisterDeviceKernels kMetaResultsRegistered(DeviceType::Meta, kMetaResultsKernels);

}  // namespace

}  // namespace wick::lazy
