"""Writes the models that check_pipeline.sh runs, with random weights: a transformer of 48 blocks and ResNet-152.

    python3 tests/cuda/pipeline_models.py FOLDER
"""
import os
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Bottleneck(nn.Module):
    def __init__(self, before: int, width: int, stride: int):
        super().__init__()
        after = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Identity()
        if before != after or stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet152() -> nn.Module:
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, blocks, stride in ((64, 3, 1), (128, 8, 2), (256, 36, 2), (512, 3, 2)):
        for i in range(blocks):
            layers.append(Bottleneck(before, width, stride if i == 0 else 1))
            before = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


def main():
    torch.manual_seed(1)
    for name, make in (("transformer", lambda: nn.Sequential(*(Block(768, 12) for _ in range(48)))),
                       ("resnet152", resnet152)):
        path = os.path.join(sys.argv[1], name + ".pt")
        torch.jit.script(make().eval()).save(path)
        print("wrote", path)


if __name__ == "__main__":
    main()
