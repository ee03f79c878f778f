// Valid programs from which fuzz targets start.
#pragma once

#include <string>
#include <vector>

namespace wick {

inline const std::vector<std::string>& seedPrograms() {
  static const std::vector<std::string> programs = {
      R"(def f(x: Tensor, y: int = 3, *, z: Optional[int] = None) -> Tuple[int, Tensor]:
    a, (b, *c) = x[1:, ..., None], y[::2][0,]
    if not a in b and c is not None or a < b <= c not in d:
        return 1; x = 2
    elif (lambda x, y=1: x + y)(1, 2):
        s = f"v={x!r:>{w}} {{}} {y=}" 'b\x41\u00e9\303' rf"\d{a[0:1]['k']}"
    else:
        pass
    return a if b else c ** -d @ e // f, x
)",
      R"(
@torch.jit.script
def g(self,  # type: Tensor
      x,  # type: List[int]
      ):
    # type: (...) -> Dict[str, int]
    total = []  # type: List[int]
    for i, v in enumerate(x):
        total += [i * v << 1 | 0xff, *x]
        while i > 0x10:
            i -= 1_000; break
    with torch.no_grad() as n, self.lock:
        assert any(v > 0 for v in x if v), "message"
        del total[0]
    return {str(k): k for k in total if k != 2.5e-3}
)",
      R"(class A(Module):
  """doc"""
  __parameters__ = ["weight", ]
  __annotations__["0"] = __torch__.B
  eps : Final[float] = 0.3
  training : bool
  def forward(self: __torch__.A,
    x: Tensor) -> Tensor:
    _0, _1, = torch.f(x, alpha=1, beta=[1., 2j])
    raise ValueError("no") from e
)",
      "import torch.nn as nn\nfrom typing import (List, Dict,)\nx: int = 3\nglobal y, z\n",
  };
  return programs;
}

// Programs that compile as they are.
inline const std::vector<std::string>& compilingPrograms() {
  static const std::vector<std::string> programs = {
      R"(class Point(NamedTuple):
    x: int
    y: float = 2.5

class Color(Enum):
    RED = 1
    BLUE = 2

@torch.jit.interface
class Stepper:
    def step(self, n: int) -> int:
        pass

class Counter:
    total: int
    names: List[str]
    def __init__(self, start: int):
        self.total = start
        self.names = torch.jit.annotate(List[str], [])
    def step(self, n: int) -> int:
        self.total += n
        self.names.append(f"{n:>3}")
        return self.total
    def __len__(self) -> int:
        return len(self.names)
    def __getitem__(self, i: int) -> str:
        return self.names[i]
    @property
    def doubled(self) -> int:
        return self.total * 2

def drive(s: Stepper, k: int) -> int:
    return s.step(k) + s.step(k - 1)

def main(n: int, z: Optional[int] = None) -> Tuple[int, float, str]:
    c = Counter(n)
    p = Point(drive(c, 3))
    color = Color.RED if n > 2 else Color.BLUE
    if color == Color.RED and z is not None:
        return z, p.y, c[0]
    return c.doubled + len(c), p.y * p.x, color.name
)",
      R"(def pick(x: Union[int, str, List[float]]) -> int:
    if isinstance(x, int):
        return x
    elif torch.jit.isinstance(x, List[float]):
        return len(x)
    else:
        return len(x.split(","))

def main(x: Tensor, k: int = 2) -> Tuple[Tensor, int]:
    future = torch.jit.fork(pick, "a,b")
    total = 0
    for i, (a, b) in enumerate(zip([1, 2, 3], ["x", "y", "z"])):
        if i == k:
            continue
        total += a * len(b)
        while total > 5:
            total -= 3
            if total % 2 == 0:
                break
        else_ = {b: a for b, a in [("k", 1)]}
        total += else_["k"]
    with torch.no_grad():
        y = x[..., None, 0:1] * 2.0 + torch.sum(x, dim=[0], keepdim=True)
        y[0] += 1
    try_ = [[j * i for j in range(i)] for i in range(3)]
    assert len(try_) == 3, "three"
    return torch.nn.functional.relu(y), total + torch.jit.wait(future) + try_[2][1]
)",
  };
  return programs;
}

}  // namespace wick
