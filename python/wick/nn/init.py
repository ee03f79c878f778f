"""Starting values of parameters, in place."""

import math

from wick.torch import no_grad


def _fans(tensor):
    if tensor.dim() < 2:
        raise ValueError(
            f"fan in and fan out need a tensor of two dimensions at least, got {tensor.dim()}"
        )
    inner = 1
    for size in tensor.shape[2:]:
        inner *= size
    return tensor.shape[1] * inner, tensor.shape[0] * inner


def calculate_gain(nonlinearity, param=None):
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1.0
    raise ValueError(f"unsupported nonlinearity {nonlinearity}")


@no_grad()
def uniform_(tensor, a=0.0, b=1.0):
    return tensor.uniform_(a, b)


@no_grad()
def normal_(tensor, mean=0.0, std=1.0):
    return tensor.normal_(mean, std)


@no_grad()
def constant_(tensor, val):
    return tensor.fill_(val)


@no_grad()
def ones_(tensor):
    return tensor.fill_(1.0)


@no_grad()
def zeros_(tensor):
    return tensor.zero_()


def xavier_uniform_(tensor, gain=1.0):
    fan_in, fan_out = _fans(tensor)
    bound = gain * math.sqrt(6.0 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor, gain=1.0):
    fan_in, fan_out = _fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    fan = _fans(tensor)[mode == "fan_out"]
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / fan)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    fan = _fans(tensor)[mode == "fan_out"]
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan))
