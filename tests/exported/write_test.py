"""Writes programs of torch.export and reads them back: scripts, captured functions, and what PyTorch 2.11 recorded. That PyTorch reads
them is what check_written.py finds, where PyTorch 2.11 is."""
import os
import resource
import sys
import tarfile
import tempfile
import unittest

import wick
from comparison import difference
from wick import torch

KIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kit.tar.xz")


def rand(*sizes, seed=0):
    torch.manual_seed(seed)
    return torch.rand(*sizes) * 2 - 1


# Source, arguments of the program, open sizes, arguments of further calls.
SCRIPTS = {
    "straight": ("def f(x: Tensor, w: Tensor):\n    return torch.relu(x @ w) + 1\n", (rand(2, 3), rand(3, 4)), None, []),
    "containers": (
        "def f(x: Tensor, d: Dict[str, Tensor], l: List[Tensor]):\n    y = x + d['a']\n    return {'y': y, 'l': [y, l[1]], 't': (l[0] * 2, 3, None)}\n",
        (rand(2), {"a": rand(2), "b": rand(1)}, [rand(2), rand(3)]), None, []),
    "numbers_are_constants": ("def f(x: Tensor, n: int, s: float, flag: bool):\n    return x * n + s if flag else x\n", (rand(2), 3, 0.5, True), None, []),
    "several_results": ("def f(x: Tensor):\n    a, b = x.chunk(2)\n    v, i = x.topk(2)\n    return a, b, v, i, torch.split(x, [1, 3])[1]\n", (rand(4),), None, []),
    "writes_in_place": ("def f(x: Tensor):\n    y = x.clone()\n    y.add_(1).mul_(2)\n    y[0] = 5\n    return y\n", (rand(4),), None, []),
    "condition": (
        "def f(x: Tensor):\n    if bool(x.sum() > 0):\n        y = x * 2\n        z = x + 1\n    else:\n        y = x - 1\n        z = x\n    return y, z\n",
        (rand(3).abs(),), None, [(-rand(3).abs(),)]),
    "nested_conditions": (
        "def f(x: Tensor):\n    if bool(x.sum() > 0):\n        if bool(x.max() > 0.5):\n            y = x * 3\n        else:\n            y = x * 5\n    else:\n        y = -x\n    return y\n",
        (rand(3),), None, [(rand(3).abs(),), (rand(3).abs() * 0.1,), (-rand(3).abs(),)]),
    "loop": (
        "def f(x: Tensor):\n    n = torch.zeros([])\n    while bool(x.norm() > 0.1):\n        x = x / 2\n        n = n + 1\n    return x, n\n",
        (rand(3),), None, [(rand(3) * 100,), (rand(3) * 0.001,)]),
    "loop_with_branch": (
        "def f(x: Tensor):\n    while bool(x.norm() > 0.1):\n        if bool(x.mean() > 0.2):\n            x = x * 0.5\n        else:\n            x = x * 0.25\n    return x\n",
        (rand(4),), None, [(rand(4) + 3,)]),
    "unrolled_loop": (
        "def f(x: Tensor, w: Tensor):\n    out: List[Tensor] = []\n    h = torch.zeros([4])\n    for i in range(x.size(0)):\n        h = torch.tanh(x[i] @ w + h)\n        out.append(h)\n    return torch.stack(out)\n",
        (rand(5, 3), rand(3, 4)), None, []),
    "assertion": ("def f(x: Tensor):\n    if bool(x.isnan().any()):\n        raise ValueError('NaN')\n    return x + 1\n", (rand(3),), None, []),
    "open_batch": ("def f(x: Tensor):\n    return x.view(x.size(0) * 3), torch.zeros([x.size(0) + 1, 2]), x.size(0) * 2 - 1\n", (rand(4, 3),), {"x": {0: ("N", 1, 64)}},
                   [(rand(1, 3),), (rand(64, 3),), (rand(7, 3),)]),
    "open_image": (
        "def f(x: Tensor, w: Tensor):\n    y = torch.max_pool2d(torch.conv2d(x, w, stride=[2, 2], padding=[1, 1]), [2, 2])\n    return y.reshape(x.size(0), -1).sum(1), y.mean([2, 3])\n",
        (rand(2, 3, 16, 16), rand(4, 3, 3, 3)), {"x": {0: ("N", 1, 8), 2: ("H", 8, 64), 3: ("W", 8, 64)}}, [(rand(1, 3, 33, 20), rand(4, 3, 3, 3)), (rand(5, 3, 8, 64), rand(4, 3, 3, 3))]),
    "branch_on_size": ("def f(x: Tensor):\n    if x.size(0) > 60:\n        y = x * 2\n    else:\n        y = x + 1\n    return y\n", (rand(4),), {"x": {0: ("N", 1, 64)}},
                       [(rand(61),), (rand(60),), (rand(64),)]),
    "branch_on_parity": ("def f(x: Tensor):\n    if x.size(0) % 2 == 0:\n        y = x * 2\n    else:\n        y = x + 1\n    return y\n", (rand(4),), {"x": {0: ("N", 1, 64)}},
                         [(rand(7),), (rand(8),)]),
    "quotient_of_a_size": ("def f(x: Tensor):\n    return x.size(0) // 40, x + 1\n", (rand(4),), {"x": {0: ("N", 1, 64)}},
                       [(rand(3),), (rand(39),), (rand(40),), (rand(64),)]),
    "slice_that_clamps": ("def f(x: Tensor):\n    return x[:10] * 2, x[:10].sum()\n", (rand(4, 3),), {"x": {0: ("N", 1, 64)}}, [(rand(3, 3),), (rand(10, 3),), (rand(11, 3),), (rand(64, 3),)]),
    "greater_of_two_sizes": ("def f(x: Tensor, y: Tensor):\n    return torch.zeros([max(x.size(0), y.size(0))]), x + 1, y + 1\n", (rand(4), rand(5)),
                             {"x": {0: ("N", 2, 9)}, "y": {0: ("M", 2, 12)}}, [(rand(9), rand(3)), (rand(2), rand(7))]),
    "equal_sizes": ("def f(x: Tensor, y: Tensor):\n    return x + y, torch.cat([x, y])\n", (rand(4), rand(4)), {"x": {0: ("N", 2, 9)}, "y": {0: ("N", 2, 9)}}, [(rand(9), rand(9))]),
}

# Programs that are refused, and a part of the message.
REFUSED = {
    "list_in_branch": ("def f(x: Tensor):\n    l = [x]\n    if bool(x.sum() > 0):\n        l.append(x * 2)\n    return torch.cat(l)\n", (rand(2).abs(),), "a branch with effects"),
    "number_in_loop": ("def f(x: Tensor):\n    n = 0\n    while bool(x.norm() > 0.1):\n        x = x / 2\n        n += 1\n    return x * n\n", (rand(3),), "<string>"),
    "example_fails": ("def f(x: Tensor):\n    return x.view(7)\n", (rand(3),), "the example fails"),
}


class WriteTest(unittest.TestCase):
    def written(self, module, args, dynamic=None):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.pt2")
            wick.export.save(module, path, args, dynamic_shapes=dynamic)
            return wick.export.load(path)

    def test_scripts(self):
        for name, (source, args, dynamic, others) in SCRIPTS.items():
            with self.subTest(name):
                function = wick.jit.CompilationUnit(source).f
                made = self.written(function, args, dynamic)
                for call in [args, *others]:
                    self.assertIsNone(difference(made(*call), function(*call), 1e-5))

    def test_other_sizes_raise(self):
        source, args, dynamic, _ = SCRIPTS["open_batch"]
        made = self.written(wick.jit.CompilationUnit(source).f, args, dynamic)
        with self.assertRaisesRegex(RuntimeError, r"x.shape\[0\] to be <= 64, but got 65"):
            made(rand(65, 3))
        with self.assertRaisesRegex(RuntimeError, r"x.shape\[1\] to be equal to 3, but got 2"):
            made(rand(4, 2))

    def test_arguments_are_not_written_to(self):
        x = rand(4)
        before = x.clone()
        self.written(wick.jit.CompilationUnit("def f(x: Tensor):\n    x.add_(1)\n    return x * 2\n").f, (x,))
        self.assertIsNone(difference(x, before, 0))

    def test_refused(self):
        for name, (source, args, message) in REFUSED.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, message):
                self.written(wick.jit.CompilationUnit(source).f, args)

    def test_modules_keep_names(self):
        class Net(wick.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = wick.nn.Linear(3, 4)
                self.norm = wick.nn.BatchNorm1d(4)

            def forward(self, x):
                return torch.dropout(self.norm(self.fc(x)), 0.5, self.training)

        module = wick.jit.script(Net())
        x = rand(5, 3)
        made = self.written(module, (x,))
        self.assertIsNone(difference(made(x), module.eval()(x), 1e-5))
        state = made.state_dict()
        for name in ("fc.weight", "fc.bias", "norm.weight", "norm.running_mean"):
            self.assertIsNone(difference(state[name], module.state_dict()[name].detach(), 0, name))
        self.assertEqual(sorted(n for n, _ in made.named_parameters()), ["fc.bias", "fc.weight", "norm.bias", "norm.weight"])

    def test_examples_take_the_memory_of_one_run(self):
        """Each of 80 results is 4 MB, and seven examples run."""
        source = "def f(x: Tensor):\n    for i in range(40):\n        x = torch.relu(x + i)\n    return x\n"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        function = wick.jit.CompilationUnit(source).f
        made = self.written(function, (rand(1000, 1024),), {"x": {0: ("N", 500, 1000)}})
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 400 << 10)
        x = rand(700, 1024)
        self.assertIsNone(difference(made(x), function(x), 1e-4))

    def test_captured_functions(self):
        def f(x, y):
            values = [x * i for i in range(3)]
            return {"sum": sum(values), "y": y.relu()}

        args = (rand(2, 3), rand(4))
        program = wick.compiler.export(f, *args)
        self.assertIsNone(difference(self.written(program, args)(*args), f(*args), 1e-5))

    def test_recorded_programs(self):
        """Programs of the kit, written again: most of them can be."""
        written = failed = refused = 0
        with tempfile.TemporaryDirectory() as folder, tarfile.open(KIT) as kit:
            kit.extractall(folder)
            for name in sorted(os.listdir(folder))[::12]:
                content = torch.load(os.path.join(folder, name, "io.pt"))
                if not content["calls"] or "raises" in content["calls"][0] or content["calls"][0]["kwargs"]:
                    continue
                try:
                    module = wick.export.load(os.path.join(folder, name, "module.pt2"))
                    args = tuple(content["calls"][0]["args"])
                    expected = module(*args)
                except RuntimeError:
                    continue
                try:
                    made = self.written(module, args)
                except RuntimeError as error:
                    refused += 1
                    print(f"{name}: {' '.join(str(error).split())[:160]}", file=sys.stderr)
                    continue
                written += 1
                with self.subTest(name):
                    self.assertIsNone(difference(made(*args), expected, 1e-5))
        self.assertLessEqual(refused, 0.05 * (written + refused))


unittest.main()
