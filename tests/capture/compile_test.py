"""wick.compile and wick.compiler: what users call."""

import contextlib
import copy
import gc
import io
import pickle
import subprocess
import sys
import threading
import unittest
import warnings
import weakref

import wick
import wick.compiler
from wick import nn, torch


def explained(function, *args):
    return wick.compiler.explain(function)(*args)


def scale(x, factor):
    return torch.relu(x * factor) + 1


def noisy(x):
    y = x + 1
    print("in between", end="")
    return y * 2


class Interface(unittest.TestCase):
    def setUp(self):
        wick.compiler.reset()
        self.x = torch.tensor([-1.0, 2.0])

    def test_call_and_decorator(self):
        @wick.compile
        def plain(x):
            return x + 1

        @wick.compile(fullgraph=True)
        def whole(x):
            return x + 2

        self.assertEqual(plain(self.x).tolist(), [0.0, 3.0])
        self.assertEqual(whole(self.x).tolist(), [1.0, 4.0])
        self.assertEqual(plain.__name__, "plain")

    def test_methods_and_modules(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(2, 3)

            @wick.compile
            def scaled(self, x, factor=2):
                return self.linear(x) * factor

            def forward(self, x):
                return self.linear(x).relu()

        model = Model()
        self.assertTrue(torch.equal(model.scaled(self.x, factor=3), model.linear(self.x) * 3))
        compiled = wick.compile(model)
        self.assertTrue(torch.equal(compiled(self.x), model(self.x)))
        self.assertTrue(torch.equal(compiled(self.x), model(self.x)))
        with torch.no_grad():
            model.linear.weight.add_(1)
        self.assertTrue(torch.equal(compiled(self.x), model(self.x)))
        model.linear = nn.Linear(2, 3)
        self.assertTrue(torch.equal(compiled(self.x), model(self.x)))
        self.assertEqual(list(model.state_dict()), ["linear.weight", "linear.bias"])
        self.assertTrue(torch.equal(copy.deepcopy(model)(self.x), model(self.x)))

    def test_explain(self):
        found = explained(scale, self.x, 3)
        self.assertEqual((found.graph_count, found.graph_break_count, found.op_count), (1, 0, 3))
        self.assertTrue(any("factor == 3" in guard for guard in found.guards), found.guards)
        self.assertIn("aten::relu", found.graphs[0])
        found = explained(noisy, self.x)
        self.assertEqual((found.graph_count, found.graph_break_count), (2, 1))
        self.assertIn("print", found.break_reasons[0].reason)
        self.assertTrue(found.break_reasons[0].file.endswith("compile_test.py"))
        self.assertIn("print", str(found))

    def test_full_graph(self):
        with self.assertRaisesRegex(RuntimeError, r"compile_test\.py:\d+: a call of .*print"):
            wick.compile(noisy, fullgraph=True)(self.x)

        def fails(x):
            raise KeyError(x.shape[0])

        with self.assertRaises(KeyError):
            wick.compile(fails, fullgraph=True)(self.x)

    def test_disable(self):
        calls = []

        @wick.compiler.disable
        def outside(x):
            calls.append(wick.compiler.is_compiling())
            return x * 5

        def f(x):
            return outside(x + 1) - 1

        self.assertEqual(wick.compile(f)(self.x).tolist(), [-1.0, 14.0])
        self.assertEqual(calls, [False])
        self.assertEqual(explained(f, self.x).graph_count, 2)

    def test_wrong_arguments(self):
        for call, error, text in [
            (lambda: wick.compile(3), TypeError, "expected a function or module, got int"),
            (lambda: wick.compile(scale, backend="gpu"), ValueError, "no backend 'gpu'; there are"),
            (lambda: wick.compile(scale, backend=3), TypeError, "name of a backend or a function"),
            (lambda: wick.compile(scale, backend="eger"), ValueError, r"did you mean 'eager'\?"),
            (lambda: wick.compile(scale, mode="fast"), ValueError, "no mode 'fast'; there are default, "),
            (lambda: wick.compile(scale, mode="max-autotun"), ValueError, "did you mean 'max-autotune'"),
            (lambda: wick.compile(scale, options={"max_entry": 1}), ValueError, "did you mean 'max_entries'.*; there are"),
            (lambda: wick.compile(scale, options={"max_entries": 0}), TypeError, "'max_entries' is a positive int, got 0"),
            (lambda: wick.compile(scale, options={"trace": 1}), TypeError, "'trace' is a bool, got 1"),
            (lambda: wick.compile(scale, options=["trace"]), TypeError, "expected a dict of options, got list"),
            (lambda: wick.compiler.disable(len), TypeError, "function written in Python"),
            (lambda: wick.compiler.register_backend("wick", len), ValueError, "backend of Wick"),
        ]:
            with self.assertRaisesRegex(error, text):
                call()

    def test_backends(self):
        expected = scale(self.x, 3).tolist()
        self.assertEqual(wick.compile(scale, backend="eager")(self.x, 3).tolist(), expected)
        seen = []

        def backend(graph, examples):
            seen.append([tuple(e.shape) for e in examples])
            return lambda *tensors: [result + 100 for result in graph(*tensors)]

        compiled = wick.compile(scale, backend=backend)
        for _ in range(2):
            self.assertEqual(compiled(self.x, 3).tolist(), [e + 100 for e in expected])
        self.assertEqual(seen, [[(2,)]])
        wick.compiler.register_backend("adds", backend)
        self.assertIn("adds", wick.compiler.list_backends())
        self.assertEqual(wick.compile(scale, backend="adds")(self.x, 3).tolist(), [e + 100 for e in expected])
        with self.assertRaisesRegex(TypeError, "a backend gives a function"):
            wick.compile(scale, backend=lambda graph, examples: 3)(self.x, 3)

    def test_errors_of_backends_are_shown(self):
        def fails(*tensors):
            raise LookupError("no kernel")

        for function, error, text in [
            (fails, LookupError, "no kernel"),
            (lambda *tensors: [], ValueError, "gave 0 tensors, the graph has 1 results"),
            (lambda *tensors: [3], TypeError, "expected a Tensor, got int"),
        ]:
            compiled = wick.compile(scale, backend=lambda graph, examples: function)
            for _ in range(2):
                with self.assertRaisesRegex(error, text):
                    compiled(self.x, 3)

    def test_eager_runs_large_graphs(self):
        def f(x):
            for i in range(100):
                x = (x + i).sin()
            return x

        self.assertTrue(torch.equal(wick.compile(f, backend="eager")(self.x), f(self.x)))

    def test_limit(self):
        compiled = wick.compile(scale)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for factor in range(20):
                self.assertEqual(compiled(self.x, factor).tolist(), scale(self.x, factor).tolist())
        self.assertEqual(len(caught), 1)
        self.assertIn("cache_size_limit", str(caught[0].message))

    def test_the_limit_is_set(self):
        before = wick.compiler.cache_size_limit
        self.assertEqual(before, 8)
        wick.compiler.cache_size_limit = 3
        try:
            self.assertEqual(self.entries_of(wick.compile(lambda x, factor: x * factor)), 3)
            own = wick.compile(lambda x, factor: x * factor, options={"max_entries": 5})
            self.assertEqual(self.entries_of(own), 5)
        finally:
            wick.compiler.cache_size_limit = before
        for wrong in (0, -1, "8", None, True, 2.5):
            with self.assertRaisesRegex(ValueError, "cache_size_limit: expected a positive int"):
                wick.compiler.cache_size_limit = wrong
        self.assertEqual(wick.compiler.cache_size_limit, 8)

    def entries_of(self, compiled):
        before = wick.compiler.counters.graph_count
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for factor in range(10):
                compiled(self.x, factor)
        self.assertEqual(len(caught), 1)
        return wick.compiler.counters.graph_count - before

    def test_modes(self):
        for mode in (*wick.compiler.list_modes(), None):
            compiled = wick.compile(scale, mode=mode)
            self.assertEqual(compiled(self.x, 3).tolist(), scale(self.x, 3).tolist())

    def test_trace(self):
        compiled = wick.compile(scale, options={"trace": True})
        shown = io.StringIO()
        with contextlib.redirect_stderr(shown):
            compiled(self.x, 3)
            compiled(self.x, 3)
        self.assertEqual(shown.getvalue().count("aten::relu"), 1)
        self.assertIn("scale (", shown.getvalue())

    def test_explanation_reads_well(self):
        text = str(explained(noisy, self.x))
        self.assertTrue(text.startswith("2 graphs, 2 operators, 1 break, "), text)
        self.assertRegex(text, r"1\. noisy \(.*compile_test\.py:\d+\)\n  guards\n")
        self.assertRegex(text, r"  breaks: a call of <built-in function print> \(.*compile_test\.py:\d+\)")
        self.assertTrue(text.endswith("returns"), text)
        self.assertIn("runs plainly", str(explained(lambda: (yield), )))

    def test_log(self):
        code = (
            "import wick; from wick import torch\n"
            "def f(x):\n"
            "    y = x + 1\n"
            "    print('between')\n"
            "    return y * 2\n"
            "wick.compile(f)(torch.zeros(1))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], env={"WICK_LOG": "capture", "PYTHONPATH": ":".join(sys.path)},
                              capture_output=True, text=True)
        self.assertEqual((done.stdout, done.returncode), ("between\n", 0), done.stderr)
        for text in ("guard   x: a tensor", "aten::add", "break   a call of", "continues with", "RESUME", "aten::mul"):
            self.assertIn(text, done.stderr)

    def test_counters(self):
        before = wick.compiler.counters.graph_count, wick.compiler.counters.op_count
        compiled = wick.compile(scale)
        compiled(self.x, 3)
        compiled(self.x, 3)
        after = wick.compiler.counters.graph_count, wick.compiler.counters.op_count
        self.assertEqual((after[0] - before[0], after[1] - before[1]), (1, 3))


class Lifetimes(unittest.TestCase):
    def test_nothing_is_kept(self):
        def f(x, items, table):
            items.append(1)
            table["size"] = x.shape[0]
            print(end="")
            return x * 2, [items], lambda: table

        compiled = wick.compile(f)
        x = torch.ones(3)
        for _ in range(100):
            compiled(x, [1, 2], {})
        gc.collect()
        before = sys.getrefcount(x), len(gc.get_objects())
        for _ in range(10_000):
            compiled(x, [1, 2], {})
        gc.collect()
        self.assertEqual(sys.getrefcount(x), before[0])
        self.assertLess(abs(len(gc.get_objects()) - before[1]), 100)

    def test_arguments_die(self):
        class Holder:
            pass

        def f(x, holder):
            return x + holder.n

        compiled = wick.compile(f)
        holder = Holder()
        holder.n = 1
        compiled(torch.ones(2), holder)
        died = weakref.ref(holder)
        del holder
        self.assertIsNone(died())

    def test_threads(self):
        compiled = wick.compile(scale)
        results, errors = [], []

        def work(seed):
            try:
                for i in range(200):
                    x = torch.full([seed + 1], float(i))
                    results.append(torch.equal(compiled(x, seed), scale(x, seed)))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, all(results), len(results)), ([], True, 800))

    def test_tracing(self):
        lines = []

        def trace(frame, event, argument):
            if frame.f_code is noisy.__code__ and event == "line":
                lines.append(frame.f_lineno - noisy.__code__.co_firstlineno)
            return trace

        compiled = wick.compile(noisy)
        sys.settrace(trace)
        try:
            compiled(torch.ones(2))
        finally:
            sys.settrace(None)
        self.assertEqual(lines, [1, 2, 3])

    def test_results_are_pickled(self):
        compiled = wick.compile(scale)
        self.assertTrue(torch.equal(pickle.loads(pickle.dumps(compiled(torch.ones(2), 3))), torch.ones(2) * 4))

    def test_recursion(self):
        def down(x, n):
            return x if n == 0 else down(x, n - 1) + 1

        x = torch.zeros(1)
        self.assertEqual(wick.compile(down)(x, 50).tolist(), [50.0])
        with self.assertRaises(RecursionError):
            wick.compile(down)(x, 100_000)

    def test_strict_mode_is_read(self):
        code = "import wick; from wick import torch; print(wick.compile(lambda x: x + 1)(torch.zeros(1)).item())"
        done = subprocess.run([sys.executable, "-c", code], env={"WICK_CAPTURE": "strict", "PYTHONPATH": ":".join(sys.path)},
                              capture_output=True, text=True)
        self.assertEqual((done.stdout, done.returncode), ("1.0\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
