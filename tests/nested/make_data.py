"""Writes tests/nested/data with PyTorch 1.13: encoders, what they give, and a small model with modules in modules."""
import os
import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


class Inner(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, size))

    def forward(self, x):
        return torch.mm(x, self.weight)


class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = Inner(size)

    def forward(self, x):
        return torch.relu(self.inner(x))


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(Layer(4), Layer(4))

    def forward(self, x):
        if x.size(1) == 5:
            # The second layer gets what does not fit.
            return self.layers[1](x)
        return self.layers(x)


def encoders():
    torch.manual_seed(3)
    x = torch.randn(3, 5, 8)
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
    values = {"x": x, "mask": mask}
    for norm_first in (False, True):
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, activation="gelu" if norm_first else "relu", batch_first=True, norm_first=norm_first)
        model = torch.jit.script(torch.nn.TransformerEncoder(layer, 2).eval())
        name = "norm_first" if norm_first else "norm_last"
        model.save(os.path.join(OUT, name + ".pt"))
        with torch.no_grad():
            values[name] = model(x, None, mask)
            values[name + "_plain"] = model(x)
    torch.save(values, os.path.join(OUT, "values.pt"))


torch.manual_seed(1)
torch.jit.script(TwoLayers().eval()).save(os.path.join(OUT, "two_layers.pt"))
encoders()
