// Batch, instance, group and layer normalization.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNnNormalizationHelpers[] = {
    // Low precision is widened, as the kernels do.
    {"norm_widened", R"(
def norm_widened(t: Tensor) -> Tensor:
    if t.dtype == torch.half or t.dtype == torch.bfloat16:
        return t.to(torch.float)
    return t
)"},
    {"norm_inverse_deviation", R"(
def norm_inverse_deviation(centred: Tensor, dims: List[int], eps: float) -> Tensor:
    return torch.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)
)"},
    {"norm_hat", R"(
def norm_hat(input: Tensor, dims: List[int], eps: float) -> Tensor:
    x = norm_widened(input)
    centred = x - x.mean(dims, keepdim=True)
    return centred * norm_inverse_deviation(centred, dims, eps)
)"},
    // The gradient through (x - mean) / deviation, both of x over `dims`.
    {"norm_gradient", R"(
def norm_gradient(grad: Tensor, input: Tensor, dims: List[int], eps: float) -> Tensor:
    x = norm_widened(input)
    g = norm_widened(grad)
    centred = x - x.mean(dims, keepdim=True)
    inverse = norm_inverse_deviation(centred, dims, eps)
    hat = centred * inverse
    return (g - g.mean(dims, keepdim=True) - hat * (g * hat).mean(dims, keepdim=True)) * inverse
)"},
    // All dimensions but that of the channels, and a row of channels as wide as the input.
    {"norm_but_channels", R"(
def norm_but_channels(rank: int) -> List[int]:
    return [d for d in range(rank) if d != 1]
)"},
    {"norm_per_channel", R"(
def norm_per_channel(t: Tensor, rank: int) -> Tensor:
    return norm_widened(t).reshape([-1 if d == 1 else 1 for d in range(rank)])
)"},
    {"norm_channel_scaled", R"(
def norm_channel_scaled(grad: Tensor, weight: Optional[Tensor]) -> Tensor:
    if weight is None:
        return grad
    return grad * norm_per_channel(weight, grad.dim())
)"},
    {"norm_channel_sum", R"(
def norm_channel_sum(t: Tensor) -> Tensor:
    return t.sum(norm_but_channels(t.dim()))
)"},
    {"norm_last", R"(
def norm_last(shape: List[int]) -> List[int]:
    return [d - len(shape) for d in range(len(shape))]
)"},
    {"weighted", R"(
def weighted(grad: Tensor, weight: Optional[Tensor]) -> Tensor:
    return grad if weight is None else grad * weight
)"},
    {"norm_of_groups", R"(
def norm_of_groups(input: Tensor, groups: int, eps: float) -> Tensor:
    rows = input.reshape([input.size(0), groups, -1])
    return norm_hat(rows, [2], eps).reshape(input.size())
)"},
    {"norm_groups_gradient", R"(
def norm_groups_gradient(grad: Tensor, input: Tensor, groups: int, eps: float) -> Tensor:
    shape = [input.size(0), groups, -1]
    return norm_gradient(grad.reshape(shape), input.reshape(shape), [2], eps).reshape(input.size())
)"},
    // What the kernels of the gradients compute, made of other operators: for second derivatives.
    {"batch_norm_gradient_made", R"(
def batch_norm_gradient_made(grad: Tensor, input: Tensor, weight: Optional[Tensor], eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    dims = norm_but_channels(input.dim())
    for_input = norm_gradient(norm_channel_scaled(grad, weight), input, dims, eps)
    for_weight = norm_channel_sum(grad * norm_hat(input, dims, eps))
    return (for_input, for_weight, norm_channel_sum(norm_widened(grad)))
)"},
    {"group_norm_gradient_made", R"(
def group_norm_gradient_made(grad: Tensor, input: Tensor, weight: Optional[Tensor], groups: int, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    for_input = norm_groups_gradient(norm_channel_scaled(grad, weight), input, groups, eps)
    for_weight = norm_channel_sum(grad * norm_of_groups(input, groups, eps))
    return (for_input, for_weight, norm_channel_sum(norm_widened(grad)))
)"},
    {"norm_running_inverse", R"(
def norm_running_inverse(running_var: Optional[Tensor], rank: int, eps: float) -> Tensor:
    assert running_var is not None
    return norm_per_channel(torch.rsqrt(norm_widened(running_var) + eps), rank)
)"},
    {"norm_running_hat", R"(
def norm_running_hat(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], eps: float) -> Tensor:
    assert running_mean is not None
    rank = input.dim()
    return (norm_widened(input) - norm_per_channel(running_mean, rank)) * norm_running_inverse(running_var, rank, eps)
)"},
    {"batch_norm_made", R"(
def batch_norm_made(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor]:
    if training:
        return torch.ops.wick.batch_norm_train(input, weight, bias, running_mean, running_var, momentum, eps)
    return torch.ops.wick.batch_norm_evaluate(input, weight, bias, running_mean, running_var, eps)
)"},
    {"batch_norm_index_made", R"(
def batch_norm_index_made(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], training: bool, momentum: float, eps: float) -> Tuple[Tensor, Tensor, Tensor, Tensor, int]:
    a, b, c = batch_norm_made(input, weight, bias, running_mean, running_var, training, momentum, eps)
    return (a, b, c, torch.empty([0], dtype=torch.uint8), 0)
)"},
    {"norm_repeated", R"(
def norm_repeated(t: Optional[Tensor], times: int) -> Optional[Tensor]:
    if t is None:
        return None
    return t.repeat([times])
)"},
    // The running statistics become the average over the samples.
    {"norm_averaged_into", R"(
def norm_averaged_into(running: Optional[Tensor], each: Optional[Tensor], samples: int) -> int:
    if running is not None and each is not None and samples > 0:
        running.copy_(each.detach().reshape([samples, -1]).mean([0]))
    return 0
)"},
    // Every sample's channels as channels of one sample.
    {"instance_norm_made", R"(
def instance_norm_made(input: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor], use_input_stats: bool, momentum: float, eps: float) -> Tensor:
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError('Expected running_mean and running_var to be defined when use_input_stats is false')
    samples = input.size(0)
    shape = [s for s in input.size()]
    shape[0] = 1
    shape[1] = samples * input.size(1)
    mean = norm_repeated(running_mean, samples)
    var = norm_repeated(running_var, samples)
    out = batch_norm_made(input.reshape(shape), norm_repeated(weight, samples), norm_repeated(bias, samples), mean, var, use_input_stats, momentum, eps)[0]
    if use_input_stats:
        norm_averaged_into(running_mean, mean, samples)
        norm_averaged_into(running_var, var, samples)
    return out.reshape(input.size())
)"},
};

#define WICK_MADE "(input, weight, bias, running_mean, running_var, training, momentum, eps)"

constexpr FormulaText kNnNormalizationFormulas[] = {
    {"aten::batch_norm", "return batch_norm_made" WICK_MADE "[0]"},
    {"aten::native_batch_norm", "return batch_norm_made" WICK_MADE},
    {"aten::_batch_norm_impl_index", "return batch_norm_index_made" WICK_MADE},
    {"aten::instance_norm",
     "return instance_norm_made(input, weight, bias, running_mean, running_var, use_input_stats, "
     "momentum, eps)"},
    {"wick::batch_norm_train", R"(
results 0
let all = torch.ops.wick.batch_norm_gradient(grad0, input, weight, result1, result2, eps)
input: all[0]
weight: all[1]
bias: all[2]
)"},
    {"wick::batch_norm_gradient",
     "return batch_norm_gradient_made(grad_output, input, weight, eps)"},
    {"wick::batch_norm_evaluate", R"(
results 0
input: norm_channel_scaled(grad0, weight) * norm_running_inverse(variance, grad0.dim(), eps)
weight: norm_channel_sum(grad0 * norm_running_hat(input, mean, variance, eps))
bias: norm_channel_sum(grad0)
)"},
    {"aten::group_norm", R"(
let all = torch.ops.wick.group_norm_gradient(grad, input, weight, num_groups, eps)
input: all[0]
weight: all[1]
bias: all[2]
)"},
    {"wick::group_norm_gradient",
     "return group_norm_gradient_made(grad_output, input, weight, groups, eps)"},
    {"aten::native_group_norm", R"(
results 0
let shape = [N, C, HxW]
let all = torch.ops.wick.group_norm_gradient(grad0.reshape(shape), input.reshape(shape), weight, group, eps)
input: all[0].reshape(input_size)
weight: all[1]
bias: all[2]
)"},
    {"aten::layer_norm", R"(
let dims = norm_last(normalized_shape)
input: norm_gradient(weighted(grad, weight), input, dims, eps)
weight: grad * norm_hat(input, dims, eps)
bias: grad
)"},
    {"aten::native_layer_norm", R"(
results 0
let dims = norm_last(normalized_shape)
input: norm_gradient(weighted(grad0, weight), input, dims, eps)
weight: grad0 * norm_hat(input, dims, eps)
bias: grad0
)"},
};
const RegisterFormulas kNnNormalizationRegistered(kNnNormalizationFormulas,
                                                  kNnNormalizationHelpers);

}  // namespace

}  // namespace wick::autograd
