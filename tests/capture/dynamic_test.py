"""Sizes that differ from call to call: wick.compile(dynamic=…), mark_dynamic, mark_static."""

import unittest
import warnings

import wick
import wick.compiler
from wick import torch as own

try:
    import torch as foreign
except ImportError:
    foreign = None

WORLDS = [own] + ([foreign] if foreign else [])
SIZES = [5, 7, 2, 3, 11, 13, 4, 6, 17, 8, 19, 23, 9, 12, 29, 31, 64, 10, 37, 41]


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if hasattr(a, "shape") and hasattr(a, "tolist"):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            return False
        return (a.double() - b.double()).abs().sum().item() < 1e-4 * max(1, a.numel())
    return a == b


class Sizes(unittest.TestCase):
    def setUp(self):
        wick.compiler.reset()

    def check(self, function, inputs, most, world=None, **options):
        """Calls the function with each tuple of inputs, and compares; at most `most` graphs are made."""
        before = wick.compiler.counters.graph_count
        compiled = wick.compile(function, **options)
        for given in inputs:
            self.assertTrue(same(compiled(*given), function(*given)), [getattr(g, "shape", g) for g in given])
        count = wick.compiler.counters.graph_count - before
        self.assertLessEqual(count, most)
        return count

    def over(self, function, shapes, most=2, **options):
        """Checks in both worlds; a shape is that of a tensor, or several in a list."""
        for world in WORLDS:
            with self.subTest(world=world.__name__):
                inputs = []
                for shape in shapes:
                    all_of = shape if isinstance(shape, list) else [shape]
                    inputs.append([world.randn(*each) if each else world.randn(()) for each in all_of])
                wick.compiler.reset()
                bound = lambda *given, t=world: function(t, *given)  # noqa: E731
                self.check(bound, inputs, most, **options)

    def test_batches(self):
        def f(t, x):
            return t.relu(x * 2 + 1) / (x.sum(dim=1, keepdim=True).abs() + 1)

        self.over(f, [(n, 4) for n in SIZES])

    def test_zero_and_one(self):
        def f(t, x):
            return x.relu() + 1, x.shape[0] + 1, x.shape[0] == 1

        self.over(f, [(n, 3) for n in [5, 1, 7, 0, 2, 1, 0, 13]], 4)

    def test_several_dimensions(self):
        def f(t, x):
            return (x @ x.transpose(-1, -2)).softmax(-1), x.shape

        self.over(f, [(n, n + 2, 4) for n in SIZES])

    def test_sizes_in_results(self):
        def f(t, x):
            n, m = x.shape
            return x + 1, n, n * m + 3, (n - 1) // 2, n % 3, -n, x.numel(), [len(x), x.size(1)], x.size()

        self.over(f, [(n, 4) for n in SIZES])

    def test_sizes_of_results(self):
        def f(t, x):
            y = t.cat([x, x[1:]], dim=0)
            z = y.reshape(-1, 2)
            return z * 2, y.shape[0], z.shape, z.shape[0] - x.shape[0]

        self.over(f, [(n, 4) for n in SIZES])

    def test_views(self):
        def f(t, x):
            n, m, k = x.shape
            y = x.view(n, m * k).reshape(n * m, k).view(-1, k)
            return y.view(n, m, k).permute(2, 0, 1).reshape(k, -1), x.expand(3, n, m, k)[0]

        self.over(f, [(n, 4, 6) for n in SIZES])

    def test_heads(self):
        def f(t, x):
            b, s, e = x.shape
            q, k, v = x.repeat(1, 1, 3).chunk(3, dim=-1)
            q, k, v = (y.view(b, s, 2, e // 2).transpose(1, 2) for y in (q, k, v))
            w = (q @ k.transpose(-2, -1) / (e // 2) ** 0.5).softmax(dim=-1)
            return (w @ v).transpose(1, 2).contiguous().view(b, s, e)

        self.over(f, [(n, m, 8) for n, m in zip(SIZES, reversed(SIZES))], 3)

    def test_factories_and_slices(self):
        def f(t, x):
            n = x.shape[0]
            mask = t.ones(n, n).tril()
            return x[: n // 2], x[n // 2 :], x[-1], x[:, None] * 2, t.arange(n), t.zeros(n + 1, 2), mask, x[: n - 1] + x[1:]

        self.over(f, [(n, 3) for n in SIZES])

    def test_slices_end_at_numbers(self):
        def f(t, x):
            y = x[:8]
            return y + 1, y.shape[0], y.shape

        self.over(f, [(n, 3) for n in [5, 7, 20, 37, 3, 8, 9, 2]], 8)

    def test_items_are_set(self):
        def f(t, x):
            y = t.zeros(x.shape[0] + 2, x.shape[1])
            y[1 : x.shape[0] + 1] = x
            y[0] = x.shape[0]
            return y

        self.over(f, [(n, 3) for n in SIZES])

    def test_numbers_as_operands(self):
        def f(t, x):
            return x.sum(0) / x.shape[0], x * len(x), x.shape[0] - x, x + (x.shape[0] // 2), x ** (x.shape[0] % 2)

        self.over(f, [(n, 3) for n in SIZES])

    def test_loops(self):
        def f(t, x):
            total = x[0]
            for i in range(1, x.shape[0]):
                total = total + x[i] * i
            return total

        self.over(f, [(n, 3) for n in [5, 7, 3, 2, 4, 5, 7]], 5)

    def test_iteration(self):
        def f(t, x):
            return [row + 1 for row in x], t.stack([a * 2 for a in x.unbind(0)]), x.split(2)

        self.over(f, [(n, 3) for n in [5, 7, 3, 2, 4, 5, 7]], 5)

    def test_comparisons(self):
        def f(t, x):
            n = x.shape[0]
            if n > 10:
                return x * 2
            if n % 2 == 0:
                return x - 1, "even"
            return x + n

        self.over(f, [(n, 3) for n in SIZES], 6)

    def test_equal_sizes(self):
        def f(t, x, y):
            if x.shape == y.shape:
                return x + y
            return x.sum() - y.sum()

        self.over(f, [[(n, 3), (n, 3)] for n in SIZES] + [[(n, 3), (n + 1, 3)] for n in SIZES], 4)

    def test_shapes_that_do_not_fit(self):
        def f(t, x, y):
            try:
                return x + y
            except RuntimeError:
                return "no"

        shapes = [[(n, 3), (n, 3)] for n in [5, 7, 9]] + [[(5, 3), (4, 3)], [(5, 3), (1, 3)], [(2, 3), (3, 3)]]
        self.over(f, shapes, 8)

    def test_divisibility(self):
        def f(t, x):
            try:
                return x.view(-1, 4)
            except RuntimeError:
                return x.view(-1), x.shape[0]

        self.over(f, [(n,) for n in [4, 8, 6, 12, 7, 20, 9, 16, 2, 36]], 6)

    def test_errors_of_unused_results(self):
        def f(t, x):
            n = x.view(-1, 4).shape[0]
            try:
                x.view(3, -1)
            except RuntimeError:
                return n
            return x + n

        self.over(f, [(n,) for n in [12, 24, 4, 8, 36, 16, 48]], 8)

    def test_writes(self):
        def f(t, x, log):
            log.add_(1)
            try:
                y = x.view(-1, 3)
                log.mul_(2)
                return y + 1
            except RuntimeError:
                log.sub_(5)
                return x * 2

        for world in WORLDS:
            with self.subTest(world=world.__name__):
                wick.compiler.reset()
                compiled = wick.compile(f)
                logs = world.zeros(2), world.zeros(2)
                for n in [6, 9, 12, 7, 15, 8, 3, 5, 30]:
                    x = world.randn(n)
                    self.assertTrue(same(compiled(world, x, logs[0]), f(world, x, logs[1])), n)
                    self.assertTrue(same(*logs), n)

    def test_strides(self):
        def f(t, x):
            return x * 2, x.is_contiguous(), x.stride(), x.t() + 1

        for world in WORLDS:
            with self.subTest(world=world.__name__):
                wick.compiler.reset()
                plain = [[world.randn(n, 4)] for n in [5, 7, 9]]
                other = [[world.randn(4, n).t()] for n in [5, 7, 9]]
                parts = [[world.randn(n, 8)[:, :4]] for n in [5, 7, 9]]
                self.check(lambda x: f(world, x), plain + other + parts, 9)

    def test_tensors_of_numbers(self):
        def f(t, x):
            return t.tensor([x.shape[0], 2]), x + t.tensor(x.shape[0])

        self.over(f, [(n, 3) for n in [5, 7, 9, 2]], 4)

    def test_text_and_keys(self):
        def f(t, x):
            table = {x.shape[0]: "n"}
            return f"{x.shape[0]} rows", table, x + 1, float(x.shape[0]), x.shape[0] / 2, x.shape[0] is None

        self.over(f, [(n, 3) for n in [5, 7, 9, 2]], 4)

    def test_breaks(self):
        def f(t, x):
            n = x.shape[0]
            y = x + n
            print(end="")
            return y.view(n * 3), n

        self.over(f, [(n, 3) for n in SIZES], 4)

    def test_numbers_among_arguments(self):
        def f(x, n, m):
            return x + 1, n * 2, m > 10, n % 3 == m, n is None

        def view(x, n, flag):
            y = x.view(n, -1)
            return (y * 2, n + 1) if flag else y

        def make(t, n):
            return t.ones(n, 2) * n

        for world in WORLDS:
            with self.subTest(world=world.__name__):
                wick.compiler.reset()
                self.check(make, [[world, n] for n in [4, 6, 8]], 3)
                x = world.randn(4, 6)
                numbers = [(5, 7), (7, 9), (30, 5), (2, 2), (-3, 4), (1, 12), (0, 0), (2**70, 13), (True, 6)]
                self.check(f, [[x, n, m] for n, m in numbers], 10)
                self.check(view, [[world.randn(n, 6), n, True] for n in SIZES], 2)
                self.check(view, [[world.randn(n, 6), 2, n > 8] for n in SIZES], 4)

    def test_gradients(self):
        def f(t, x, w):
            return t.tanh(x @ w).sum() / x.shape[0]

        for world in WORLDS:
            with self.subTest(world=world.__name__):
                wick.compiler.reset()
                before = wick.compiler.counters.graph_count
                compiled = wick.compile(lambda x, w: f(world, x, w))
                for n in SIZES:
                    w = world.randn(3, 2)
                    x = world.randn(n, 3)
                    found = []
                    for function in (compiled, lambda x, w: f(world, x, w)):
                        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
                        loss = function(a, b)
                        loss.backward()
                        found.append((loss.detach(), a.grad, b.grad))
                    self.assertTrue(same(*found), n)
                self.assertLessEqual(wick.compiler.counters.graph_count - before, 2)

    def test_modules(self):
        for world in WORLDS:
            with self.subTest(world=world.__name__):
                nn = wick.nn if world is own else world.nn
                model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
                wick.compiler.reset()
                self.check(model, [[world.randn(n, 4)] for n in SIZES], 2)

    def test_attention(self):
        for world in WORLDS:
            with self.subTest(world=world.__name__):
                nn = wick.nn if world is own else world.nn
                model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
                wick.compiler.reset()
                self.check(model, [[world.randn(n, n + 1, 8)] for n in SIZES], 3)

    def test_batch_norm(self):
        for world in WORLDS:
            with self.subTest(world=world.__name__):
                nn = wick.nn if world is own else world.nn
                a, b = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
                b.load_state_dict(a.state_dict())
                wick.compiler.reset()
                before = wick.compiler.counters.graph_count
                compiled = wick.compile(a)
                for n in SIZES:
                    x = world.randn(n, 4)
                    self.assertTrue(same(compiled(x), b(x)), n)
                    self.assertTrue(same(a.running_mean, b.running_mean))
                self.assertLessEqual(wick.compiler.counters.graph_count - before, 2)

    def test_convolutions(self):
        for world in WORLDS:
            with self.subTest(world=world.__name__):
                nn = wick.nn if world is own else world.nn
                model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
                wick.compiler.reset()
                self.check(model, [[world.randn(n, 3, 12, 12)] for n in SIZES[:8]], 2)
                self.check(model, [[world.randn(2, 3, n, n + 1)] for n in [9, 11, 14, 21]], 3)

                def sizes(x, parts=model[:3]):
                    y = parts(x)
                    return y.shape, y.flatten(2).sum(-1) / y.shape[-1]

                self.check(sizes, [[world.randn(2, 3, n, n + 1)] for n in SIZES if n > 6], 3)

    def test_backends(self):
        def f(t, x):
            n = x.shape[0]
            return x.view(n * 2, -1)[: n + 1] * n

        self.over(f, [(n, 4) for n in SIZES], backend="eager")
        self.over(f, [(n, 4) for n in SIZES], backend=lambda graph, examples: graph)


class Settings(unittest.TestCase):
    def setUp(self):
        wick.compiler.reset()

    def count(self, compiled, inputs):
        before = wick.compiler.counters.graph_count
        for each in inputs:
            compiled(each)
        return wick.compiler.counters.graph_count - before

    def test_dynamic(self):
        def f(x):
            return x * 2 + x.shape[0]

        for world in WORLDS:
            with self.subTest(world=world.__name__):
                inputs = [world.randn(n, 3) for n in [5, 7, 9, 11]]
                self.assertEqual(self.count(wick.compile(f), inputs), 2)
                self.assertEqual(self.count(wick.compile(f, dynamic=True), inputs), 1)
                self.assertEqual(self.count(wick.compile(f, dynamic=False), inputs), 4)
                other = wick.compile(f, dynamic=True)
                self.assertEqual(self.count(other, [world.randn(n, n + 1) for n in [5, 7, 9, 11]]), 1)
                self.assertEqual(self.count(other, [world.randn(n, n) for n in [6, 8]]), 0)
        with self.assertRaisesRegex(TypeError, "dynamic"):
            wick.compile(f, dynamic="always")

    def test_marks(self):
        def f(x):
            return x * 2 + x.shape[0]

        for world in WORLDS:
            with self.subTest(world=world.__name__):
                inputs = [world.randn(n, 3) for n in [5, 7, 9, 11]]
                wick.compiler.mark_dynamic(inputs[0], 0)
                self.assertEqual(self.count(wick.compile(f), inputs), 1)
                for each in inputs:
                    wick.compiler.mark_static(each)
                self.assertEqual(self.count(wick.compile(f, dynamic=True), inputs), 4)
        with self.assertRaises(IndexError):
            wick.compiler.mark_dynamic(own.ones(2), 1)
        with self.assertRaises(TypeError):
            wick.compiler.mark_static([1, 2])

    def test_guards(self):
        def f(x, y):
            n = x.shape[0]
            if n > 4 and n + 1 > 2 and n * 2 >= 6 and y.shape[0] == n:
                return x + y
            return x

        explained = wick.compile(f, dynamic=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            explained(own.randn(7, 3), own.randn(7, 3))
        wick.compiler.mark_dynamic(x := own.randn(7, 3), 0)
        wick.compiler.mark_dynamic(y := own.randn(7, 3), [0])
        guards = wick.compiler.explain(f)(x, y).guards
        about = [g for g in guards if "shape" in g]
        self.assertEqual(about, ["5 <= x.shape[0]", "y.shape[0] == x.shape[0]"])


if __name__ == "__main__":
    unittest.main()
