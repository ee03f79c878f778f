"""Functions, classes and modules of Python as programs."""

import enum
import functools
import io
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import wick
from testing import Case, needs_pytorch
from wick import jit, nn, torch

FACTOR = 3
sorted_by = functools.partial(sorted, reverse=True)


def scaled(x):
    return x * FACTOR


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    first: torch.Tensor
    second: int


class Counter:
    def __init__(self, start: int):
        self.count = start

    def add(self, n: int) -> int:
        self.count += n
        return self.count


@jit.ignore
def in_python(x, n: int) -> List[int]:
    return [n, int(x.sum())]


@jit.unused
def never(x) -> torch.Tensor:
    return set(x)


class Functions(Case):
    def test_names(self):
        offset = 5

        @jit.script
        def f(x, n: int = 2, flag: bool = False):
            y = scaled(x) + offset
            for _ in range(n):
                y = torch.relu(y)
            if flag:
                y = never(y)
            return y

        self.assertEqual(f(torch.ones(2)).tolist(), [8, 8])
        self.assertEqual(f(torch.ones(1), n=0).tolist(), [8])
        with self.assertRaisesRegex(RuntimeError, "unused"):
            f(torch.ones(1), flag=True)
        self.assertIn("aten::relu", str(f.graph))
        self.assertIn("digraph", f.graph.dot())
        self.assertEqual(f.name, "f")

    def test_type_comments(self):
        def f(x, n):
            # type: (Tensor, int) -> Tuple[Tensor, int]
            return x + n, n

        self.assertEqual(jit.script(f)(torch.ones(1), 2)[1], 2)

    def test_types(self):
        @jit.script
        def f(values: List[int], names: Dict[str, float], x: Optional[torch.Tensor]):
            total = 0
            for value in values:
                total += value
            return total, names["a"], x is None

        self.assertEqual(f([1, 2], {"a": 0.5}, None), (3, 0.5, True))
        with self.assertRaisesRegex(TypeError, "values"):
            f("text", {}, None)

    def test_classes(self):
        @jit.script
        def f(x, n: int):
            counter = Counter(n)
            counter.add(2)
            pair = Pair(x, counter.add(3))
            if Color.RED.value == 1:
                return pair
            return Pair(x, 0)

        result = f(torch.ones(1), 10)
        self.assertEqual(result.second, 15)

    def test_python_from_programs(self):
        @jit.script
        def f(x):
            return in_python(x, 7)

        self.assertEqual(f(torch.ones(3)), [7, 3])

        @jit.ignore
        def fails(x) -> int:
            raise KeyError("lost")

        def g(x):
            return fails(x)

        with self.assertRaisesRegex(KeyError, "lost"):
            jit.script(g)(torch.ones(1))

    def test_errors_tell_the_place(self):
        def bad(x):
            return x.not_there()

        with self.assertRaisesRegex(wick.CompileError, "script_test.py"):
            jit.script(bad)
        with self.assertRaises(wick.CompileError):
            jit.script(bad)  # again

        @jit.script
        def raises(x):
            if x.sum() > 0:
                raise ValueError("positive")
            return x

        with self.assertRaisesRegex(ValueError, "script_test.py(.|\n)*positive"):
            raises(torch.ones(1))
        with self.assertRaisesRegex(wick.CompileError, "no source"):
            jit.script(eval("lambda x: x"))
        lost = [torch.ones(1)]

        def closes_over(x):
            return x + lost[0]

        with self.assertRaisesRegex(wick.CompileError, "cannot close over"):
            jit.script(closes_over)
        with self.assertRaises(TypeError):
            jit.script(3)

    def test_units(self):
        unit = jit.CompilationUnit("def f(x):\n    return x + 1\n")
        self.assertEqual(unit.f(torch.ones(1)).item(), 2)
        with self.assertRaises(AttributeError):
            unit.g
        with self.assertRaises(wick.CompileError):
            jit.CompilationUnit("def f(:")

    def test_fork(self):
        @jit.script
        def f(x):
            return x + 1

        futures = [jit.fork(f, torch.full((1,), float(i))) for i in range(4)]
        self.assertEqual([jit.wait(each).item() for each in futures], [1, 2, 3, 4])
        with self.assertRaises(TypeError):
            jit.wait(jit.fork(f))

    def test_gradients(self):
        @jit.script
        def f(x):
            return (x * x).sum()

        x = torch.ones(3, requires_grad=True)
        f(x).backward()
        self.assertEqual(x.grad.tolist(), [2, 2, 2])


class Net(nn.Module):
    __constants__ = ["size"]
    names: List[str]

    def __init__(self):
        super().__init__()
        self.size = 2
        self.names = []
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2), nn.BatchNorm1d(2))
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Dropout(0.5)])
        self.register_buffer("offset", torch.ones(2))
        self.activation = torch.tanh
        self.note: Optional[torch.Tensor] = None
        self.absent = None

    def help(self, x, factor: float = 0.5):
        return x * self.size * factor

    @jit.export
    def count(self, values: List[int]) -> int:
        return sum(values) + self.size

    @jit.ignore
    def log(self, x) -> int:
        self.seen = x.shape
        return 1

    @jit.unused
    def never(self, x):
        return {x}

    def forward(self, x, log: bool = False) -> torch.Tensor:
        x = self.rest(self.first(x))
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        if log:
            x = x + self.log(x)
        return self.activation(self.help(x)) + self.offset


class Modules(Case):
    def setUp(self):
        torch.manual_seed(0)
        self.net = Net().eval()
        self.x = torch.randn(5, 3)

    def test_results(self):
        made = jit.script(self.net)
        self.assert_same(made(self.x), self.net(self.x), 1e-6)
        self.assertEqual(made.count([1, 2]), 5)
        made(self.x, True)
        self.assertEqual(self.net.seen, (5, 2))
        self.assertFalse(made.training)
        self.assertEqual(made.size, 2)

    def test_parameters_are_shared(self):
        made = jit.script(self.net)
        with torch.no_grad():
            self.net.first.weight.zero_()
        self.assertEqual(made.first.weight.abs().sum().item(), 0)
        names = [name for name, _ in made.named_parameters()]
        self.assertEqual(names, [name for name, _ in self.net.named_parameters()])
        self.assertEqual(set(made.state_dict()), set(self.net.state_dict()))

    def test_files(self):
        class Plain(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(3, 2)

            def forward(self, x):
                return torch.relu(self.layer(x))

        net = Plain()
        made = jit.script(net)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.pt")
            jit.save(made, path, _extra_files={"note": "text"})
            extra = {"note": ""}
            self.assert_same(jit.load(path, _extra_files=extra)(self.x), net(self.x))
            self.assertEqual(extra["note"], b"text")
            self.check_in_pytorch(path, net)
            file = io.BytesIO()
            jit.save(made, file)
            file.seek(0)
            self.assert_same(jit.load(file)(self.x), net(self.x))
            with self.assertRaises(wick.LoadError):
                jit.load(os.path.join(folder, "none.pt"))
        self.assertIn("class Plain", made.code)

    @needs_pytorch
    def check_in_pytorch(self, path, net):
        import torch as reference

        theirs = reference.jit.load(path)(reference.from_numpy(self.x.numpy()))
        self.assert_same(theirs, net(self.x), 1e-6)

    def test_map_location(self):
        """An archive as if it had been saved on a GPU, on a machine that has another one or none."""
        net = nn.Linear(3, 2)
        saved = io.BytesIO()
        jit.save(jit.script(net), saved)
        moved = io.BytesIO()
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(moved, "w") as new:
            for name in old.namelist():
                record = old.read(name)
                if name.endswith(".pkl"):
                    record = record.replace(b"X\3\0\0\0cpu", b"X\6\0\0\0xla:31")
                new.writestr(name, record)
        asked = []

        def on_cpu(storage, name):
            asked.append((storage.device.type, name))
            return storage

        for where in (None, "cpu", torch.device("cpu"), {"xla:31": "cpu"}, {"other": "meta"}, on_cpu,
                      lambda storage, name: None, lambda storage, name: "cpu",
                      lambda storage, name: storage.cuda(3).cpu()):
            moved.seek(0)
            loaded = jit.load(moved, map_location=where)
            self.assert_same(loaded(self.x), net(self.x))
        self.assertEqual(asked, [("cpu", "xla:31")] * 2)
        moved.seek(0)
        self.assertEqual(str(jit.load(moved, map_location="meta").weight.device), "meta")

        def fails(storage, name):
            raise KeyError(name)

        for where, error, message in [
            (fails, KeyError, "xla:31"),
            (lambda storage, name: 3.5, TypeError, "to give the storage, a device or None, got float"),
            (lambda storage, name: "gpu", RuntimeError, "got 'gpu'"),
        ]:
            moved.seek(0)
            with self.assertRaisesRegex(error, message):
                jit.load(moved, map_location=where)

    def test_frozen(self):
        class Plain(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 4, 3)
                self.norm = nn.BatchNorm2d(4)

            def forward(self, x):
                return torch.relu(self.norm(self.conv(x)))

        net = Plain().eval()
        x = torch.randn(1, 3, 6, 6)
        made = jit.script(net)
        self.assert_same(jit.freeze(made)(x), net(x), 1e-5)
        self.assert_same(jit.optimize_for_inference(made)(x), net(x), 1e-5)
        with self.assertRaises(TypeError):
            jit.freeze(jit.script(Plain()))  # in training

    def test_attributes(self):
        made = jit.script(self.net)
        made.offset = torch.zeros(2)
        self.assertEqual(made.offset.tolist(), [0, 0])
        with self.assertRaises(TypeError):
            made.offset = "text"
        with self.assertRaises(AttributeError):
            made.not_there
        made.train()
        self.assertTrue(made.rest.training)

    def test_refusals(self):
        class Bad(nn.Module):
            def forward(self, x):
                return self.nothing(x)

        with self.assertRaisesRegex(wick.CompileError, "nothing"):
            jit.script(Bad())
        values = [1, 2]
        table = np.ones(2)

        def closes_over_a_list():
            return values

        def closes_over_an_array():
            return table

        def calls_a_builtin():
            return sorted_by(1)

        class Walks(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Linear(1, 1)

            def forward(self, x):
                for part in self.inner:
                    x = part(x)
                return x

        def makes_an_object():
            return io.BytesIO()

        for program, message in [
            (closes_over_a_list, "'values' is a value of Python's class list, which a program cannot "
                                 "close over"),
            (closes_over_an_array, "class numpy.ndarray, which a program cannot close over"),
            (calls_a_builtin, "'sorted_by' is a functools.partial, which a program cannot call"),
            (makes_an_object, "BytesIO: no source is known"),
            (Walks(), "a module of class .* cannot be iterated over"),
            (lambda x: x, "expected a function with a name"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(wick.CompileError, message):
                jit.script(program)
        def makes_a_counter():
            return Counter(1)

        counter = jit.script(makes_a_counter)()
        for wrong, error, message in [
            (lambda: counter.nothing, AttributeError, "Counter has no attribute 'nothing'"),
            (lambda: counter._call("nothing"), TypeError, "the object has no method 'nothing'"),
            (lambda: jit.script(nn.Linear(1, 1))._c.get("nothing"), AttributeError,
             "^(?!__torch__).*Linear has no attribute 'nothing'"),
            (lambda: jit.script(nn.Linear(2, 1)).nothing, AttributeError,
             r"^'(?!__torch__)[\w.]*Linear' has no attribute 'nothing'"),
            (lambda: jit.script(3), TypeError, "a function, class or module is expected, not int"),
            (lambda: jit.script(int), TypeError, "cannot be compiled; pass an instance of a module"),
            (lambda: jit.CompilationUnit("def f(): return 1").g, AttributeError,
             "the unit has no function 'g'"),
            (lambda: jit.script(nn.Linear(1, 1)).to(3.5), TypeError,
             "to: expected a device or a dtype, got float"),
            (lambda: jit.load("x", map_location="gpu"), RuntimeError, "got 'gpu'"),
            (lambda: jit.load("x", map_location={1: "cpu"}), TypeError, "expected a str as a name"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(error, message):
                wrong()
        with self.assertRaisesRegex(TypeError, "expected the source of one class"):
            wick._C._declare_class("__torch__.A", "x = 1\n", "a.py", 1, lambda name: None)

    def test_threads_that_compile_at_once(self):
        """The compiler asks Python for names, and Python may go on with another thread then."""
        code = (
            "import linecache, sys, threading\n"
            "from wick import jit, torch\n"
            "sys.setswitchinterval(1e-6)\n"
            "def made(n):\n"
            "    text = f'def f{n}(x):\\n    return torch.relu(x * {n}) + helper(x)\\n'\n"
            "    linecache.cache[f'<f{n}>'] = len(text), None, text.splitlines(True), f'<f{n}>'\n"
            "    names = {'torch': torch, 'helper': helper}\n"
            "    exec(compile(text, f'<f{n}>', 'exec'), names)\n"
            "    return names[f'f{n}']\n"
            "linecache.cache['<h>'] = 40, None, ['def helper(x):\\n', '    return x + 1\\n'], '<h>'\n"
            "exec(compile('def helper(x):\\n    return x + 1\\n', '<h>', 'exec'))\n"
            "functions = [made(n) for n in range(40)]\n"
            "x, wrong = torch.ones(1), []\n"
            "def work(k):\n"
            "    for n in range(40):\n"
            "        at = (n * 7 + k) % 40\n"
            "        if jit.script(functions[at])(x).item() != at + 2: wrong.append(at)\n"
            "        jit.trace(lambda a: a * k, (x,), check_trace=False)(x)\n"
            "threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]\n"
            "for t in threads: t.start()\n"
            "for t in threads: t.join()\n"
            "print(wrong)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)

    def test_many_threads(self):
        made = jit.script(self.net)
        expected = made(self.x)
        futures = [jit.fork(made, self.x) for _ in range(16)]
        for each in futures:
            self.assert_same(jit.wait(each), expected, 1e-6)


if __name__ == "__main__":
    unittest.main()
