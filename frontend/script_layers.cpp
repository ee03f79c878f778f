// torch.nn.functional: activations, pooling, normalization, dropout, embeddings.
#include "frontend/script_library.h"

namespace wick {

const char* const kScriptActivations = R"script(
def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError("dropout probability has to be between 0 and 1, but got " + str(p))

def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return torch.dropout_(input, p, training) if inplace else torch.dropout(input, p, training)

def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return torch.alpha_dropout_(input, p, training) if inplace else torch.alpha_dropout(input, p, training)

def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if inplace:
        return torch.feature_alpha_dropout_(input, p, training)
    return torch.feature_alpha_dropout(input, p, training)

def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    return torch.feature_dropout_(input, p, training) if inplace else torch.feature_dropout(input, p, training)

def _batched_feature_dropout(input: Tensor, p: float, training: bool, inplace: bool, batched_dim: int) -> Tensor:
    if input.dim() == batched_dim:
        return _feature_dropout(input, p, training, inplace)
    if inplace:
        return _feature_dropout(input.unsqueeze_(0), p, training, True).squeeze_(0)
    return _feature_dropout(input.unsqueeze(0), p, training, False).squeeze(0)

def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if input.dim() != 2 and input.dim() != 3:
        raise RuntimeError("dropout1d: Expected 2D or 3D input, but received a " + str(input.dim()) + "D input")
    return _batched_feature_dropout(input, p, training, inplace, 3)

def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return _feature_dropout(input, p, training, inplace)

def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return _batched_feature_dropout(input, p, training, inplace, 5)

def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    return torch.threshold_(input, threshold, value) if inplace else torch.threshold(input, threshold, value)

def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)

def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return hardtanh(input, 0.0, 6.0, inplace)

def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.hardtanh_(input, min_val, max_val) if inplace else torch.hardtanh(input, min_val, max_val)

def glu(input: Tensor, dim: int = -1) -> Tensor:
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return torch.glu(input, dim)

def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.elu_(input, alpha) if inplace else torch.elu(input, alpha)

def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.selu_(input) if inplace else torch.selu(input)

def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)

def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return torch.leaky_relu_(input, negative_slope) if inplace else torch.leaky_relu(input, negative_slope)

def rrelu(input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False,
          inplace: bool = False) -> Tensor:
    if inplace:
        return torch.rrelu_(input, lower, upper, training)
    return torch.rrelu(input, lower, upper, training)

def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.silu_(input) if inplace else torch.silu(input)

def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.mish_(input) if inplace else torch.mish(input)

def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardswish_(input) if inplace else torch.hardswish(input)

def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardsigmoid_(input) if inplace else torch.hardsigmoid(input)

def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()

def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)

def tanh(input: Tensor) -> Tensor:
    return input.tanh()

def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()

def _softmax_dim(name: str, ndim: int, dim: Optional[int]) -> int:
    if dim is not None:
        return dim
    warnings.warn("Implicit dimension choice for " + name + " has been deprecated. Pass dim explicitly.")
    return 0 if ndim == 0 or ndim == 1 or ndim == 3 else 1

def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(input, _softmax_dim("softmax", input.dim(), dim), dtype)

def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.softmax(-input, _softmax_dim("softmin", input.dim(), dim), dtype)

def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return torch.log_softmax(input, _softmax_dim("log_softmax", input.dim(), dim), dtype)

def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -torch.empty_like(logits).exponential_().log()
    soft = torch.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
)script";

// The functions differ in the number of dimensions alone, which is a part of their types.
// clang-format off
#define WICK_FRACTIONAL_MAX_POOL(n)                                                           \
  "def fractional_max_pool" n "d_with_indices(input: Tensor,\n"                               \
  "        kernel_size: BroadcastingList" n "[int],\n"                                        \
  "        output_size: Optional[BroadcastingList" n "[int]] = None,\n"                       \
  "        output_ratio: Optional[BroadcastingList" n "[float]] = None,\n"                    \
  "        _random_samples: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:\n"             \
  "    size = _fractional_size(input, output_size, output_ratio, " n ")\n"                    \
  "    samples = _fractional_samples(input, _random_samples, " n ")\n"                        \
  "    return torch._C._nn.fractional_max_pool" n "d(input, kernel_size, size, samples)\n"    \
  "def _fractional_max_pool" n "d(input: Tensor, kernel_size: BroadcastingList" n "[int],\n"  \
  "        output_size: Optional[BroadcastingList" n "[int]] = None,\n"                       \
  "        output_ratio: Optional[BroadcastingList" n "[float]] = None,\n"                    \
  "        _random_samples: Optional[Tensor] = None) -> Tensor:\n"                            \
  "    return fractional_max_pool" n "d_with_indices(input, kernel_size, output_size,\n"      \
  "                                               output_ratio, _random_samples)[0]\n"
// clang-format on

const char* const kScriptPooling = R"script(
def _max_pool1d(input: Tensor, kernel_size: BroadcastingList1[int],
                stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0,
                dilation: BroadcastingList1[int] = 1, ceil_mode: bool = False) -> Tensor:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return torch.max_pool1d(input, kernel_size, steps, padding, dilation, ceil_mode)

def max_pool1d_with_indices(input: Tensor, kernel_size: BroadcastingList1[int],
                            stride: Optional[BroadcastingList1[int]] = None,
                            padding: BroadcastingList1[int] = 0, dilation: BroadcastingList1[int] = 1,
                            ceil_mode: bool = False) -> Tuple[Tensor, Tensor]:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return torch.max_pool1d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)

def _max_pool2d(input: Tensor, kernel_size: BroadcastingList2[int],
                stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0,
                dilation: BroadcastingList2[int] = 1, ceil_mode: bool = False) -> Tensor:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return torch.max_pool2d(input, kernel_size, steps, padding, dilation, ceil_mode)

def max_pool2d_with_indices(input: Tensor, kernel_size: BroadcastingList2[int],
                            stride: Optional[BroadcastingList2[int]] = None,
                            padding: BroadcastingList2[int] = 0, dilation: BroadcastingList2[int] = 1,
                            ceil_mode: bool = False) -> Tuple[Tensor, Tensor]:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return torch._C._nn.max_pool2d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)

def _max_pool3d(input: Tensor, kernel_size: BroadcastingList3[int],
                stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0,
                dilation: BroadcastingList3[int] = 1, ceil_mode: bool = False) -> Tensor:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return torch.max_pool3d(input, kernel_size, steps, padding, dilation, ceil_mode)

def max_pool3d_with_indices(input: Tensor, kernel_size: BroadcastingList3[int],
                            stride: Optional[BroadcastingList3[int]] = None,
                            padding: BroadcastingList3[int] = 0, dilation: BroadcastingList3[int] = 1,
                            ceil_mode: bool = False) -> Tuple[Tensor, Tensor]:
    steps = torch.jit.annotate(List[int], []) if stride is None else stride
    return torch._C._nn.max_pool3d_with_indices(input, kernel_size, steps, padding, dilation, ceil_mode)

def _adaptive_max_pool1d(input: Tensor, output_size: BroadcastingList1[int]) -> Tensor:
    return torch.adaptive_max_pool1d(input, output_size)[0]

def adaptive_max_pool1d_with_indices(input: Tensor, output_size: BroadcastingList1[int]) -> Tuple[Tensor, Tensor]:
    return torch.adaptive_max_pool1d(input, output_size)

def _adaptive_max_pool2d(input: Tensor, output_size: BroadcastingList2[int]) -> Tensor:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)[0]

def adaptive_max_pool2d_with_indices(input: Tensor, output_size: BroadcastingList2[int]) -> Tuple[Tensor, Tensor]:
    return torch._C._nn.adaptive_max_pool2d(input, output_size)

def _adaptive_max_pool3d(input: Tensor, output_size: BroadcastingList3[int]) -> Tensor:
    return torch._C._nn.adaptive_max_pool3d(input, output_size)[0]

def adaptive_max_pool3d_with_indices(input: Tensor, output_size: BroadcastingList3[int]) -> Tuple[Tensor, Tensor]:
    return torch._C._nn.adaptive_max_pool3d(input, output_size)

def _fractional_size(input: Tensor, output_size: Optional[List[int]], output_ratio: Optional[List[float]], dims: int) -> List[int]:
    if output_size is not None:
        return output_size
    if output_ratio is None:
        raise ValueError("fractional_max_pool" + str(dims) + "d needs either an output_size or an output_ratio")
    return [int(input.size(d - dims) * output_ratio[d]) for d in range(dims)]

def _fractional_samples(input: Tensor, samples: Optional[Tensor], dims: int) -> Tensor:
    if samples is not None:
        return samples
    batch = 1 if input.dim() == dims + 1 else input.size(0)
    return torch.rand([batch, input.size(-dims - 1), dims], dtype=input.dtype, device=input.device)

)script" WICK_FRACTIONAL_MAX_POOL("2") WICK_FRACTIONAL_MAX_POOL("3") R"script(
def _unpooled_size(input: Tensor, kernel_size: List[int], stride: List[int], padding: List[int],
                   output_size: Optional[List[int]]) -> List[int]:
    n = len(kernel_size)
    natural = torch.jit.annotate(List[int], [])
    for d in range(n):
        natural.append((input.size(d - n) - 1) * stride[d] + kernel_size[d] - 2 * padding[d])
    if output_size is None:
        return natural
    wanted = output_size[2:] if len(output_size) == n + 2 else output_size
    if len(wanted) != n:
        raise ValueError("output_size should have " + str(n) + " or " + str(n + 2) + " elements")
    for d in range(n):
        if not (natural[d] - stride[d] < wanted[d] and wanted[d] < natural[d] + stride[d]):
            raise ValueError("invalid output_size " + str(output_size) + " in dimension " + str(d))
    return wanted

def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList1[int],
                 stride: Optional[BroadcastingList1[int]] = None, padding: BroadcastingList1[int] = 0,
                 output_size: Optional[List[int]] = None) -> Tensor:
    steps = kernel_size if stride is None else stride
    size = _unpooled_size(input, kernel_size, steps, padding, output_size) + [1]
    return torch._C._nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), size).squeeze(-1)

def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList2[int],
                 stride: Optional[BroadcastingList2[int]] = None, padding: BroadcastingList2[int] = 0,
                 output_size: Optional[List[int]] = None) -> Tensor:
    steps = kernel_size if stride is None else stride
    return torch._C._nn.max_unpool2d(input, indices, _unpooled_size(input, kernel_size, steps, padding, output_size))

def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: BroadcastingList3[int],
                 stride: Optional[BroadcastingList3[int]] = None, padding: BroadcastingList3[int] = 0,
                 output_size: Optional[List[int]] = None) -> Tensor:
    steps = kernel_size if stride is None else stride
    size = _unpooled_size(input, kernel_size, steps, padding, output_size)
    return torch._C._nn.max_unpool3d(input, indices, size, steps, padding)

def lp_pool1d(input: Tensor, norm_type: float, kernel_size: int, stride: Optional[BroadcastingList1[int]] = None,
              ceil_mode: bool = False) -> Tensor:
    steps = [kernel_size] if stride is None else stride
    out = torch.avg_pool1d(input.pow(norm_type), [kernel_size], steps, [0], ceil_mode)
    return (torch.sign(out) * torch.relu(torch.abs(out))).mul(kernel_size).pow(1.0 / norm_type)

def lp_pool2d(input: Tensor, norm_type: float, kernel_size: BroadcastingList2[int],
              stride: Optional[BroadcastingList2[int]] = None, ceil_mode: bool = False) -> Tensor:
    steps = kernel_size if stride is None else stride
    out = torch._C._nn.avg_pool2d(input.pow(norm_type), kernel_size, steps, [0, 0], ceil_mode)
    area = kernel_size[0] * kernel_size[1]
    return (torch.sign(out) * torch.relu(torch.abs(out))).mul(area).pow(1.0 / norm_type)
)script";

const char* const kScriptNorms = R"script(
def _check_batch_size(size: List[int]) -> None:
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size " + str(size))

def batch_norm(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
               weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    if training:
        _check_batch_size(input.size())
    return torch.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)

def instance_norm(input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None,
                  weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    if use_input_stats:
        count = 1
        for n in input.size()[2:]:
            count *= n
        if count == 1:
            raise ValueError("Expected more than 1 spatial element when training, got input size " + str(input.size()))
    return torch.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)

def layer_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None,
               bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)

def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None,
               eps: float = 1e-05) -> Tensor:
    _check_batch_size([input.size(0) * input.size(1) // num_groups, num_groups] + input.size()[2:])
    return torch.group_norm(input, num_groups, weight, bias, eps, True)

def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    dim = input.dim()
    if dim < 3:
        raise ValueError("Expected 3D or higher dimensionality input (got " + str(dim) + " dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input).unsqueeze(1)
    before = size // 2
    after = (size - 1) // 2
    if dim == 3:
        squares = torch.constant_pad_nd(squares, [0, 0, before, after])
        squares = torch._C._nn.avg_pool2d(squares, [size, 1], [1, 1]).squeeze(1)
    else:
        sizes = input.size()
        squares = squares.view(sizes[0], 1, sizes[1], sizes[2], -1)
        squares = torch.constant_pad_nd(squares, [0, 0, 0, 0, before, after])
        squares = torch._C._nn.avg_pool3d(squares, [size, 1, 1], [1, 1, 1]).squeeze(1)
        squares = squares.view(sizes)
    return input / squares.mul(alpha).add(k).pow(beta)

def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    length = input.norm(p, [dim], True).clamp_min(eps).expand_as(input)
    if out is None:
        return input / length
    return torch.div(input, length, out=out)

def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    padding = -1
    if padding_idx is not None:
        count = weight.size(0)
        assert padding_idx < count and padding_idx >= -count, "Padding_idx must be within num_embeddings"
        padding = padding_idx if padding_idx >= 0 else count + padding_idx
    if max_norm is not None:
        torch.embedding_renorm_(weight.detach(), input.contiguous(), max_norm, norm_type)
    return torch.embedding(weight, input, padding, scale_grad_by_freq, sparse)

def embedding_bag(input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None,
                  norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                  sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
                  include_last_offset: bool = False, padding_idx: Optional[int] = None) -> Tensor:
    indices = input
    weights = per_sample_weights
    starts = offsets
    if input.dim() == 2:
        if starts is not None:
            raise ValueError("if input is 2D, then offsets has to be None")
        starts = torch.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        indices = input.reshape(-1)
        if weights is not None:
            weights = weights.reshape(-1)
    elif input.dim() != 1:
        raise ValueError("input has to be 1D or 2D Tensor, but got Tensor of dimension " + str(input.dim()))
    if starts is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if mode == "sum":
        mode_number = 0
    elif mode == "mean":
        mode_number = 1
    elif mode == "max":
        mode_number = 2
    else:
        raise ValueError("mode has to be one of sum, mean or max")
    if weights is not None and mode != "sum":
        raise ValueError("embedding_bag: per_sample_weights is only supported for mode='sum'")
    if max_norm is not None:
        torch.embedding_renorm_(weight.detach(), indices, max_norm, norm_type)
    return torch.embedding_bag(weight, indices, starts, scale_grad_by_freq, mode_number, sparse, weights,
                               include_last_offset, padding_idx)[0]
)script";

}  // namespace wick
