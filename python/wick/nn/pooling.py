"""Pooling, padding and resampling."""

from wick import torch
from wick.nn import functional as F
from wick.nn.layers import _tuple
from wick.nn.module import Module
from wick.torch import Tensor


# ---- pooling ----


class _MaxPool(Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
        super().__init__()
        self.kernel_size = list(_tuple(kernel_size, self._rank))
        self.stride = list(_tuple(kernel_size if stride is None else stride, self._rank))
        self.padding = list(_tuple(padding, self._rank))
        self.dilation = list(_tuple(dilation, self._rank))
        self.ceil_mode = ceil_mode


class MaxPool1d(_MaxPool):
    _rank = 1

    def forward(self, input: Tensor) -> Tensor:
        return torch.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class MaxPool2d(_MaxPool):
    _rank = 2

    def forward(self, input: Tensor) -> Tensor:
        return torch.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class MaxPool3d(_MaxPool):
    _rank = 3

    def forward(self, input: Tensor) -> Tensor:
        return torch.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class _AvgPool(Module):
    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
    ):
        super().__init__()
        self.kernel_size = list(_tuple(kernel_size, self._rank))
        self.stride = list(_tuple(kernel_size if stride is None else stride, self._rank))
        self.padding = list(_tuple(padding, self._rank))
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad


class AvgPool1d(_AvgPool):
    _rank = 1

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool2d(_AvgPool):
    _rank = 2

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class AvgPool3d(_AvgPool):
    _rank = 3

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _Adaptive(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = list(_tuple(output_size, self._rank))


class AdaptiveAvgPool1d(_Adaptive):
    _rank = 1

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    _rank = 2

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_Adaptive):
    _rank = 3

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool1d(_Adaptive):
    _rank = 1

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.adaptive_max_pool1d(input, self.output_size)[0]


class AdaptiveMaxPool2d(_Adaptive):
    _rank = 2

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.adaptive_max_pool2d(input, self.output_size)[0]


class AdaptiveMaxPool3d(_Adaptive):
    _rank = 3

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.adaptive_max_pool3d(input, self.output_size)[0]


# ---- padding ----


class _Pad(Module):
    def __init__(self, padding):
        super().__init__()
        self.padding = list(_tuple(padding, 2 * self._rank))


class _ConstantPad(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
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


class ReflectionPad1d(_Pad):
    _rank = 1

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.reflection_pad1d(input, self.padding)


class ReflectionPad2d(_Pad):
    _rank = 2

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.reflection_pad2d(input, self.padding)


class ReflectionPad3d(_Pad):
    _rank = 3

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.reflection_pad3d(input, self.padding)


class ReplicationPad1d(_Pad):
    _rank = 1

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.replication_pad1d(input, self.padding)


class ReplicationPad2d(_Pad):
    _rank = 2

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.replication_pad2d(input, self.padding)


class ReplicationPad3d(_Pad):
    _rank = 3

    def forward(self, input: Tensor) -> Tensor:
        return torch.ops.aten.replication_pad3d(input, self.padding)


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


__all__ = [
    name
    for name, value in list(globals().items())
    if isinstance(value, type) and issubclass(value, Module) and not name.startswith("_")
    and name != "Module"
]
