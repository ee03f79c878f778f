#!/usr/bin/python3
"""Writes the module archives in data/ with PyTorch: run it from its folder after changing it."""
import enum
from typing import Dict, List, NamedTuple, Optional, Tuple

import torch


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Point(NamedTuple):
    x: int
    y: float


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start

    def add(self, n: int) -> int:
        self.count += n
        return self.count


class Shifter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.amount = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    @torch.jit.export
    def shift(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return x + self.amount

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.shift(x)


def double(x: torch.Tensor, times: int = 1) -> torch.Tensor:
    for _ in range(times):
        x = x * 2
    return x


class State(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.value = 0

    @torch.jit.export
    def __getstate__(self):
        return (self.value, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[int, bool]):
        self.value = state[0] + 1
        self.training = state[1]

    def forward(self) -> int:
        return self.value


class Main(torch.nn.Module):
    table: Dict[str, List[int]]
    sizes: List[float]
    point: Tuple[int, Optional[str]]
    color: Color

    def __init__(self):
        super().__init__()
        self.shifter = Shifter()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        self.state = State()
        self.table = {"a": [1, 2], "b": []}
        self.sizes = [0.5]
        self.point = (3, None)
        self.color = Color.GREEN
        self.scale = torch.tensor([10.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return double(self.shifter(x), times=2) + self.scale

    @torch.jit.export
    def look(self, key: str) -> Tuple[List[int], int, bool, float, Point]:
        counter = Counter(len(self.table))
        total = counter.add(self.point[0])
        return self.table[key], total, self.color == Color.GREEN, self.sizes[0], Point(total, 1.5)

    @torch.jit.export
    def count(self) -> int:
        return self.state()


torch.manual_seed(0)
torch.jit.save(torch.jit.script(Main()), "data/module.pt", _extra_files={"note.txt": "hello"})
torch.jit.save(torch.jit.script(Shifter()), "data/small_module.pt")


class Constants(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)
        self.table = {"a": torch.tensor([1, 2]), "b": torch.tensor([3])}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = self.linear(x)
        for i in range(3):
            if i > 1:
                break
            total = total + self.table["a"].sum() * i
        return total


torch.jit.save(torch.jit.freeze(torch.jit.script(Constants()).eval()), "data/constants.pt")


class TracedNumbers(torch.nn.Module):
    """Tracing makes tensors of the numbers."""

    def forward(self, x):
        number = torch.tensor(0.5, dtype=torch.float64)
        return x * 0.5, x + 0.5, x - 0.5, x / 0.5, torch.maximum(x, number), torch.remainder(x, number)


torch.jit.save(torch.jit.trace(TracedNumbers(), torch.arange(3)), "data/traced_numbers.pt")
