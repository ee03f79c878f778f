"""wick.compiler.export: a captured graph as a program."""

import io
import unittest

import wick
import wick.compiler
from wick import torch as own
from worlds import in_both


class Export:
    def setUp(self):
        self.x = self.torch.tensor([[-1.0, 2.0, 0.5]])
        self.own_x = own.tensor(self.x.tolist())

    def plain(self, value):
        if hasattr(value, "tolist"):
            return value.tolist()
        if isinstance(value, (list, tuple)):
            return type(value)(self.plain(each) for each in value)
        return {k: self.plain(v) for k, v in value.items()} if isinstance(value, dict) else value

    def check(self, function, *args):
        program = wick.compiler.export(function, *args)
        given = [own.tensor(a.tolist()) for a in self.tensors(args)]
        expected = self.plain(function(*args))
        self.assertEqual(self.rounded(self.plain(program(*given))), self.rounded(expected))
        file = io.BytesIO()
        program.save(file)
        file.seek(0)
        self.assertEqual(self.rounded(self.plain(wick.jit.load(file)(*given))), self.rounded(expected))
        return program

    def tensors(self, value):
        if isinstance(value, (list, tuple, dict)):
            values = value.values() if isinstance(value, dict) else value
            return [tensor for each in values for tensor in self.tensors(each)]
        return [value] if hasattr(value, "tolist") else []

    def rounded(self, value):
        if isinstance(value, float):
            return round(value, 4)
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.rounded, value))
        return {k: self.rounded(v) for k, v in value.items()} if isinstance(value, dict) else value

    def test_function(self):
        def f(x, factor):
            for i in range(factor):
                x = x * i + 1
            return x.relu()

        program = self.check(f, self.x, 3)
        self.assertIn("aten::relu", str(program.graph))
        self.assertNotIn("CallFunction", str(program.graph))
        self.assertIn("relu", program.code)

    def test_module(self):
        torch = self.torch

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
                self.register_buffer("shift", torch.ones(2))

            def forward(self, x):
                out = self.layers(x)
                return {"out": out + self.shift, "all": [out, x]}

        model = Model()
        program = self.check(model, self.x)
        state, expected = program.state_dict(), model.state_dict()
        self.assertEqual(sorted(state), sorted(expected))
        for name in state:
            self.assertEqual(state[name].tolist(), expected[name].tolist())
        self.check(wick.compile(model), self.x)

    def test_arguments_and_results(self):
        def f(pair, table, flag=True):
            a, b = pair
            return (a + b, [a * table["key"]], 3, "text", None, 2.5, float("inf"), (b,))

        self.check(f, (self.x, self.x + 1), {"key": self.x + 2})
        self.check(lambda x: x + 1, self.x)
        outside = self.torch.tensor([True, False, True])
        self.check(lambda x: x * outside, self.x)

    def test_other_sizes_are_refused(self):
        program = wick.compiler.export(lambda x: x / x.shape[1], self.x)
        for wrong in (own.ones(1, 4), own.ones(3), own.ones(1, 3, dtype=own.float64)):
            with self.assertRaisesRegex(RuntimeError, "x: this program was captured for a tensor of torch.float32"):
                program(wrong)

    def test_breaks(self):
        def f(x):
            y = x + 1
            print(end="")
            return y * 2

        with self.assertRaisesRegex(wick.compiler.ExportError, r"export_test\.py:\d+: a call of .*print") as caught:
            wick.compiler.export(f, self.x)
        self.assertEqual(caught.exception.line, f.__code__.co_firstlineno + 2)
        self.assertTrue(caught.exception.file.endswith("export_test.py"))
        self.assertIn("print", caught.exception.reason)

    def test_what_is_no_program(self):
        seen = []
        for function, args, text in [
            (lambda x: seen.append(x + 1), (self.x,), "changes objects"),
            (lambda x: 3, (self.x,), "computes nothing"),
            (lambda x, y: x + y, (self.x, self.x), "two arguments are one tensor"),
            (lambda x: (x + 1, {1, 2}), (self.x,), "an object of the class set"),
        ]:
            with self.assertRaisesRegex(wick.compiler.ExportError, text):
                wick.compiler.export(function, *args)
        self.assertEqual(seen, [])
        with self.assertRaises(ZeroDivisionError):
            wick.compiler.export(lambda x: x + 1 // 0, self.x)

    def test_it_is_trained(self):
        layer = self.torch.nn.Linear(3, 2)
        program = wick.compiler.export(layer, self.x)
        program(self.own_x).sum().backward()
        layer(self.x).sum().backward()
        (weight,) = [p for n, p in program.named_parameters() if n == "weight"]
        self.assertEqual(weight.grad.tolist(), layer.weight.grad.tolist())


ExportOnWick, ExportOnPyTorch = in_both(Export)
del Export

if __name__ == "__main__":
    unittest.main()
