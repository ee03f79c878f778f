"""wick.aot: models that were compiled ahead of time, from Python."""

import os
import subprocess
import tempfile
import threading
import unittest

import numpy
import testing  # noqa: F401  (finds the package)
import wick
from wick import jit, torch

SOURCE = """
def main(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    return x * y + torch.tensor([1.0, 2.0, 3.0]), x.sum(-1)
def first(x: Tensor) -> Tensor:
    return x[0] * 2
def joined(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x * 2, y], 1)
def positive(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x[x > 0] * 2, x + 1
"""


class Ahead(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        source = os.path.join(cls.folder.name, "pair.py")
        with open(source, "w") as file:
            file.write(SOURCE)
        subprocess.run(
            ["tools/torchscript-cli", "build", source, "--emit", "library"]
            + ["--input", "2x3xf32", "--input", "3xf32", "--also", "main 4x3xf32 3xf32"]
            + ["--also", "first 2x3xi64", "--also", "joined NxLxf32 Nx2xf32"]
            + ["--also", "positive Nxf32"]
            + ["--range", "N=1..5", "--range", "L=1..4", "--output", cls.folder.name],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        cls.library = os.path.join(cls.folder.name, "libpair.so")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_calls_give_what_the_program_gives(self):
        model = wick.aot.load(self.library)
        program = jit.CompilationUnit(SOURCE)
        for rows in (2, 4):
            x, y = torch.rand(rows, 3), torch.rand(3)
            for got, want in zip(model(x, y), program.main(x, y)):
                self.assertTrue(torch.allclose(got, want, rtol=1e-6, atol=1e-6))
        x = torch.arange(6).reshape(2, 3)
        self.assertEqual(model.first(x).tolist(), [0, 2, 4])
        self.assertEqual(model.first(x.t().contiguous().t()).tolist(), [0, 2, 4])
        array = numpy.arange(6).reshape(2, 3)
        self.assertEqual(model.first(array).tolist(), [0, 2, 4])
        self.assertIn("first(x: torch.int64[2, 3])", repr(model))

    def test_sizes_are_those_of_the_call(self):
        model = wick.aot.load(self.library)
        program = jit.CompilationUnit(SOURCE)
        for n, k in ((1, 1), (5, 4), (2, 3)):
            x, y = torch.rand(n, k), torch.rand(n, 2)
            self.assertEqual(model.joined(x, y).tolist(), program.joined(x, y).tolist())
        signature = next(s for s in model.signatures if s.method == "joined")
        self.assertEqual(signature.sizes, {"N": range(1, 6), "L": range(1, 5)})
        self.assertEqual(signature.inputs[0].sizes, ("N", "L"))
        self.assertEqual(signature.outputs[0].sizes, (None, None))
        with self.assertRaisesRegex(ValueError, "expected N from 1 to 5"):
            model.joined(torch.rand(6, 3), torch.rand(6, 2))
        with self.assertRaisesRegex(ValueError, r"expected float32\[N=2, 2\], got float32\[3, 2\]"):
            model.joined(torch.rand(2, 3), torch.rand(3, 2))

    def test_sizes_that_elements_decide(self):
        model = wick.aot.load(self.library)
        signature = next(s for s in model.signatures if s.method == "positive")
        self.assertIn("positive(x: torch.float32[N])", repr(signature))
        for values in ([1.0, -2.0, 3.0], [-1.0], [4.0], [1.0, 2.0, 3.0, 4.0, 5.0], [-1.0, -2.0]):
            selected, others = model.positive(torch.tensor(values))
            self.assertEqual(selected.tolist(), [2 * v for v in values if v > 0])
            self.assertEqual(others.tolist(), [v + 1 for v in values])

    def test_threads_have_states_of_their_own(self):
        model = wick.aot.load(self.library)
        y = torch.tensor([1.0, 1.0, 1.0])
        wrong = []

        def work(seed):
            x = torch.full((2, 3), float(seed))
            for _ in range(200):
                if model(x, y)[1].tolist() != [3.0 * seed, 3.0 * seed]:
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_errors(self):
        model = wick.aot.load(self.library)
        with self.assertRaisesRegex(ValueError, "none of the 2 signatures of forward"):
            model(torch.rand(5, 3), torch.rand(3))
        with self.assertRaisesRegex(ValueError, r"expected int64\[2, 3\], got float32\[2, 3\]"):
            model.first(torch.rand(2, 3))
        with self.assertRaisesRegex(TypeError, "forward: expected 2 tensors, got 1"):
            model(torch.rand(2, 3))
        with self.assertRaisesRegex(AttributeError, "no method or attribute 'second'"):
            model.second
        with self.assertRaisesRegex(ValueError, "libNAME.so"):
            wick.aot.load("/tmp/model.so")
        with self.assertRaisesRegex(ValueError, "holds no model 'other'"):
            wick.aot.load(self.library, name="other")
        with self.assertRaisesRegex(RuntimeError, "No such file"):
            wick.aot.load(self.library, weights="/nonexistent")
        with self.assertRaises(OSError):
            wick.aot.load("/nonexistent/libpair.so")


if __name__ == "__main__":
    unittest.main()
