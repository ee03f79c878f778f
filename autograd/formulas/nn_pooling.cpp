// Pooling and its inverse.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNnPoolingHelpers[] = {
    {"average_again", R"(
def average_again(x: Tensor, n: int, kernel_size: List[int], stride: List[int], padding: List[int], ceil_mode: bool, count_include_pad: bool, divisor_override: Optional[int]) -> Tensor:
    if n == 1:
        return torch.avg_pool1d(x, kernel_size, stride, padding, ceil_mode, count_include_pad)
    if n == 2:
        return torch.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return torch.avg_pool3d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
)"},
    {"adaptive_average_again", R"(
def adaptive_average_again(x: Tensor, n: int, grad_size: List[int]) -> Tensor:
    output_size = grad_size[len(grad_size) - n:]
    if n == 1:
        return torch.adaptive_avg_pool1d(x, output_size)
    if n == 2:
        return torch.adaptive_avg_pool2d(x, output_size)
    return torch.adaptive_avg_pool3d(x, output_size)
)"},
};

#define WICK_MAX(n)         \
  "return torch.max_pool" n \
  "d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]"
#define WICK_PICKED(n) \
  "results 0\nself: torch.ops.wick.plane_scatter(grad0, result1, self_size, " n ")"
#define WICK_WINDOWS(n)                                                             \
  "results 0\nself: torch.ops.wick.max_pool_gradient(grad0, result1, self_size, " n \
  ", kernel_size, stride, padding, dilation)"
#define WICK_ADAPTIVE(n) "self: torch.ops.wick.adaptive_avg_pool_gradient(grad, self_size, " n ")"
#define WICK_AVERAGE(n, divisor)                               \
  "self: torch.ops.wick.avg_pool_gradient(grad, self_size, " n \
  ", kernel_size, stride, padding, ceil_mode, count_include_pad, " divisor ")"

constexpr FormulaText kNnPoolingFormulas[] = {
    {"aten::max_pool1d", WICK_MAX("1")},
    {"aten::max_pool2d, aten::mkldnn_max_pool2d", WICK_MAX("2")},
    {"aten::max_pool3d", WICK_MAX("3")},
    {"aten::max_pool1d_with_indices", WICK_WINDOWS("1")},
    {"aten::max_pool2d_with_indices", WICK_WINDOWS("2")},
    {"aten::max_pool3d_with_indices", WICK_WINDOWS("3")},
    {"aten::adaptive_max_pool1d", WICK_PICKED("1")},
    {"aten::adaptive_max_pool2d, aten::fractional_max_pool2d", WICK_PICKED("2")},
    {"aten::adaptive_max_pool3d, aten::fractional_max_pool3d", WICK_PICKED("3")},
    {"aten::max_unpool2d", "self: torch.ops.wick.plane_gather(grad, indices, 2)"},
    {"aten::max_unpool3d", "self: torch.ops.wick.plane_gather(grad, indices, 3)"},
    {"wick::plane_scatter, wick::max_pool_gradient",
     "values: torch.ops.wick.plane_gather(grad, indices, n)"},
    {"wick::plane_gather", "self: torch.ops.wick.plane_scatter(grad, indices, self_size, n)"},
    {"aten::avg_pool1d", WICK_AVERAGE("1", "None")},
    {"aten::avg_pool2d", WICK_AVERAGE("2", "divisor_override")},
    {"aten::avg_pool3d", WICK_AVERAGE("3", "divisor_override")},
    {"wick::avg_pool_gradient",
     "grad_output: average_again(grad, n, kernel_size, stride, padding, ceil_mode, "
     "count_include_pad, divisor_override)"},
    {"aten::adaptive_avg_pool1d", WICK_ADAPTIVE("1")},
    {"aten::adaptive_avg_pool2d, aten::_adaptive_avg_pool2d, aten::mkldnn_adaptive_avg_pool2d",
     WICK_ADAPTIVE("2")},
    {"aten::adaptive_avg_pool3d, aten::_adaptive_avg_pool3d", WICK_ADAPTIVE("3")},
    {"wick::adaptive_avg_pool_gradient",
     "grad_output: adaptive_average_again(grad, n, grad_output_size)"},
    {R"(aten::max_pool2d_with_indices_backward, aten::max_pool3d_with_indices_backward,
         aten::adaptive_max_pool2d_backward, aten::adaptive_max_pool3d_backward,
         aten::fractional_max_pool2d_backward, aten::fractional_max_pool3d_backward,
         aten::avg_pool2d_backward, aten::avg_pool3d_backward, aten::_adaptive_avg_pool2d_backward,
         aten::_adaptive_avg_pool3d_backward, aten::nll_loss_backward, aten::nll_loss2d_backward)",
     "others"},
};
const RegisterFormulas kNnPoolingRegistered(kNnPoolingFormulas, kNnPoolingHelpers);

}  // namespace

}  // namespace wick::autograd
