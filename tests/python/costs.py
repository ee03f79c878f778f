#!/usr/bin/env python3
"""Prints what the package costs: importing it, calls of small operators beside PyTorch's, tracing and recording.

usage: costs.py [--only import,calls,trace,lazy] [--rounds N]

    PYTHONPATH=python tests/python/costs.py

Each time is the shortest of several rounds. PyTorch's calls are left out where it is not installed.
"""

import argparse
import importlib.util
import math
import subprocess
import sys
import time

import wick
from wick import jit, lazy, torch


def shortest(function, rounds, calls=1):
    """Microseconds a call."""
    best = math.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - begin) / calls)
    return 1e6 * best


def cost_of_import(rounds):
    """A fresh process each time; what Python itself needs to start is not counted."""
    program = (
        "import time; begin = time.perf_counter(); import wick; "
        "print(time.perf_counter() - begin)"
    )

    def once():
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
        return 1e3 * float(done.stdout)

    print(f"import wick: {min(once() for _ in range(rounds)):.1f} ms (bar 60)")


# Calls in both namespaces, on 4x4 numbers.
CALLS = {
    "x + y": lambda t, x, y: x + y,
    "x * 2.5": lambda t, x, y: x * 2.5,
    "x.relu()": lambda t, x, y: x.relu(),
    "exp(x)": lambda t, x, y: t.exp(x),
    "x == y": lambda t, x, y: x == y,
    "x.sum()": lambda t, x, y: x.sum(),
    "x.mean(1)": lambda t, x, y: x.mean(1),
    "x @ y": lambda t, x, y: x @ y,
    "x.t()": lambda t, x, y: x.t(),
    "x.view(2, 8)": lambda t, x, y: x.view(2, 8),
    "x[1]": lambda t, x, y: x[1],
    "x[:, 1:3]": lambda t, x, y: x[:, 1:3],
    "cat": lambda t, x, y: t.cat([x, y], 1),
    "softmax": lambda t, x, y: t.softmax(x, -1),
    "where": lambda t, x, y: t.where(x > y, x, y),
    "addcmul": lambda t, x, y: t.addcmul(x, x, y, value=0.5),
    "clone": lambda t, x, y: x.clone(),
    "x.add_(y)": lambda t, x, y: x.add_(y),
    "linear": lambda t, x, y: t.nn.functional.linear(x, y),
    "zeros": lambda t, x, y: t.zeros(4, 4),
}


def cost_of_calls(rounds):
    if importlib.util.find_spec("torch") is None:
        return print("calls: PyTorch is not installed")
    import torch as pytorch

    pytorch.set_num_threads(1)
    wick.torch.set_num_threads(1)
    ratios = []
    for name, call in CALLS.items():
        times = {}
        for space in (torch, pytorch):
            x, y = space.full((4, 4), 0.5), space.full((4, 4), 1.5)
            call(space, x, y)
            times[space] = min(
                shortest(lambda: call(space, x, y), 3, 2000) for _ in range(rounds)
            )
        ratio = times[torch] / times[pytorch]
        ratios.append(ratio)
        print(f"{name:>14}: {times[torch]:6.2f} us, PyTorch {times[pytorch]:6.2f} us: {ratio:.2f}")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"calls: geometric mean {mean:.2f}, highest {max(ratios):.2f} (bar 1.2)")


def chain(x, length):
    for _ in range(length // 4):
        x = ((x * 0.99 + 0.5) - 0.25).relu()
    return x


def cost_of_tracing(rounds):
    length, x = 2000, torch.full((4,), 0.5)
    called = shortest(lambda: chain(x, length), 3 * rounds) / length
    traced = shortest(
        lambda: jit.trace(lambda t: chain(t, length), x, check_trace=False), 3 * rounds
    )
    print(
        f"tracing: {traced / length:.2f} us an operator, a call alone {called:.2f}: "
        f"{traced / length - called:.2f} more (bar 3)"
    )


def cost_of_lazy(rounds):
    length = 100
    x = torch.full((16,), 0.5).to("lazy")
    chain(x, length)
    lazy.mark_step()
    recorded = math.inf
    for _ in range(30 * rounds):
        recorded = min(recorded, shortest(lambda: chain(x, length), 1) / length)
        lazy.mark_step()
    print(f"recording in Python: {recorded:.2f} us an operator, its call in Python included")
    torch.set_num_threads(2)
    for size in (1000, 100_000, 1_000_000):
        x = torch.full((size,), 0.5)
        on_lazy = x.to("lazy")

        def lazily():
            result = chain(on_lazy, length)
            lazy.mark_step()
            return result

        lazily()
        eager = shortest(lambda: chain(x, length), 10 * rounds)
        best = shortest(lazily, 30 * rounds)
        print(
            f"chain of {length} on {size} numbers, 2 threads: eager {eager:.0f} us, lazy "
            f"{best:.0f} us: {eager / best:.1f} times faster (bar 5)"
        )


PARTS = {
    "import": cost_of_import,
    "calls": cost_of_calls,
    "trace": cost_of_tracing,
    "lazy": cost_of_lazy,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name in options.only.split(","):
        if name not in PARTS:
            parser.error(f"--only: expected some of {', '.join(PARTS)}, got '{name}'")
        PARTS[name](options.rounds)


if __name__ == "__main__":
    main()
