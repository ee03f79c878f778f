"""Layers."""

import math
from typing import List

from wick import torch
from wick.nn import functional as F
from wick.nn import init
from wick.nn.module import Module, Parameter, classes_in
from wick.torch import Tensor


def _sizes(value, count):
    """A number for each dimension."""
    return [value] * count if isinstance(value, int) else list(value)


def _for_ranks(name, make, *operators):
    """The classes NAME1d, NAME2d and so on: what `make` gives for a number of dimensions and the operator
    for as many."""
    classes = [make(rank, operator) for rank, operator in enumerate(operators, 1)]
    for rank, made in enumerate(classes, 1):
        made.__name__ = made.__qualname__ = f"{name}{rank}d"
    return classes


def _add_optional(module, on, **tensors):
    """Parameters by name; without `on` they are None."""
    for name, tensor in tensors.items():
        module.register_parameter(name, Parameter(tensor) if on else None)


class Identity(Module):
    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Flatten(Module):
    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(Module):
    def __init__(self, dim, unflattened_size):
        super().__init__()
        self.dim = dim
        self.unflattened_size = list(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)


class Linear(Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.empty([out_features, in_features], dtype=dtype, device=device))
        _add_optional(self, bias, bias=torch.empty([out_features], dtype=dtype, device=device))
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(max(self.in_features, 1))
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    def __init__(self, in1_features, in2_features, out_features, bias=True):
        super().__init__()
        bound = 1 / math.sqrt(in1_features)
        self.weight = Parameter(torch.empty([out_features, in1_features, in2_features]))
        _add_optional(self, bias, bias=torch.empty([out_features]))
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)


class Embedding(Module):
    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        scale_grad_by_freq=False,
        sparse=False,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        self.padding_idx = -1 if padding_idx is None else padding_idx
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self.weight = Parameter(torch.empty([num_embeddings, embedding_dim]))
        init.normal_(self.weight)
        if padding_idx is not None:
            with torch.no_grad():
                self.weight[padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return torch.embedding(
            self.weight, input, self.padding_idx, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}"


# ---- convolutions ----


class _Conv(Module):
    _transposed = False
    _before: List[int]

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        output_padding=0,
    ):
        super().__init__()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: the numbers of channels must be divisible by groups, got "
                f"{in_channels} and {out_channels} channels in {groups} groups"
            )
        n = self._rank
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _sizes(kernel_size, n)
        self.stride = _sizes(stride, n)
        self.dilation = _sizes(dilation, n)
        self.output_padding = _sizes(output_padding, n)
        self.groups = groups
        self.padding_mode = padding_mode
        both = [(0, 0)] * n
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            both = [(t // 2, t - t // 2) for t in totals]
        elif padding != "valid":
            both = [(p, p) for p in _sizes(padding, n)]
        # What the convolution pads by itself, and what is padded before it.
        even = padding_mode == "zeros" and all(a == b for a, b in both)
        self.padding = [a for a, _ in both] if even else [0] * n
        self._before = [] if even else [p for pair in reversed(both) for p in pair]
        self._mode = "constant" if padding_mode == "zeros" else padding_mode
        shape = [out_channels, in_channels // groups]
        if self._transposed:
            shape = [in_channels, out_channels // groups]
        self.weight = Parameter(torch.empty(shape + self.kernel_size))
        _add_optional(self, bias, bias=torch.empty([out_channels]))
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan = self.weight.numel() // max(self.weight.shape[0], 1)
            bound = 1 / math.sqrt(fan) if fan else 0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={tuple(self.kernel_size)}, "
            f"stride={tuple(self.stride)}"
        )


def _conv(rank, operator):
    class Made(_Conv):
        _rank = rank

        def forward(self, input: Tensor) -> Tensor:
            if len(self._before) > 0:
                input = F.pad(input, self._before, self._mode)
            return operator(
                input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
            )

    return Made


Conv1d, Conv2d, Conv3d = _for_ranks("Conv", _conv, torch.conv1d, torch.conv2d, torch.conv3d)


class _ConvTranspose(_Conv):
    _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
    ):
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            output_padding=output_padding,
        )


def _conv_transpose(rank, operator):
    class Made(_ConvTranspose):
        _rank = rank

        def forward(self, input: Tensor) -> Tensor:
            return operator(
                input,
                self.weight,
                self.bias,
                self.stride,
                self.padding,
                self.output_padding,
                self.groups,
                self.dilation,
            )

    return Made


ConvTranspose1d, ConvTranspose2d = _for_ranks(
    "ConvTranspose", _conv_transpose, torch.conv_transpose1d, torch.conv_transpose2d
)


# ---- normalization ----


def _add_affine(module, on, shape):
    _add_optional(module, on, weight=torch.ones(shape), bias=torch.zeros(shape))


class _BatchNorm(Module):
    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        _add_affine(self, affine, [num_features])
        tracked = track_running_stats
        self.register_buffer("running_mean", torch.zeros([num_features]) if tracked else None)
        self.register_buffer("running_var", torch.ones([num_features]) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", torch.tensor(0, dtype=torch.int64) if tracked else None
        )

    def forward(self, input: Tensor) -> Tensor:
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
        return torch.batch_norm(
            input,
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.training or not self.track_running_stats,
            self.momentum,
            self.eps,
            True,
        )

    def extra_repr(self):
        return f"{self.num_features}, eps={self.eps}, momentum={self.momentum}"


class BatchNorm1d(_BatchNorm):
    pass


class BatchNorm2d(_BatchNorm):
    pass


class BatchNorm3d(_BatchNorm):
    pass


class LayerNorm(Module):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True):
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape, 1)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _add_affine(self, elementwise_affine, self.normalized_shape)

    def forward(self, input: Tensor) -> Tensor:
        return torch.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{tuple(self.normalized_shape)}, eps={self.eps}"


class GroupNorm(Module):
    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True):
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_channels must be divisible by num_groups, got {num_channels} and "
                f"{num_groups}"
            )
        self.num_groups = num_groups
        self.eps = eps
        _add_affine(self, affine, [num_channels])

    def forward(self, input: Tensor) -> Tensor:
        return torch.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)


class _InstanceNorm(Module):
    def __init__(self, num_features, eps=1e-5, affine=False):
        super().__init__()
        self.eps = eps
        _add_affine(self, affine, [num_features])

    def forward(self, input: Tensor) -> Tensor:
        return torch.instance_norm(
            input, self.weight, self.bias, None, None, True, 0.1, self.eps, True
        )


class InstanceNorm1d(_InstanceNorm):
    pass


class InstanceNorm2d(_InstanceNorm):
    pass


# ---- dropout ----


class Dropout(Module):
    def __init__(self, p=0.5, inplace=False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = float(p)

    def forward(self, input: Tensor) -> Tensor:
        return torch.dropout(input, self.p, self.training)

    def extra_repr(self):
        return f"p={self.p}"


class Dropout2d(Dropout):
    def forward(self, input: Tensor) -> Tensor:
        return torch.feature_dropout(input, self.p, self.training)


# ---- activations ----


def _applied(name, function):
    """The class of a layer without settings."""

    class Made(Module):
        def forward(self, input: Tensor) -> Tensor:
            return function(input)

    Made.__name__ = Made.__qualname__ = name
    return Made


LogSigmoid = _applied("LogSigmoid", F.logsigmoid)
Mish = _applied("Mish", F.mish)
SELU = _applied("SELU", torch.selu)
Sigmoid = _applied("Sigmoid", torch.sigmoid)
Softsign = _applied("Softsign", F.softsign)
Tanh = _applied("Tanh", torch.tanh)
Tanhshrink = _applied("Tanhshrink", F.tanhshrink)


class ReLU(Module):
    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        if self.inplace:
            return torch.relu_(input)
        return torch.relu(input)


class ReLU6(Module):
    def forward(self, input: Tensor) -> Tensor:
        return torch.clamp(input, 0.0, 6.0)


class LeakyReLU(Module):
    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope)


class PReLU(Module):
    def __init__(self, num_parameters=1, init=0.25):
        super().__init__()
        self.weight = Parameter(torch.full([num_parameters], init))

    def forward(self, input: Tensor) -> Tensor:
        return torch.prelu(input, self.weight)


class ELU(Module):
    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = float(alpha)

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha)


class GELU(Module):
    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)


class SiLU(_applied("SiLU", F.silu)):
    def __init__(self, inplace=False):
        super().__init__()


class Hardtanh(Module):
    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False):
        super().__init__()
        self.min_val = float(min_val)
        self.max_val = float(max_val)

    def forward(self, input: Tensor) -> Tensor:
        return torch.clamp(input, self.min_val, self.max_val)


class Hardswish(_applied("Hardswish", F.hardswish)):
    def __init__(self, inplace=False):
        super().__init__()


class Hardsigmoid(_applied("Hardsigmoid", F.hardsigmoid)):
    def __init__(self, inplace=False):
        super().__init__()


class Softplus(Module):
    def __init__(self, beta=1, threshold=20):
        super().__init__()
        self.beta = float(beta)
        self.threshold = float(threshold)

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)


class Softmax(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return torch.softmax(input, self.dim)


class LogSoftmax(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return torch.log_softmax(input, self.dim)


class CELU(Module):
    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = float(alpha)

    def forward(self, input: Tensor) -> Tensor:
        return torch.celu(input, self.alpha)


class GLU(Module):
    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class Hardshrink(Module):
    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = float(lambd)

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)


class Softshrink(Module):
    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = float(lambd)

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)


class Softmin(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return torch.softmax(-input, self.dim)


class CosineSimilarity(Module):
    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return torch.cosine_similarity(x1, x2, self.dim, self.eps)


__all__ = classes_in(globals())
