"""Printed code runs as ordinary Python (printed_code.py), on a small sample."""

import os
import tempfile
import unittest
from typing import Dict, List, Optional, Tuple

from printed_code import Program
from testing import Case
from wick import jit, nn, torch


class Sample(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.table = torch.arange(4)

    def helper(self, x, n: int) -> List[torch.Tensor]:
        out: List[torch.Tensor] = []
        for i in range(n):
            out.append(x[i] * 2.5)
        return out

    def forward(
        self, x, n: int, names: Dict[str, int], other: Optional[torch.Tensor] = None
    ) -> Tuple[torch.Tensor, int, Dict[str, int], str]:
        y = torch.cat([self.layer(x), x], dim=1)[:, 1:-1]
        parts = torch.stack(self.helper(y, n)).to(torch.float64)
        if other is not None:
            parts = parts + other
        i = 0
        while i < 5:
            i += n
            if i == 4:
                break
        names["new"] = i
        values, places = torch.max(parts, 1)
        return values + places + self.table[:n].sum(), len(names), names, "n=" + str(n)


class PrintedCode(Case):
    def test_sample(self):
        net = Sample()
        made = jit.script(net)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sample.pt")
            jit.save(made, path)
            program = Program(path)
        x = torch.randn(3, 3)
        for n, other in [(1, None), (2, torch.ones(1))]:
            expected = made(x, n, {"a": 1}, other)
            found = program.main(x, n, {"a": 1}, other)
            self.assert_same(found[0], expected[0], 1e-6)
            self.assertEqual(found[1:], expected[1:])

    def test_operators_that_share_names_with_functions(self):
        def f(x, mask):
            values, inverse, counts = torch.ops.aten.unique_consecutive(x, True, True)
            places: List[Optional[torch.Tensor]] = [inverse]
            picked = torch.ops.aten._unsafe_masked_index(values, mask, places, 2.5)
            return values, counts, picked

        made = jit.script(f)
        x, mask = torch.tensor([1.0, 1.0, 3.0]), torch.tensor([True, False, True])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "functions.pt")
            jit.save(made, path)
            program = Program(path)
        for found, expected in zip(program.main(x, mask), made(x, mask)):
            self.assert_same(found, expected)


if __name__ == "__main__":
    unittest.main()
