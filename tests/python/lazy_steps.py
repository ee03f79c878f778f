#!/usr/bin/env python3
"""Lazy training steps beside the graph executor's own, and how many programs random batch sizes make.

usage: lazy_steps.py [--only mlp,tagger,transformer,batches] [--threads N] [--seconds S] [--report]

    PYTHONPATH=python tests/python/lazy_steps.py --threads 2

A step is forward, loss, gradients of all parameters and SGD with momentum 0.9. The executor's is one
scripted method `step(x, y)`; the lazy one is the loop that people write, ended by `mark_step()`.
"""

import argparse
import importlib.util
import random
import statistics
import sys
import tempfile
import time

from wick import jit, lazy, nn, optim, torch

F = nn.functional


class Lstm(nn.Module):
    """As nn.LSTM, in words that compile."""

    def __init__(self, width, hidden):
        super().__init__()
        self.hidden = hidden
        bound = hidden**-0.5
        for name, sizes in {
            "weight_ih": (4 * hidden, width),
            "weight_hh": (4 * hidden, hidden),
            "bias_ih": (4 * hidden,),
            "bias_hh": (4 * hidden,),
        }.items():
            self.register_parameter(name, nn.Parameter(torch.empty(sizes).uniform_(-bound, bound)))

    def forward(self, x):
        start = x.new_zeros([1, x.size(1), self.hidden])
        weights = [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]
        return torch.lstm(x, [start, start], weights, True, 1, 0.0, self.training, False, False)[0]


class Tagger(nn.Module):
    def __init__(self, words=1000, width=128, hidden=256, tags=10):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = Lstm(width, hidden)
        self.out = nn.Linear(hidden, tags)

    def forward(self, x):
        return self.out(self.lstm(self.embed(x))).flatten(0, 1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, c = x.shape
        parts = self.qkv(self.before(x)).view(n, t, 3, self.heads, c // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
        x = x + self.join(y)
        return x + self.narrow(F.gelu(self.wide(self.between(x))))


class Transformer(nn.Module):
    def __init__(self, words=1000, width=768, heads=12, blocks=2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.out = nn.Linear(width, words)

    def forward(self, x):
        return self.out(self.blocks(self.embed(x))).flatten(0, 1)


def mlp():
    return nn.Sequential(
        nn.Linear(784, 512),
        nn.ReLU(),
        nn.Linear(512, 512),
        nn.GELU(),
        nn.LayerNorm(512),
        nn.Linear(512, 10),
    )


def convolutions():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 2 * 2, 10),
    )


def words(*sizes, below=1000):
    return torch.randint(0, below, sizes)


MODELS = {
    "mlp": (mlp, lambda: torch.randn(128, 784), lambda: words(128, below=10)),
    "tagger": (Tagger, lambda: words(32, 16), lambda: words(512, below=10)),
    "transformer": (Transformer, lambda: words(1, 128), lambda: words(128)),
}


def median_ms(function, seconds):
    for _ in range(5):
        function()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


SCRIPT = """
from typing import List
from wick import nn, torch
class Step(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m
        self.moved: List[torch.Tensor] = [torch.zeros_like(p) for p in m.parameters()]
    @torch.jit.export
    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.m(x), y)
        params = [{params}]
        grads = torch.autograd.grad([loss], params)
        with torch.no_grad():
            for i in range(len(params)):
                g = grads[i]
                assert g is not None
                self.moved[i].mul_(0.9).add_(g)
                params[i].sub_(self.moved[i] * 1e-3)
        return loss.detach()
    def forward(self, x):
        return self.m(x)
"""


def scripted_step(model):
    """The model's training step as one method of a program."""

    def path(name):
        found = "self.m"
        for part in name.split("."):
            found = f'getattr({found}, "{part}")' if part.isdigit() else f"{found}.{part}"
        return found

    params = ", ".join(path(name) for name, _ in model.named_parameters())
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(SCRIPT.format(params=params))
        file.flush()
        spec = importlib.util.spec_from_file_location("scripted_step", file.name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return jit.script(module.Step(model)).step


def trainer(model, device):
    """The loop that people write, as a function of a batch."""
    model.to(device)
    optimizer = optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if device == "lazy":
            lazy.mark_step()
        return loss

    return step


def compare(name, seconds, report):
    make, make_x, make_y = MODELS[name]
    torch.manual_seed(0)
    x, y = make_x(), make_y()
    steps, losses = {}, {}
    for kind in ("executor", "eager", "lazy"):
        torch.manual_seed(1)
        model = make()
        if kind == "executor":
            scripted = scripted_step(model)
            steps[kind] = lambda: scripted(x, y)
        else:
            device = "lazy" if kind == "lazy" else "cpu"
            step, data = trainer(model, device), (x.to(device), y.to(device))
            steps[kind] = lambda step=step, data=data: step(*data)
        losses[kind] = [float(steps[kind]()) for _ in range(3)]
    lazy.mark_step()
    for kind in ("eager", "lazy"):
        if any(abs(a - b) > 1e-3 * abs(b) for a, b in zip(losses[kind], losses["executor"])):
            sys.exit(f"{name}: losses differ, {kind} {losses[kind]}, executor {losses['executor']}")
    lazy.reset_counters()
    found = {k: [] for k in (*steps, "frozen")}
    for _ in range(3):
        for kind, step in steps.items():
            found[kind].append(median_ms(step, seconds))
        lazy.freeze_step()
        found["frozen"].append(median_ms(steps["lazy"], seconds))
        lazy.thaw_step()
    best = {kind: min(times) for kind, times in found.items()}
    counted = lazy.counters()
    graphs = counted["evaluations"] / counted["causes"]["mark_step"]
    print(
        f"{name}: executor {best['executor']:.3f} ms, eager {best['eager']:.3f}, lazy "
        f"{best['lazy']:.3f}, frozen {best['frozen']:.3f}; lazy to executor "
        f"{best['lazy'] / best['executor']:.2f}, frozen {best['frozen'] / best['executor']:.2f} (bar "
        f"1.1); {graphs:.2f} graphs a step, {counted['compiled']} compiled",
        flush=True,
    )
    if report:
        print(lazy.report())


def count_programs(report):
    """200 batches of random sizes: how many programs they are."""
    cases = {
        "mlp": (mlp, lambda n: torch.randn(n, 784)),
        "transformer block": (
            lambda: nn.Sequential(Block(16, 2), nn.Flatten(), nn.Linear(5 * 16, 10)),
            lambda n: torch.randn(n, 5, 16),
        ),
        "convolutions": (convolutions, lambda n: torch.randn(n, 1, 14, 14)),
    }
    for name, (make, make_x) in cases.items():
        generator = random.Random(0)
        sizes = [generator.randint(1, 64) for _ in range(200)]
        torch.manual_seed(0)
        model = make()
        step = trainer(model, "lazy")
        lazy.mark_step()
        lazy.reset_counters()
        with torch.no_grad():
            for n in sizes:
                made = model(make_x(n).to("lazy"))
                lazy.mark_step()
                del made
        forward = lazy.counters()["compiled"]
        lazy.reset_counters()
        for n in sizes:
            step(make_x(n).to("lazy"), words(n, below=10).to("lazy"))
        training = lazy.counters()
        print(
            f"{name}, {len(sizes)} batches of 1 to 64: {forward} programs forward, "
            f"{training['compiled']} training (bar 3)",
            flush=True,
        )
        if report:
            print(lazy.report())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join((*MODELS, "batches")))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in options.only.split(","):
        if name == "batches":
            count_programs(options.report)
        elif name in MODELS:
            compare(name, options.seconds, options.report)
        else:
            parser.error(f"--only: expected some of {', '.join(MODELS)}, batches, got '{name}'")


if __name__ == "__main__":
    main()
