"""wick.jit.trace of modules: many blocks, their archives, several methods."""

import os
import tempfile
import unittest
import warnings

from testing import HAS_PYTORCH, Case, needs_pytorch
from trace_blocks import BLOCKS, Scale
from wick import jit, nn, torch


class Blocks(Case):
    """Each block's trace equals it on inputs of other numbers, and often of other sizes."""

    def check(self, name, make, shapes, others, folder):
        torch.manual_seed(1)
        module = make()
        module.eval()
        with warnings.catch_warnings():
            warnings.simplefilter("error", jit.TracerWarning)
            traced = jit.trace(module, tuple(map(_input, shapes)))
        inputs = tuple(map(_input, others or shapes))
        expected = module(*inputs)
        self.assert_same(traced(*inputs), expected, 1e-5)
        names = {n for n, _ in traced.named_parameters()}
        self.assertLessEqual({n for n, _ in module.named_parameters()}, names)
        path = os.path.join(folder, name + ".pt")
        jit.save(traced, path)
        self.assert_same(jit.load(path)(*inputs), expected, 1e-5)
        if HAS_PYTORCH:
            import torch as pytorch

            with pytorch.no_grad():
                found = pytorch.jit.load(path)(*(pytorch.from_numpy(t.numpy()) for t in inputs))
            self.assert_same(found, expected, 1e-4)

    def test_all(self):
        self.assertGreaterEqual(len(BLOCKS), 60)
        with tempfile.TemporaryDirectory() as folder:
            for name, make, shapes, others in BLOCKS:
                with self.subTest(name):
                    self.check(name, make, shapes, others, folder)


def _input(shape):
    if isinstance(shape, dict):  # {below: shape}: ints
        ((below, sizes),) = shape.items()
        return torch.randint(0, below, sizes)
    return torch.randn(shape)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        self.count += 1
        return self.layer(x) * self.count

    def twice(self, x, y):
        return self.layer(self.layer(x)) + y

    def branch(self, x):
        return x + 1 if x.sum() > 0 else x - 1


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, scale, name="plain"):
        self.calls += 1
        return self.layer(x) * scale, x


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.twice = nn.Linear(3, 3)
        self.drop = nn.Dropout()
        self.parts = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        y, _ = self.inner(x, scale=x.abs())
        y = self.twice(self.twice(y) + self.twice.weight.sum())
        return self.parts(self.drop(y))


class Submodules(Case):
    """Submodules that a trace called have what they did as their forward."""

    def check(self, module, traced):
        a = torch.randn(5, 3)
        self.assert_same(traced(a), module(a), 1e-6)
        self.assert_same(traced.parts(a), module.parts(a), 1e-6)
        self.assert_same(getattr(traced.parts, "0")(a), module.parts[0](a), 1e-6)
        self.assert_same(traced.twice(a), module.twice(a), 1e-6)
        self.assert_same(traced.twice.forward1(a), module.twice(a), 1e-6)
        self.assert_same(traced.drop(a), a, 0)
        got, same = traced.inner(a, a)
        self.assert_same(got, module.inner.layer(a) * a, 1e-6)
        self.assert_same(same, a, 0)

    def test_forward(self):
        module = Outer().eval()
        traced = jit.trace(module, torch.randn(2, 3), check_trace=False)
        self.check(module, traced)
        before = module.inner.calls.item()
        traced.inner(torch.ones(1, 3), torch.ones(1, 3))
        self.assertEqual(module.inner.calls.item(), before + 1)
        with self.assertRaisesRegex(Exception, "forward"):
            traced.unused(torch.ones(1, 3))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.pt")
            jit.save(traced, path)
            self.check(module, jit.load(path))
            if HAS_PYTORCH:
                import torch as pytorch

                a = torch.randn(2, 3)
                found = pytorch.jit.load(path).parts(pytorch.from_numpy(a.numpy()))
                self.assert_same(found, module.parts(a), 1e-5)

    def test_what_others_computed_is_an_argument(self):
        class Reads(nn.Module):
            def forward(self, x):
                return x * self.other[0]

        module = nn.Sequential(nn.Linear(3, 3), Reads())

        def forward(x):
            module[1].__dict__["other"] = [x + 1]
            return module[1](x)

        module.forward = forward
        traced = jit.trace(module, torch.ones(2, 3), check_trace=False)
        inner = getattr(traced, "1")
        found = inner(torch.full((2,), 3.0), torch.full((2,), 5.0))
        self.assert_same(found, torch.full((2,), 15.0), 0)

    def test_an_error_within_leaves_no_method(self):
        class Fails(nn.Module):
            def forward(self, x):
                x + 1
                raise ValueError("no")

        class Tries(nn.Module):
            def __init__(self):
                super().__init__()
                self.fails = Fails()

            def forward(self, x):
                try:
                    return self.fails(x)
                except ValueError:
                    return x * 2

        traced = jit.trace(Tries(), torch.ones(2))
        self.assert_same(traced(torch.ones(3)), torch.full((3,), 2.0), 0)
        self.assertNotIn("forward", dir(traced.fails))


class Methods(Case):
    def test_several_methods(self):
        module = Counter()
        x, y = torch.randn(2, 3), torch.randn(2, 3)
        traced = jit.trace_module(module, {"forward": x, "twice": (x, y)}, check_trace=False)
        a, b = torch.randn(5, 3), torch.randn(5, 3)
        self.assert_same(traced.twice(a, b), module.twice(a, b), 1e-6)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.pt")
            jit.save(traced, path)
            self.assert_same(jit.load(path).twice(a, b), module.twice(a, b), 1e-6)

    def test_writes_to_buffers(self):
        module = Counter()
        traced = jit.trace(module, torch.randn(1, 3), check_trace=False)
        before = float(module.count)
        traced(torch.randn(1, 3))
        self.assertEqual(float(module.count), before + 1)  # they share it

    def test_checks_of_methods(self):
        module = Counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", jit.TracerWarning)
            with self.assertRaisesRegex(jit.TracingCheckError, "aten::sub"):
                jit.trace_module(
                    module, {"branch": torch.ones(2)}, check_inputs=[{"branch": -torch.ones(2)}]
                )

    def test_a_bound_forward(self):
        module = nn.Linear(2, 2)
        traced = jit.trace(module.forward, torch.randn(1, 2))
        self.assertIsInstance(traced, jit.ScriptModule)

    def test_wrong_calls(self):
        with self.assertRaises(AttributeError):
            jit.trace_module(lambda x: x, {"forward": torch.ones(1)})
        with self.assertRaises(AttributeError):
            jit.trace_module(nn.ReLU(), [torch.ones(1)])
        with self.assertRaises(AttributeError):
            jit.trace_module(nn.ReLU(), {"nothing": torch.ones(1)})

    def test_dropout_in_training(self):
        with self.assertWarnsRegex(jit.TracerWarning, "nondeterministic nodes"):
            traced = jit.trace(nn.Dropout(0.5), torch.ones(20))
        self.assertIn("aten::dropout", traced.graph.node_kinds())

    def test_batch_norm_in_training(self):
        one, other = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
        traced = jit.trace(one, torch.randn(4, 3), check_trace=False)
        other.load_state_dict({k: v.clone() for k, v in one.state_dict().items()})
        x = torch.randn(6, 3)
        self.assert_same(traced(x), other(x), 1e-6)
        self.assert_same(one.running_mean, other.running_mean, 1e-6)

    def test_gradients_reach_the_parameters(self):
        module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
        traced = jit.trace(module, torch.randn(2, 3))
        x = torch.randn(5, 3)
        traced(x).sum().backward()
        found = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        module(x).sum().backward()
        self.assert_same(found, [p.grad for p in module.parameters()], 1e-6)

    def test_shared_parameters(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.encode = nn.Linear(3, 3)
                self.decode = nn.Linear(3, 3)
                self.decode.weight = self.encode.weight
                self.again = self.encode

            def forward(self, x):
                return self.again(self.decode(self.encode(x)))

        module = Tied()
        traced = jit.trace(module, torch.randn(2, 3))
        x = torch.randn(4, 3)
        self.assert_same(traced(x), module(x), 1e-6)

    def test_scripted_parts_are_calls(self):
        class Mixed(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(3, 3)
                self.scale = jit.script(Scale(3))

            def forward(self, x):
                return self.scale(self.first(x), x.shape[0])

        module = Mixed()
        traced = jit.trace(module, torch.randn(2, 3))
        self.assertIn("prim::CallMethod", traced.graph.node_kinds())
        for x in (torch.randn(5, 3), -torch.ones(1, 3)):
            self.assert_same(traced(x), module(x), 1e-6)
        self.assertEqual(traced.scale.weight.shape, (3,))

    @needs_pytorch
    def test_numbers_of_pytorch(self):
        """The same module in both: the traces give the same numbers and read the same sizes."""
        import torch as pytorch

        ours = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2)).eval()
        theirs = pytorch.nn.Sequential(
            pytorch.nn.Linear(4, 8),
            pytorch.nn.LayerNorm(8),
            pytorch.nn.GELU(),
            pytorch.nn.Linear(8, 2),
        ).eval()
        theirs.load_state_dict(
            {k: pytorch.from_numpy(v.numpy().copy()) for k, v in ours.state_dict().items()}
        )
        x = torch.randn(3, 4)
        traced = jit.trace(ours, x)
        expected = pytorch.jit.trace(theirs, pytorch.randn(1, 4))(pytorch.from_numpy(x.numpy()))
        self.assert_same(traced(x), expected, 1e-5)


if __name__ == "__main__":
    unittest.main()
