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

}  // namespace wick
