#!/usr/bin/python3
"""Trains the small digit classifier that ships as digits.pt, and writes one input beside it.

usage: make_digits.py [OUT_DIR]

The images are drawn here: a 5x7 bitmap font, scaled, shifted, sheared and blurred with noise, 28x28, so that
no data set is needed. The network is the usual small MNIST one (three convolutions, one linear layer).
Needs Debian's python3-torch.
"""
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FONT = {
    0: "01110 10001 10011 10101 11001 10001 01110",
    1: "00100 01100 00100 00100 00100 00100 01110",
    2: "01110 10001 00001 00010 00100 01000 11111",
    3: "11111 00010 00100 00010 00001 10001 01110",
    4: "00010 00110 01010 10010 11111 00010 00010",
    5: "11111 10000 11110 00001 00001 10001 01110",
    6: "00110 01000 10000 11110 10001 10001 01110",
    7: "11111 00001 00010 00100 01000 01000 01000",
    8: "01110 10001 10001 01110 10001 10001 01110",
    9: "01110 10001 10001 01111 00001 00010 01100",
}


def draw(labels, generator):
    """Images of the digits in `labels`: float32 [n, 1, 28, 28] in 0..1, each placed and distorted at random."""
    glyphs = torch.tensor([[[int(c) for c in row] for row in FONT[d].split()] for d in range(10)], dtype=torch.float32)
    n = len(labels)
    rand = lambda *shape: torch.rand(*shape, generator=generator)
    theta = torch.zeros(n, 2, 3)
    scale = 1.5 + 0.7 * rand(n)
    theta[:, 0, 0] = scale * 1.25
    theta[:, 1, 1] = scale
    theta[:, 0, 1] = 0.6 * (rand(n) - 0.5)
    theta[:, :, 2] = 0.5 * (rand(n, 2) - 0.5)
    grid = F.affine_grid(theta, [n, 1, 28, 28], align_corners=False)
    images = F.grid_sample(glyphs[labels].unsqueeze(1), grid, align_corners=False)
    return (images + 0.15 * torch.randn(images.shape, generator=generator)).clamp(0, 1)


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_layers = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, kernel_size=3, stride=2), nn.ReLU(),
            nn.Conv2d(16, 16, kernel_size=3, stride=2), nn.ReLU())
        self.fc_layers = nn.Sequential(nn.Flatten(), nn.Linear(16 * 5 * 5, 10))

    def forward(self, x):
        """Log-probabilities [n, 10] for images [n, 1, 28, 28]."""
        return F.log_softmax(self.fc_layers(self.conv_layers(x)), dim=1)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = Digits()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(600):
        labels = torch.randint(0, 10, (64,), generator=generator)
        loss = F.nll_loss(model(draw(labels, generator)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    labels = torch.randint(0, 10, (1000,), generator=generator)
    with torch.no_grad():
        right = (model(draw(labels, generator)).argmax(1) == labels).float().mean().item()
        print(f"accuracy on 1000 fresh images: {right:.3f}")
        torch.jit.script(model).save(os.path.join(out, "digits.pt"))
        seven = draw(torch.tensor([7]), generator)
        np.save(os.path.join(out, "seven.npy"), seven.numpy())
        print("the shipped image is read as", model(seven).argmax(1).item())


main()
