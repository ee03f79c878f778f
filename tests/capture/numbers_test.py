"""Floats and booleans that the elements of tensors decide, and tensors as indices, within one graph."""

import math
import unittest

import wick
import wick.compiler
from worlds import in_both


class Record:
    def __init__(self):
        self.last = None
        self.all = []


class Numbers:
    def setUp(self):
        wick.compiler.reset()

    def check(self, function, *given, breaks=0):
        """Compares with the plain function, twice, and counts breaks."""
        for backend in ("wick", "eager"):
            wick.compiler.reset()
            compiled = wick.compile(function, backend=backend)
            for _ in range(2):
                for each in given:
                    each = each if isinstance(each, tuple) else (each,)
                    self.same(self.outcome(compiled, each), self.outcome(function, each))
        wick.compiler.reset()
        if breaks is None:
            return
        explained = wick.compiler.explain(function)(*(given[0] if isinstance(given[0], tuple) else given[:1]))
        self.assertEqual(explained.graph_break_count, breaks, str(explained))

    def outcome(self, function, given):
        try:
            return function(*[each.clone() if hasattr(each, "clone") else each for each in given])
        except (RuntimeError, IndexError, ValueError) as error:
            return type(error)

    def same(self, got, expected):
        self.assertIs(type(got), type(expected))
        if isinstance(got, (tuple, list)):
            self.assertEqual(len(got), len(expected))
            for a, b in zip(got, expected):
                self.same(a, b)
        elif isinstance(got, dict):
            self.assertEqual(list(got), list(expected))
            self.same(list(got.values()), list(expected.values()))
        elif hasattr(got, "shape"):
            self.assertEqual((got.shape, got.dtype, got.stride()), (expected.shape, expected.dtype, expected.stride()))
            self.assertEqual(got.requires_grad, expected.requires_grad)
            for a, b in zip(got.flatten().tolist(), expected.flatten().tolist()):
                self.same(a, b)
        else:
            self.assertTrue(got == expected or got != got and expected != expected, (got, expected))

    def numbers(self, *values):
        return self.torch.tensor([float(v) for v in values])

    def test_results(self):
        def f(x):
            return x * 2, x.sum().item(), bool((x > 0).all()), float(x.max()), (x < 2).any().item()

        self.check(f, self.numbers(1, 2), self.numbers(-1, 4), self.numbers(math.nan, 1), self.numbers(math.inf, 0.1))

    def test_dtypes(self):
        t = self.torch

        def f(x):
            y = x.sum()
            return y.to(t.float64).item(), y.to(t.float16).item(), y.to(t.bfloat16).item(), bool(y), bool(y.to(t.int32))

        self.check(f, self.numbers(0.1, 0.3), self.numbers(0, 0))

    def test_metrics_of_a_loss(self):
        def f(x, w):
            loss = ((x * w) ** 2).mean()
            return loss, {"loss": loss.item(), "norm": float(w.norm())}

        results = []
        for function in (f, wick.compile(f, fullgraph=True)):
            w = self.numbers(0.5, 2).requires_grad_()
            loss, metrics = function(self.numbers(1, 2), w)
            loss.backward()
            results.append((loss.detach(), metrics, w.grad))
        self.same(results[1], results[0])

    def test_the_tensor_changes_afterwards(self):
        def f(x):
            y = x.sum()
            before = y.item()
            y.add_(1)
            return before, y, y.item()

        self.check(f, self.numbers(1, 2))

    def test_attributes_and_lists(self):
        def f(record, x):
            record.last = x.sum().item()
            record.all.append(record.last)
            return x + 1

        for function in (f, wick.compile(f, fullgraph=True)):
            record = Record()
            for values in ((1, 2), (3, 4)):
                function(record, self.numbers(*values))
            self.assertEqual((record.last, record.all), (7.0, [3.0, 7.0]))

    def test_branches(self):
        def f(x):
            if x.sum().item() > 1.5:
                y = x * 2
            else:
                y = x - 3
            if not bool((y > 0).any()):
                y = y * y
            if 1 >= float(y.min()):
                y = y + 1
            if y.max().item() == y.sum().item():
                y = y + 100
            return y

        self.check(f, self.numbers(1, 2), self.numbers(-1, -4), self.numbers(math.nan, 1), self.numbers(0, 5))

    def test_comparisons_are_those_of_doubles(self):
        def f(x):
            y = x.sum()
            v = y.item()
            return v > 0.1, v == 0.1, v < 0.1, 0.1 < v, v != 16777217, v >= 2, True if v > 0 else False

        self.check(f, self.numbers(0.1), self.numbers(16777216), self.numbers(2), self.numbers(math.nan), breaks=None)

    def test_comparisons_with_large_ints(self):
        def f(x):
            v = x.to(self.torch.float64).sum().item()
            return x + 1, v < 2**53 + 1, v == 2**60 + 1

        self.check(f, self.numbers(2**53), self.numbers(2**60), breaks=None)

    def test_loops(self):
        def f(x):
            while x.norm().item() > 1:
                x = x / 2
            steps = 0
            while float(x.sum()) < 5 and steps < 8:
                x = x + 1
                steps += 1
            return x

        self.check(f, self.numbers(10, 2), self.numbers(0.1, 0.2))

    def test_flags(self):
        def newton(a):
            x = a / 2
            done = False
            while not done:
                better = 0.5 * (x + a / x)
                done = ((better - x).abs().max() < 1e-5).item()
                x = better
            return x

        def either(x):
            large = False
            if x.sum() > 10:
                large = True
                x = x - 1
            for _ in range(2):
                if large:
                    x = x / 2
                elif x.min() < 0:
                    large = True
            return x, large

        def first(x):
            found, result = False, x * 0
            for row in (x, x * 2, x * 3):
                if row.sum() > 4 and not found:
                    found = True
                    result = row
            return result if found else result - 1

        self.check(newton, self.numbers(4, 9), self.numbers(0.5, 2))
        given = [self.numbers(a, b) for a, b in ((1, 2), (20, 1), (-3, 1), (1.5, 1), (0, 0))]
        self.check(either, *given)
        self.check(first, *given)

    def test_a_flag_of_one_iteration(self):
        def f(x):
            while x.sum() > 1:
                doubles = False
                if x.min() < 0:
                    doubles = True
                x = x / 4 if doubles else x / 2
            return x

        self.check(f, self.numbers(30, 2), self.numbers(30, -2), self.numbers(0, 0))

    def test_questions_about_the_class(self):
        def f(x):
            v, b = x.sum().item(), bool(x.min() > 0)
            return isinstance(v, float), isinstance(b, bool), v is None, type(v) is float, b is not None, x + 1

        self.check(f, self.numbers(1, 2))

    def test_uses_that_need_the_value(self):
        def arithmetic(x):
            v = x.sum().item()
            return x * v, v + 1, -v, round(v, 2), v**2

        def text(x):
            return f"{x.sum().item():.2f}", x + 1

        def keys(x):
            return {x.sum().item(): 1}, x + 1

        def identity(x):
            v = x.sum().item()
            return v is v, x + 1

        def several(x):
            return x.item()

        for function in (arithmetic, text, keys, identity, several):
            with self.subTest(function=function.__name__):
                self.check(function, self.numbers(1, 2), self.numbers(-1, 4), breaks=None)

    def test_integers_without_dimensions_are_indices(self):
        t = self.torch

        def reads(x, i):
            return x[i] + 1, x[:, i] * 2, x[0, i], x[i, i], x[i : i + 2], x[None, i]

        def writes(x, i):
            y = x * 1
            y[i] = 0.0
            y[1, i] = 7.0
            return y

        def chain(x, i):
            best = [x[i].argmax()]
            for row in (x, x * -1):
                best.append(row[best[-1]].argmax())
            return t.stack(best), x[x.sum(1).argmax()]

        given = [(t.arange(9.0).reshape(3, 3) - 4, t.tensor(k)) for k in (1, 0, 2, -1, -3)]
        for function in (reads, writes, chain):
            with self.subTest(function=function.__name__):
                self.check(function, *given)
        self.check(lambda x, i: x[i] + 1, given[0], (given[0][0], t.tensor(5)), (given[0][0], t.tensor(1)))

    def test_loops_that_sizes_end(self):
        t = self.torch

        def compares(x):
            kept = []
            while x.shape[0] > 0:
                kept.append(x.max())
                x = x[x < kept[-1]]
            return t.stack(kept)

        def asks(x):
            n = 0
            while x.shape[0]:
                x = x[x < x.max()]
                n += 1
            return x, n

        for function in (compares, asks):
            with self.subTest(function=function.__name__):
                given = [t.arange(float(n)) for n in (3, 5, 1, 3)]
                self.check(function, *given, breaks=None)
                self.check(function, t.arange(40.0), breaks=None)
                wick.compiler.reset()
                self.assertEqual(wick.compiler.explain(function)(given[0]).graph_break_count, 0)

    def test_masks_without_dimensions_are_masks(self):
        t = self.torch

        def f(x, i):
            return x[i] + 1

        x = t.arange(3.0)
        self.check(f, (x, t.tensor(True)), (x, t.tensor(False)), (x, t.tensor(1, dtype=t.uint8)), breaks=None)

    def test_indices_are_views(self):
        t = self.torch

        def f(x, i):
            y = x * 1
            y[i].mul_(10)
            return y

        self.check(f, (t.arange(4.0), t.tensor(2)), (t.arange(4.0), t.tensor(0)), breaks=None)

    def test_gradients_of_rows(self):
        t = self.torch

        def f(x, i):
            return (x[i] * x[0]).sum()

        results = []
        for function in (f, wick.compile(f, fullgraph=True)):
            x = t.arange(6.0).reshape(3, 2).requires_grad_()
            for k in (2, 0):
                function(x, t.tensor(k)).backward()
            results.append(x.grad)
        self.same(results[1], results[0])


NumbersOnWick, NumbersOnPyTorch = in_both(Numbers)

if __name__ == "__main__":
    unittest.main()
