"""Writes tests/quantized/data with PyTorch 1.13: quantized layers, operators on quantized tensors, and what they give."""

import os

import torch
from torch.ao.nn import quantized as nnq
from torch.ao.nn.quantized import dynamic as nnqd

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


class Still(torch.nn.Module):
    """Layers whose arguments and results are quantized."""

    def __init__(self):
        super().__init__()
        self.quantize = nnq.Quantize(0.05, 128, torch.quint8)
        self.first = nnq.Conv2d(3, 4, 3, padding=1)
        self.second = nnq.Conv2d(4, 6, 3, stride=2, groups=2, padding_mode="reflect", padding=1)
        self.up = nnq.ConvTranspose2d(6, 4, 2, stride=2)
        self.line = nnq.Conv1d(4, 4, 3, dilation=2)
        self.last = nnq.Linear(10, 5)
        self.embed = nnq.Embedding(20, 12)
        self.bag = nnq.EmbeddingBag(20, 12, mode="sum", dtype=torch.quint8)
        self.small_bag = nnq.EmbeddingBag(20, 12, mode="sum", dtype=torch.quint4x2)
        self.norm = nnq.BatchNorm2d(6)
        self.leaky = nnq.LeakyReLU(0.1, 3, 0.1)
        self.elu = nnq.ELU(0.1, 3)
        self.swish = nnq.Hardswish(0.1, 3)
        self.sigmoid = nnq.Sigmoid(1 / 256, 0)
        self.arithmetic = nnq.QFunctional()

    def forward(self, x):
        y = self.first(self.quantize(x))
        y = self.second(y)
        y = self.elu(self.leaky(self.norm(y)))
        return self.swish(self.up(y)).dequantize()

    @torch.jit.export
    def lines(self, x):
        q = self.quantize(x)
        return self.last(torch.relu(self.line(q))).dequantize()

    @torch.jit.export
    def bags(self, at, offsets):
        return self.embed(at), self.bag(at, offsets), self.small_bag(at, offsets)

    @torch.jit.export
    def sums(self, a, b):
        x, y = self.quantize(a), self.quantize(b)
        f = self.arithmetic
        return (
            f.add(x, y).dequantize(),
            f.mul(x, y).dequantize(),
            f.add_scalar(x, 0.5).dequantize(),
            f.mul_scalar(x, -1.5).dequantize(),
            f.add_relu(x, y).dequantize(),
            f.cat([x, y], 1).dequantize(),
            self.sigmoid(x).dequantize(),
        )


class Moving(torch.nn.Module):
    """Layers that quantize what they are given."""

    def __init__(self):
        super().__init__()
        self.linear = nnqd.Linear(8, 6)
        self.lstm = nnqd.LSTM(6, 5, num_layers=2, bidirectional=True)
        self.gru = nnqd.GRU(6, 5)
        self.cells = torch.nn.ModuleList([nnqd.LSTMCell(6, 4), nnqd.GRUCell(6, 4), nnqd.RNNCell(6, 4, nonlinearity="tanh")])
        self.relu_cell = nnqd.RNNCell(6, 4, nonlinearity="relu")

    def forward(self, x):
        y = self.linear(x)
        sequence, (h, c) = self.lstm(y)
        last, n = self.gru(y)
        return sequence, h, c, last, n

    @torch.jit.export
    def steps(self, x):
        h, c = self.cells[0](x)
        return h, c, self.cells[1](x), self.cells[2](x), self.relu_cell(x)


def randomized(module):
    """Weights of the packed layers are zeros at first."""
    for layer in module.modules():
        if hasattr(layer, "set_weight_bias") and hasattr(layer, "weight"):
            weight = layer.weight() if callable(layer.weight) else layer.weight
            bias = layer.bias() if callable(layer.bias) else layer.bias
            values = torch.randn(weight.shape) * 0.4
            if weight.dtype == torch.qint8:
                weight = torch.quantize_per_tensor(values, 0.01, 0, torch.qint8)
            else:
                weight = values
            layer.set_weight_bias(weight, torch.randn(bias.shape) if bias is not None else None)
            if hasattr(layer, "scale") and layer.scale is not None:
                layer.scale, layer.zero_point = 0.1, 120
    for name in ("embed", "bag", "small_bag"):
        if hasattr(module, name):
            layer = getattr(module, name)
            weight = torch.quantize_per_channel(
                torch.randn(20, 12), torch.full((20,), 0.07), torch.full((20,), 3.0), 0,
                torch.quint4x2 if name == "small_bag" else torch.quint8)
            layer.set_weight(weight)
    if hasattr(module, "norm"):
        module.norm.running_mean = torch.randn(6) * 0.1
        module.norm.running_var = torch.rand(6) + 0.5
        module.norm.scale.fill_(0.1)
        module.norm.zero_point.fill_(110)
    return module.eval()


def main():
    torch.manual_seed(5)
    os.makedirs(OUT, exist_ok=True)
    still, moving = torch.jit.script(randomized(Still())), torch.jit.script(randomized(Moving()))
    answers = {}
    for module, name, method, arguments in [
        (still, "still", "forward", (torch.randn(2, 3, 6, 6),)),
        (still, "still", "lines", (torch.randn(2, 4, 14),)),
        (still, "still", "bags", (torch.randint(0, 20, (9,)), torch.tensor([0, 2, 2, 7]))),
        (still, "still", "sums", (torch.randn(3, 4), torch.randn(3, 4))),
        (moving, "moving", "forward", (torch.randn(5, 3, 8),)),
        (moving, "moving", "steps", (torch.randn(3, 6),)),
    ]:
        answers[f"{name}.{method}"] = (list(arguments), getattr(module, method)(*arguments))
    torch.jit.save(still, os.path.join(OUT, "still.pt"))
    torch.jit.save(moving, os.path.join(OUT, "moving.pt"))
    torch.save(answers, os.path.join(OUT, "answers.pt"))


main()
