// PyTorch's operators for gradients of pooling and of the negative log likelihood, which are made
// of those that the formulas call.
#include "runtime/ops/boxing.h"
#include "runtime/ops/call.h"

namespace wick::autograd {

namespace {

const OperatorHandle kMaximum{"wick::max_pool_gradient", ""};
const OperatorHandle kScatter{"wick::plane_scatter", ""};
const OperatorHandle kAverage{"wick::avg_pool_gradient", ""};
const OperatorHandle kAdaptiveAverage{"wick::adaptive_avg_pool_gradient", ""};
const OperatorHandle kNll{"wick::nll_loss_gradient", ""};

template <int64_t N>
Tensor maxPoolBackward(const Tensor& grad, const Tensor& self, const DimVector& kernel_size,
                       const DimVector& stride, const DimVector& padding, const DimVector& dilation,
                       bool, const Tensor& indices) {
  return kMaximum(grad, indices, DimVector(self.sizes()), N, kernel_size, stride, padding,
                  dilation);
}
template <int64_t N>
Tensor adaptiveMaxPoolBackward(const Tensor& grad, const Tensor& self, const Tensor& indices) {
  return kScatter(grad, indices, DimVector(self.sizes()), N);
}
template <int64_t N>
Tensor fractionalMaxPoolBackward(const Tensor& grad, const Tensor& self, const DimVector&,
                                 const DimVector&, const Tensor& indices) {
  return kScatter(grad, indices, DimVector(self.sizes()), N);
}
template <int64_t N>
Tensor avgPoolBackward(const Tensor& grad, const Tensor& self, const DimVector& kernel_size,
                       const DimVector& stride, const DimVector& padding, bool ceil_mode,
                       bool count_include_pad, std::optional<int64_t> divisor) {
  return kAverage(grad, DimVector(self.sizes()), N, kernel_size, stride, padding, ceil_mode,
                  count_include_pad, divisor);
}
template <int64_t N>
Tensor adaptiveAvgPoolBackward(const Tensor& grad, const Tensor& self) {
  return kAdaptiveAverage(grad, DimVector(self.sizes()), N);
}
Tensor nllLossBackward(const Tensor& grad, const Tensor& self, const Tensor& target,
                       const Tensor& weight, int64_t reduction, int64_t ignore_index,
                       const Tensor&) {
  return kNll(grad, DimVector(self.sizes()), target, weight, reduction, ignore_index);
}

#define WICK_MAX(n)                                                                     \
  "(Tensor grad_output, Tensor self, int[" n "] kernel_size, int[" n "] stride, int[" n \
  "] padding, int[" n "] dilation, bool ceil_mode, Tensor indices) -> Tensor"
#define WICK_AVERAGE(n)                                                                 \
  "(Tensor grad_output, Tensor self, int[" n "] kernel_size, int[" n "] stride, int[" n \
  "] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor"
#define WICK_FRACTIONAL(n)                                           \
  "(Tensor grad_output, Tensor self, int[" n "] kernel_size, int[" n \
  "] output_size, Tensor "                                           \
  "indices) -> Tensor"
#define WICK_NLL                                                                         \
  "(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, int " \
  "ignore_index, Tensor total_weight) -> Tensor"

constexpr OperatorRecord kKernelsNnBackwardRecords[] = {
    {"aten::max_pool2d_with_indices_backward" WICK_MAX("2"), WICK_KERNEL(maxPoolBackward<2>),
     kNeutral},
    {"aten::max_pool3d_with_indices_backward" WICK_MAX("3"), WICK_KERNEL(maxPoolBackward<3>),
     kNeutral},
    {"aten::adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> "
     "Tensor",
     WICK_KERNEL(adaptiveMaxPoolBackward<2>), kNeutral},
    {"aten::adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> "
     "Tensor",
     WICK_KERNEL(adaptiveMaxPoolBackward<3>), kNeutral},
    {"aten::fractional_max_pool2d_backward" WICK_FRACTIONAL("2"),
     WICK_KERNEL(fractionalMaxPoolBackward<2>), kNeutral},
    {"aten::fractional_max_pool3d_backward" WICK_FRACTIONAL("3"),
     WICK_KERNEL(fractionalMaxPoolBackward<3>), kNeutral},
    {"aten::avg_pool2d_backward" WICK_AVERAGE("2"), WICK_KERNEL(avgPoolBackward<2>), kNeutral},
    {"aten::avg_pool3d_backward" WICK_AVERAGE("3"), WICK_KERNEL(avgPoolBackward<3>), kNeutral},
    {"aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
     WICK_KERNEL(adaptiveAvgPoolBackward<2>), kNeutral},
    {"aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
     WICK_KERNEL(adaptiveAvgPoolBackward<3>), kNeutral},
    {"aten::nll_loss_backward" WICK_NLL, WICK_KERNEL(nllLossBackward), kNeutral},
    {"aten::nll_loss2d_backward" WICK_NLL, WICK_KERNEL(nllLossBackward), kNeutral},
};
const RegisterOperators kKernelsNnBackwardRegistered(kKernelsNnBackwardRecords);

}  // namespace

}  // namespace wick::autograd
