"""Pooling, padding and resampling.

Classes that differ by their operator alone are made by a function, for one to three dimensions.
"""

from wick import torch
from wick.nn import functional as F
from wick.nn.layers import _for_ranks, _sizes
from wick.nn.module import Module, classes_in
from wick.torch import Tensor

_aten = torch.ops.aten


# ---- pooling ----


def _max_pool(rank, operator):
    class Made(Module):
        def __init__(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
            super().__init__()
            self.kernel_size = _sizes(kernel_size, rank)
            self.stride = _sizes(kernel_size if stride is None else stride, rank)
            self.padding = _sizes(padding, rank)
            self.dilation = _sizes(dilation, rank)
            self.ceil_mode = ceil_mode

        def forward(self, input: Tensor) -> Tensor:
            return operator(
                input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
            )

    return Made


MaxPool1d, MaxPool2d, MaxPool3d = _for_ranks(
    "MaxPool", _max_pool, torch.max_pool1d, torch.max_pool2d, torch.max_pool3d
)


def _avg_pool(rank, operator):
    class Made(Module):
        def __init__(
            self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
        ):
            super().__init__()
            self.kernel_size = _sizes(kernel_size, rank)
            self.stride = _sizes(kernel_size if stride is None else stride, rank)
            self.padding = _sizes(padding, rank)
            self.ceil_mode = ceil_mode
            self.count_include_pad = count_include_pad

        def forward(self, input: Tensor) -> Tensor:
            return operator(
                input,
                self.kernel_size,
                self.stride,
                self.padding,
                self.ceil_mode,
                self.count_include_pad,
            )

    return Made


AvgPool1d, AvgPool2d, AvgPool3d = _for_ranks(
    "AvgPool", _avg_pool, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d
)


def _adaptive_avg_pool(rank, operator):
    class Made(Module):
        def __init__(self, output_size):
            super().__init__()
            self.output_size = _sizes(output_size, rank)

        def forward(self, input: Tensor) -> Tensor:
            return operator(input, self.output_size)

    return Made


AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = _for_ranks(
    "AdaptiveAvgPool",
    _adaptive_avg_pool,
    _aten.adaptive_avg_pool1d,
    _aten.adaptive_avg_pool2d,
    _aten.adaptive_avg_pool3d,
)


def _adaptive_max_pool(rank, operator):
    class Made(_adaptive_avg_pool(rank, operator)):
        def forward(self, input: Tensor) -> Tensor:
            return operator(input, self.output_size)[0]

    return Made


AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d = _for_ranks(
    "AdaptiveMaxPool",
    _adaptive_max_pool,
    _aten.adaptive_max_pool1d,
    _aten.adaptive_max_pool2d,
    _aten.adaptive_max_pool3d,
)


# ---- padding ----


class _ConstantPad(Module):
    def __init__(self, padding, value):
        super().__init__()
        self.padding = _sizes(padding, 2 * self._rank)
        self.value = float(value)

    def forward(self, input: Tensor) -> Tensor:
        return torch.constant_pad_nd(input, self.padding, self.value)


class ConstantPad1d(_ConstantPad):
    _rank = 1


class ConstantPad2d(_ConstantPad):
    _rank = 2


class ConstantPad3d(_ConstantPad):
    _rank = 3


class ZeroPad2d(_ConstantPad):
    _rank = 2

    def __init__(self, padding):
        super().__init__(padding, 0.0)


def _pad(rank, operator):
    class Made(Module):
        def __init__(self, padding):
            super().__init__()
            self.padding = _sizes(padding, 2 * rank)

        def forward(self, input: Tensor) -> Tensor:
            return operator(input, self.padding)

    return Made


ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _for_ranks(
    "ReflectionPad", _pad, _aten.reflection_pad1d, _aten.reflection_pad2d, _aten.reflection_pad3d
)


ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _for_ranks(
    "ReplicationPad",
    _pad,
    _aten.replication_pad1d,
    _aten.replication_pad2d,
    _aten.replication_pad3d,
)


# ---- resampling ----


class Upsample(Module):
    def __init__(self, scale_factor, mode="nearest", align_corners=None):
        super().__init__()
        self.scale_factor = float(scale_factor)
        self.mode = mode
        self.align_corners: bool = bool(align_corners)

    def forward(self, input: Tensor) -> Tensor:
        if self.mode == "nearest":
            return F.interpolate(input, scale_factor=self.scale_factor, mode="nearest")
        return F.interpolate(
            input,
            scale_factor=self.scale_factor,
            mode=self.mode,
            align_corners=self.align_corners,
        )


class PixelShuffle(Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return torch.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    def __init__(self, downscale_factor):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return torch.pixel_unshuffle(input, self.downscale_factor)


__all__ = classes_in(globals())
