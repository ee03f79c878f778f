#!/usr/bin/env python3
"""Writes data/mobile.pt and data/mobile_values.pt with PyTorch 1.13: a module after optimize_for_mobile, its input and the
result."""
import torch
import torch.nn.functional as F
from torch.utils.mobile_optimizer import optimize_for_mobile


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.grouped = torch.nn.Conv2d(8, 8, 3, groups=4, stride=2, dilation=(1, 2), bias=False)
        self.wider = torch.nn.ConvTranspose2d(8, 6, 3, stride=2, padding=(1, 0), output_padding=1, groups=2)
        self.linear = torch.nn.Linear(6, 4)
        self.last = torch.nn.Linear(4, 3, bias=False)

    def forward(self, x):
        y = torch.relu(self.norm(self.first(x)))
        y = F.hardtanh(self.grouped(y), -0.3, 0.7) + 0.5
        y = F.relu(self.wider(y)) + torch.relu(y.mean() + x.mean())
        y = y.mean([2, 3])
        return self.last(F.relu6(self.linear(y) * 4) + 1)


torch.manual_seed(0)
layers = Layers().eval()
layers.norm.running_mean.uniform_(-0.2, 0.2)
layers.norm.running_var.uniform_(0.5, 1.5)
optimized = optimize_for_mobile(torch.jit.script(layers))
optimized.save("data/mobile.pt")
inputs = torch.randn(2, 3, 9, 10)
torch.save({"input": inputs, "result": optimized(inputs)}, "data/mobile_values.pt")
