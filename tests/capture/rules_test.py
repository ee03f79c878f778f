"""allow_in_graph, and rules for captured graphs: decompositions and patterns."""

import gc
import unittest
import weakref

import wick
import wick.compiler
from wick import torch as own
from wick.jit import script
from worlds import in_both, pytorch


def explained(function, *args):
    return wick.compiler.explain(function)(*args)


def opaque(x, y=2):
    """Something that is not captured: it builds a class and calls a builtin that is not known."""

    class Local:
        factor = y

    print(end="")
    return (x * Local.factor).relu(), [x.shape[0], x + 1]


class AllowInGraph:
    def setUp(self):
        self.x = self.torch.tensor([-1.0, 2.0])

    def check(self, function, *args):
        """One graph, with the results of the plain function."""
        found = explained(function, *args)
        self.assertEqual((found.graph_count, found.graph_break_count), (1, 0), found)
        compiled = wick.compile(function, fullgraph=True)
        for _ in range(2):
            self.assertTrue(self.torch.equal(compiled(*args), function(*args)))
        return found

    def refused(self, function, reason, *args):
        inner = wick.compiler.allow_in_graph(function)

        def outer(x, *rest):
            return inner(x + 0, *rest)

        found = explained(outer, *args)
        self.assertTrue(any(reason in each.reason for each in found.break_reasons), found)

    def test_calls(self):
        allowed = wick.compiler.allow_in_graph(lambda *args: opaque(*args))

        def f(x):
            a, (n, b) = allowed(x * 3, 5)
            return a * n + b

        found = self.check(f, self.x)
        self.assertIn("aten::relu", found.graphs[0])
        self.assertGreater(explained(lambda x: opaque(x)[0], self.x).graph_break_count, 0)

    def test_operators_of_the_language(self):
        @wick.compiler.allow_in_graph
        def inner(x):
            print(end="")
            y = 1 - x + x / 2 - 3 // (x + 10)
            y = (y @ y + x[0] * x[1:].sum() ** 2) * y
            y += -x
            parts = [each for each in x]
            return y + len(parts) * parts[1] + (x > 0).sum() + x.dim() + x.size(0) + abs(x)

        self.check(lambda x: inner(x) + 1, self.x)

    def test_branches_on_constants(self):
        @wick.compiler.allow_in_graph
        def inner(x, table, names=("a",)):
            print(end="")
            if x.device.type != "cpu" or x.dtype != self.torch.float32:
                return x
            return x * table["factor"] + len(names)

        self.check(lambda x: inner(x * 1, {"factor": 4}, names=("a", "b")), self.x)

    def test_gradients(self):
        @wick.compiler.allow_in_graph
        def inner(x):
            print(end="")
            with self.torch.no_grad():
                y = x * 5
            return y * x

        weight = self.torch.tensor([2.0, 3.0], requires_grad=True)
        wick.compile(lambda w: inner(w * 2).sum(), fullgraph=True)(weight).backward()
        expected, weight.grad = weight.grad.tolist(), None
        inner(weight * 2).sum().backward()
        self.assertEqual(weight.grad.tolist(), expected)

    def test_values_are_refused(self):
        own = self.torch is not pytorch
        self.refused(lambda x: x * (2 if x.sum() > 0 else 3), "boolean" if own else "__bool__", self.x)
        self.refused(lambda x: x * x.sum().item(), "number" if own else "'item'", self.x)

        def hides(x):
            try:
                return x * x.sum().item()
            except Exception:
                return x

        self.refused(hides, "hides: ", self.x)

    def test_new_tensors(self):
        @wick.compiler.allow_in_graph
        def inner(x):
            print(end="")
            return x + self.torch.arange(2) * self.torch.ones(2, dtype=x.dtype)

        self.check(lambda x: inner(x) + 1, self.x)
        self.refused(lambda x: self.torch.ones(2, requires_grad=True) * x, "requires a gradient", self.x)
        self.refused(lambda x: x.exp().requires_grad_() * x, "", self.x)

    def test_tensors_from_outside_are_refused(self):
        outside = self.torch.ones(2)
        self.refused(lambda x: x + outside, "no argument", self.x)

    def test_changes_are_refused(self):
        def changes(x, items):
            items.append(1)
            return x + 1

        self.refused(changes, "changes an argument", self.x, [2])
        self.refused(lambda x: {1: x}, "gives an object of the class dict", self.x)

    def test_derivatives_are_refused(self):
        class Twice(self.torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 100

        weight = self.torch.tensor([2.0, 3.0], requires_grad=True)
        self.refused(lambda x: Twice.apply(x) + 1, "derivative of its own", weight)

    def test_errors_are_raised_by_the_program(self):
        @wick.compiler.allow_in_graph
        def fails(x):
            raise KeyError("why")

        with self.assertRaisesRegex(KeyError, "why"):
            wick.compile(lambda x: fails(x + 1))(self.x)
        self.assertIn("why", str(explained(lambda x: self.caught(fails, x), self.x).break_reasons))

    @staticmethod
    def caught(function, x):
        try:
            return function(x + 1)
        except KeyError:
            return x

    def test_other_functions_are_called(self):
        first = wick.compiler.allow_in_graph(lambda x: x + 1)
        second = wick.compiler.allow_in_graph(lambda x: x + 2)
        compiled = wick.compile(lambda f, x: f(x) * 2)
        self.assertEqual(compiled(first, self.x).tolist(), [0.0, 6.0])
        self.assertEqual(compiled(second, self.x).tolist(), [2.0, 8.0])

    def test_it_is_not_kept(self):
        function = wick.compiler.allow_in_graph(lambda x: x + 1)
        died = weakref.ref(function)
        del function
        gc.collect()
        self.assertIsNone(died())

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(TypeError, "expected a function, got int"):
            wick.compiler.allow_in_graph(3)


@script
def gelu_parts(x, approximate: str):
    return x * (1 + own.erf(x * 0.5)) * 10


@script
def before(x, y):
    return own.relu(x * y) + 1


@script
def after(x, y):
    return own.sigmoid(x - y)


class Rules:
    def setUp(self):
        wick.compiler.reset_rules()
        self.addCleanup(wick.compiler.reset_rules)
        self.x = self.torch.tensor([-1.0, 2.0])
        self.functional = self.torch.nn.functional

    def graph(self, function, *args):
        return explained(function, *args).graphs[0]

    def test_decomposition(self):
        f = lambda x: self.functional.gelu(x) + 1
        compiled = wick.compile(f)
        plain = compiled(self.x)
        self.assertTrue(self.torch.allclose(plain, f(self.x)))
        wick.compiler.register_decomposition("aten::gelu")(gelu_parts)
        graph = self.graph(f, self.x)
        self.assertNotIn("gelu", graph)
        self.assertIn("aten::erf", graph)
        self.assertTrue(self.torch.equal(compiled(self.x), plain))  # captured before
        expected = self.x * (1 + self.torch.erf(self.x * 0.5)) * 10 + 1
        self.assertTrue(self.torch.allclose(wick.compile(lambda x: self.functional.gelu(x) + 1)(self.x), expected))
        wick.compiler.unregister_decomposition("aten::gelu")
        self.assertIn("aten::gelu", self.graph(f, self.x))
        with self.assertRaisesRegex(ValueError, "has no decomposition"):
            wick.compiler.unregister_decomposition("aten::gelu")

    def test_decorator(self):
        @wick.compiler.register_decomposition("aten::relu")
        @script
        def positive(x):
            return own.relu(own.clamp(x, min=0.0))  # its own operator stays

        graph = self.graph(lambda x: x.relu(), self.x)
        self.assertEqual((graph.count("aten::relu"), graph.count("aten::clamp")), (1, 1))
        self.assertEqual(wick.compile(lambda x: x.relu())(self.x).tolist(), [0.0, 2.0])

    def test_decompositions_of_decompositions(self):
        @wick.compiler.register_decomposition("aten::sigmoid")
        @script
        def sigmoid(x):
            return own.tanh(x / 2) / 2 + 0.5

        @wick.compiler.register_decomposition("aten::tanh")
        @script
        def tanh(x):
            return own.sigmoid(2 * x) * 2 - 1

        graph = self.graph(lambda x: x.sigmoid(), self.x)
        self.assertEqual((graph.count("aten::tanh"), graph.count("aten::sigmoid")), (0, 1))
        result = wick.compile(lambda x: x.sigmoid())(self.x)
        self.assertTrue(self.torch.allclose(result, self.torch.sigmoid(self.x)))

    def test_gradients_of_decompositions(self):
        wick.compiler.register_decomposition("aten::gelu")(gelu_parts)
        x = self.torch.tensor([0.5, 2.0], requires_grad=True)
        wick.compile(lambda x: self.functional.gelu(x).sum())(x).backward()
        found, x.grad = x.grad.tolist(), None
        (x * (1 + self.torch.erf(x * 0.5)) * 10).sum().backward()
        for a, b in zip(found, x.grad.tolist()):
            self.assertAlmostEqual(a, b, places=4)

    def test_wrong_decompositions(self):
        register = wick.compiler.register_decomposition

        @script
        def binary(x, y):
            return x + y

        @script
        def writes(x):
            return x.add_(1)

        @script
        def number(x) -> int:
            return 3

        for name, function, text in [
            ("aten::geluu", gelu_parts, "no operator 'aten::geluu'; did you mean 'aten::gelu'"),
            ("gelu", gelu_parts, "no operator 'gelu'"),
            ("aten::relu", binary, "the function takes other arguments"),
            ("aten::relu", number, "the function gives other results"),
            ("aten::relu", writes, "writes to its arguments"),
            ("aten::relu_", script(lambda_free), "it writes to its arguments"),
            ("aten::detach", script(lambda_free), "it gives views of its arguments"),
            ("aten::relu.other", script(lambda_free), "no overload 'aten::relu.other'"),
        ]:
            with self.assertRaisesRegex(TypeError, text):
                register(name)(function)
        with self.assertRaisesRegex(TypeError, "expected a script function, got int"):
            register("aten::relu")(3)
        with self.assertRaisesRegex(TypeError, "expected the name of an operator"):
            register(gelu_parts)

    def test_pattern(self):
        rule = wick.compiler.register_pattern(before, after)
        self.assertEqual(repr(rule), "before → after")
        f = lambda x, y: (x * y).relu() + 1
        graph = self.graph(f, self.x, self.x + 1)
        self.assertIn("aten::sigmoid", graph)
        self.assertNotIn("aten::relu", graph)
        y = self.x + 1
        self.assertTrue(self.torch.equal(wick.compile(f)(self.x, y), self.torch.sigmoid(self.x - y)))
        g = lambda x: ((x * 3).relu() + 1).sum() - ((((x * x).relu() + 1) * x).relu() + 1)
        graph = self.graph(g, self.x)
        self.assertEqual((graph.count("sigmoid"), graph.count("relu")), (2, 1), graph)  # 3 is no tensor
        expected = ((self.x * 3).relu() + 1).sum() - self.torch.sigmoid(self.torch.sigmoid(self.x - self.x) - self.x)
        self.assertTrue(self.torch.allclose(wick.compile(g)(self.x), expected))
        rule.remove()
        self.assertIn("aten::relu", self.graph(f, self.x, y))

    def test_what_is_no_occurrence(self):
        wick.compiler.register_pattern(before, after)
        y = self.x + 1

        def used_elsewhere(x, y):
            inner = (x * y).relu()
            return inner + 1, inner

        def another_constant(x, y):
            return (x * y).relu() + 2

        def written_between(x, y):
            x = x + 0
            inner = x * y
            x.add_(1)
            return inner.relu() + 1

        def inner_is_written(x, y):
            inner = x * y
            inner.add_(1)
            return inner.relu() + 1

        for function in (used_elsewhere, another_constant, written_between, inner_is_written):
            self.assertNotIn("sigmoid", self.graph(function, self.x, y), function)
            got, expected = wick.compile(function)(self.x, y), function(self.x, y)
            for a, b in zip(*((r if isinstance(r, tuple) else (r,)) for r in (got, expected))):
                self.assertTrue(self.torch.allclose(a, b))

        def another_is_written_between(x, y):
            other = x + 0
            inner = x * y
            other.add_(1)
            return inner.relu() + 1 + other

        self.assertIn("sigmoid", self.graph(another_is_written_between, self.x, y))

    def test_several_results_and_lists(self):
        @script
        def two(x, sizes: list[int]):
            y = own.reshape(x, sizes)
            z = y.exp()
            return z, z.sum()

        @script
        def two_others(x, sizes: list[int]):
            z = own.reshape(x.exp(), sizes)
            return z, z.sum() * 2

        wick.compiler.register_pattern(two, two_others)

        def f(x):
            z = self.torch.reshape(x, [2, 1]).exp()
            return z.sum() + z

        graph = self.graph(f, self.x)
        self.assertLess(graph.index("aten::exp"), graph.index("aten::reshape"))
        expected = self.x.exp().reshape(2, 1) + self.x.exp().sum() * 2
        self.assertTrue(self.torch.allclose(wick.compile(f)(self.x), expected))

    def test_one_value_twice(self):
        @script
        def square(x):
            return x * x

        @script
        def power(x):
            return x ** 2

        wick.compiler.register_pattern(square, power)
        self.assertIn("aten::pow", self.graph(lambda x: x * x, self.x))
        self.assertNotIn("aten::pow", self.graph(lambda x, y: x * y, self.x, self.x + 1))

    def test_eager_backend(self):
        wick.compiler.register_pattern(before, after)
        f = lambda x, y: (x * y).relu() + 1
        y = self.x + 1
        result = wick.compile(f, backend="eager")(self.x, y)
        # PyTorch makes the program's own calls.
        expected = self.torch.sigmoid(self.x - y) if self.torch is own else f(self.x, y)
        self.assertTrue(self.torch.allclose(result, expected))

    def test_wrong_patterns(self):
        @script
        def one(x):
            return x.relu()

        @script
        def number(x) -> int:
            return x.dim()

        @script
        def nothing(x, y):
            return x

        @script
        def writes(x, y):
            return x.add_(y)

        @script
        def branches(x, y):
            if x.dim() > 1:
                return x + y
            return x - y

        @script
        def apart(x, y):
            return x.exp(), y.relu()

        @script
        def first_alone(x, y):
            return x.exp()

        for pattern, replacement, text in [
            (one, before, r"takes \(Tensor\), its replacement takes \(Tensor, Tensor\)"),
            (one, number, r"gives \(Tensor\), its replacement gives \(int\)"),
            (nothing, before, "it computes nothing"),
            (writes, before, "writes to memory"),
            (branches, before, "a branch or a loop"),
            (apart, apart, "computations of their own"),
            (first_alone, before, "uses the parameter 'y', the pattern does not"),
            (before, writes, "a replacement writes to its arguments"),
        ]:
            with self.assertRaisesRegex(TypeError, text):
                wick.compiler.register_pattern(pattern, replacement)


def lambda_free(x):
    return x + 1


AllowInGraphOnWick, AllowInGraphOnPyTorch = in_both(AllowInGraph)
RulesOnWick, RulesOnPyTorch = in_both(Rules)
del AllowInGraph, Rules

if __name__ == "__main__":
    unittest.main()
