"""Writes programs of torch.export and reads them back: scripts, captured functions, and what PyTorch 2.11 recorded. That PyTorch reads
them is what check_written.py finds, where PyTorch 2.11 is."""
import itertools
import json
import math
import os
import resource
import sys
import tarfile
import tempfile
import unittest
import zipfile

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
    "autocast": (
        "def f(x: Tensor, w: Tensor):\n    with torch.autocast('cpu'):\n        y = torch.softmax(x @ w, 1)\n        z = torch.relu(x) @ w.double().float()\n    return y, z, z + x @ w\n",
        (rand(4, 4), rand(4, 4)), {"x": {0: ("N", 2, 9)}}, [(rand(7, 4), rand(4, 4))]),
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

# Programs whose results have the sizes that the file states, at all sizes of the argument: source, sizes of the argument with names
# of those that are open, their ranges, and a part of what the file states.
SIZES = {
    "slice_ends_at_a_number": ("return x[:10]", ("N", 3), {"N": (1, 64)}, "Min(Integer(10), "),
    "slice_ends_at_most": ("return x[:63]", ("N", 3), {"N": (1, 64)}, "Min(Integer(63), "),
    "slice_begins_behind": ("return x[10:]", ("N", 3), {"N": (1, 64)}, "Max(Integer(0), "),
    "slice_between": ("return x[5:20]", ("N", 3), {"N": (2, 64)}, "Min(Integer(20), "),
    "slice_from_the_end": ("return x[-7:], x[:-3], x[-9:-4]", ("N", 3), {"N": (2, 64)}, "Max(Integer(0), "),
    "slice_that_fits": ("return x[2:-1], x[:8]", ("N", 3), {"N": (8, 64)}, "Integer(8)"),
    "slice_with_steps": ("return x[::3], x[1:30:7]", ("N", 3), {"N": (2, 64)}, "FloorDiv("),
    "lesser_of_two": ("return x[:min(x.size(0), x.size(1))], x[:, :min(x.size(0), 5)]", ("N", "M"), {"N": (2, 40), "M": (2, 40)}, "Min(Symbol("),
    "greater_of_two": ("return torch.zeros([max(x.size(0), x.size(1)), max(x.size(1), 12)])", ("N", "M"), {"N": (2, 40), "M": (2, 40)}, "Max(Symbol("),
    "quotients": ("return torch.zeros([x.size(0) // 40 + 1, x.size(0) % 7 + 1])", ("N",), {"N": (1, 200)}, "FloorDiv(Symbol("),
    "far_quotient": ("return torch.zeros([x.size(0) // 100 + 1])", ("N",), {"N": (1, 64)}, "FloorDiv(Symbol("),
    "many_convolutions": (
        "for i in range(5):\n        x = torch.relu(torch.conv2d(x, torch.ones([2, 2, 3, 3]), stride=[2, 2], padding=[1, 1]))\n    return x, x.flatten(1), x.reshape(x.size(0), 2, -1)",
        (2, 2, "H", "W"), {"H": (1, 150), "W": (30, 90)}, "Integer(32)"),
    "pools_that_round_up": ("return torch.max_pool2d(x, [3, 3], [2, 2], [1, 1], [1, 1], True), torch.avg_pool2d(x, [2, 2], ceil_mode=True)", (2, 2, "H", "H"), {"H": (2, 50)}, "FloorDiv("),
    "joined": ("return torch.cat([x[:4], x, x[:, 1:]], 1) if x.size(1) > 90 else torch.cat([x, x[:9]])", ("N", 5), {"N": (2, 64)}, "Min(Integer(9)"),
    "permuted": ("y = x[:10].permute([1, 2, 0])\n    return y, y.contiguous().view(-1), y.expand([2, -1, -1, -1])", ("N", 3, "M"), {"N": (2, 64), "M": (2, 9)}, "Min(Integer(10)"),
    "chunks": ("a, b = x.chunk(2)\n    return a, b", ("N",), {"N": (2, 64)}, "FloorDiv("),
}
# Sizes that are refused: the examples do not tell them. By a part of the source, and of the message.
UNKNOWN_SIZES = {
    "return torch.zeros([x.size(0), 1]).unfold(0, 5, 3)": None,
    "return torch.zeros([int(x.size(0) * 0.37)])": "size of the result of aten::zeros",
    "return x.repeat([int(float(x.size(0)) ** 0.5)])": "aten::pow of numbers that change",
}

# Programs that are refused: source, arguments, a part of the message, and perhaps open sizes.
REFUSED = {
    "list_in_branch": ("def f(x: Tensor):\n    l = [x]\n    if bool(x.sum() > 0):\n        l.append(x * 2)\n    return torch.cat(l)\n", (rand(2).abs(),), "a list that changes in a branch or loop .aten::append.(?s:.*)line 4"),
    "number_in_loop": ("def f(x: Tensor):\n    n = 0\n    while bool(x.norm() > 0.1):\n        x = x / 2\n        n += 1\n    return x * n\n", (rand(3),), "<string>"),
    "dict_in_branch": ("def f(x: Tensor):\n    d = {'a': x}\n    if bool(x.sum() > 0):\n        d['b'] = x * 2\n    return d['a']\n", (rand(2).abs(),), "a dict that changes in a branch or loop .aten::_set_item.(?s:.*)line 4"),
    "list_in_loop": ("def f(x: Tensor):\n    l = [x]\n    while bool(x.norm() > 0.1):\n        l.append(x)\n        x = x / 2\n    return torch.cat(l)\n", (rand(2),), "a list that changes in a branch or loop(?s:.*)line 4"),
    "long_loop": ("def f(x: Tensor):\n    for i in range(2000):\n        x = x * 0.5 + i\n    return x\n", (rand(2),), "a loop of 2000 iterations(?s:.*)line 2"),
    "loop_of_a_tensor": ("def f(x: Tensor, n: Tensor):\n    for i in range(int(n)):\n        x = x * 0.5 + i\n    return x\n", (rand(2), torch.tensor(3)), "a loop that counts as far as(?s:.*)line 2"),
    "numbers_that_wrap": ("def f(x: Tensor):\n    n = x.size(0) * 4611686018427387904\n    return x + n * 4 // -1\n", (rand(4),), "an int that may not fit in 64 bits(?s:.*)line 2", {"x": {0: ("N", 1, 64)}}),
    "number_at_the_end": ("def f(x: Tensor):\n    n = -9223372036854775807 - 1\n    return (n + x.size(0)) // -1, x\n", (rand(4),), "an int that may not fit in 64 bits(?s:.*)line 3", {"x": {0: ("N", 1, 64)}}),
    "example_fails": ("def f(x: Tensor):\n    return x.view(7)\n", (rand(3),), "the example fails"),
}


def product(*factors):
    return math.prod(factors)


def stated_sizes(path):
    """The sizes of the results that a file states: functions of open sizes, with their texts."""
    with zipfile.ZipFile(path) as archive:
        record = next(name for name in archive.namelist() if name.endswith("models/model.json"))
        graph = json.loads(archive.read(record))["graph_module"]["graph"]
    functions = {
        "Integer": int, "Add": lambda *all: sum(all), "Mul": product, "Min": min, "Max": max, "FloorDiv": lambda a, b: a // b, "PythonMod": lambda a, b: a % b,
    }

    def function(size):
        if "as_int" in size:
            return f"Integer({size['as_int']})", lambda symbols: size["as_int"]
        text = size["as_expr"]["expr_str"]
        return text, lambda symbols: eval(text, functions | {"Symbol": lambda name, **_: symbols[name]})
    return [[[function(size) for size in graph["tensor_values"][output["as_tensor"]["name"]][part]] for part in ("sizes", "strides")] for output in graph["outputs"]]


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

    def test_stated_sizes(self):
        for name, (body, dims, ranges, text) in SIZES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                function = wick.jit.CompilationUnit(f"def f(x: Tensor):\n    {body}\n").f
                path = os.path.join(folder, "m.pt2")
                dynamic = {i: (dim, *ranges[dim]) for i, dim in enumerate(dims) if dim in ranges}
                at = lambda sizes: rand(*[sizes.get(dim, dim) for dim in dims])
                wick.export.save(function, path, (at({dim: range[1] // 2 for dim, range in ranges.items()}),), dynamic_shapes={"x": dynamic})
                stated = stated_sizes(path)
                self.assertIn(text, " ".join(size for parts in stated for part in parts for size, _ in part))
                made = wick.export.load(path)
                every = [range(least, most + 1, 1 if len(ranges) == 1 else 1 + (most - least) // 9) for least, most in ranges.values()]
                for sizes in itertools.product(*every):
                    symbols = {f"s{i}": size for i, (_, size) in enumerate(sorted(zip(ranges, sizes)))}
                    x = at(dict(zip(ranges, sizes)))
                    results = function(x)
                    self.assertIsNone(difference(made(x), results, 1e-5, f"{sizes}"))
                    for result, (want, strides) in zip(results if isinstance(results, tuple) else (results,), stated):
                        self.assertEqual([size(symbols) for _, size in want], list(result.shape), sizes)
                        if result.numel() > 0 and 1 not in result.shape:
                            self.assertEqual([stride(symbols) for _, stride in strides], list(result.stride()), sizes)

    def test_unknown_sizes(self):
        for body, message in UNKNOWN_SIZES.items():
            function = wick.jit.CompilationUnit(f"def f(x: Tensor):\n    {body}\n").f
            with self.subTest(body):
                if message is None:
                    self.written(function, (rand(20),), {"x": {0: ("N", 5, 64)}})
                    continue
                with self.assertRaisesRegex(RuntimeError, f"(?s){message}.*<string>\", line 2"):
                    self.written(function, (rand(20),), {"x": {0: ("N", 5, 64)}})

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

    def test_memory(self):
        """Tensors live no longer than a run needs them, in branches and loops too: all of them would take gigabytes."""
        source = """def f(x: Tensor):
    for i in range(60):
        x = torch.relu(x) + 1
    if bool(x.sum() > 0):
        a = torch.relu(x)
        y = torch.relu(torch.relu(a) + a)
    else:
        y = -x
    while bool(y.sum() < 0):
        y = torch.relu(y + 1)
    return y, x.size(0)
"""
        x = rand(1, 1 << 20)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.written(wick.jit.CompilationUnit(source).f, (x,), {"x": {0: ("N", 1, 2)}})
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 400 << 10)

    def test_lists_change_after_they_are_made(self):
        """A list's parts are those that it had when an operator made it, and a result's those that it has at the end."""
        source = """def f(x: Tensor, l: List[Tensor]):
    y = [x * 2]
    y.append(l[0])
    l.append(x)
    z = {'all': y}
    y.append(x + 1)
    return z, len(l), y[2]
"""
        function = wick.jit.CompilationUnit(source).f
        expected = function(rand(3), [rand(3)])
        self.assertIsNone(difference(self.written(function, (rand(3), [rand(3)]))(rand(3), [rand(3)]), expected, 1e-5))

    def test_refused(self):
        for name, (source, args, message, *dynamic) in REFUSED.items():
            with self.subTest(name), self.assertRaisesRegex(RuntimeError, message):
                self.written(wick.jit.CompilationUnit(source).f, args, *dynamic)

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
                # Programs may write to their arguments.
                args = lambda: tuple(torch.load(os.path.join(folder, name, "io.pt"))["calls"][0]["args"])
                content = torch.load(os.path.join(folder, name, "io.pt"))
                if not content["calls"] or "raises" in content["calls"][0] or content["calls"][0]["kwargs"]:
                    continue
                try:
                    module = wick.export.load(os.path.join(folder, name, "module.pt2"))
                    expected = module(*args())
                except RuntimeError:
                    continue
                try:
                    made = self.written(module, args())
                except RuntimeError as error:
                    refused += 1
                    print(f"{name}: {' '.join(str(error).split())[:160]}", file=sys.stderr)
                    continue
                written += 1
                with self.subTest(name):
                    self.assertIsNone(difference(made(*args()), expected, 1e-5))
        self.assertLessEqual(refused, 0.05 * (written + refused))


unittest.main()
