"""Compiled modules and functions are used as the ones that they were made of."""

import copy
import functools
import inspect
import io
import multiprocessing
import os
import pickle
import threading
import unittest

import wick
import wick.compiler
from wick import torch as own
from worlds import in_both, pytorch


def make_model(torch):
    class Model(torch.nn.Module):
        """A model of two layers."""

        def __init__(self):
            super().__init__()
            self.layer1 = torch.nn.Linear(3, 4)
            self.layer2 = torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.Dropout(0.5))
            self.register_buffer("calls", torch.zeros(1))
            self.scale = 2

        def forward(self, x, factor=1):
            return self.layer2(self.layer1(x).relu()) * self.scale * factor

        def twice(self, x):
            return self(x) + self(x)

    return Model


class OwnModel(own.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = own.nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x).sin()


if pytorch:

    class TorchModel(pytorch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = pytorch.nn.Linear(3, 2)

        def forward(self, x):
            return self.layer(x).sin()


def graphs():
    return wick.compiler.counters.graph_count


class Modules:
    def setUp(self):
        self.model = make_model(self.torch)().eval()
        self.compiled = wick.compile(self.model)
        self.x = self.torch.ones(2, 3)

    def same(self, a, b):
        self.assertTrue(self.torch.allclose(a, b), (a, b))

    def test_attributes(self):
        model, compiled = self.model, self.compiled
        self.assertIs(compiled.layer1.weight, model.layer1.weight)
        self.assertIs(compiled.layer2[0], model.layer2[0])
        self.assertEqual(list(compiled.state_dict()), list(model.state_dict()))
        self.assertEqual([n for n, _ in compiled.named_parameters()], [n for n, _ in model.named_parameters()])
        self.assertEqual(len(list(compiled.parameters())), 4)
        self.assertIsInstance(compiled, type(model))
        self.assertIsInstance(compiled, self.torch.nn.Module)
        self.assertEqual(repr(compiled), repr(model))
        self.assertEqual(type(compiled).__name__, "Model")
        self.assertEqual(compiled.__doc__, model.__doc__)
        with self.assertRaises(AttributeError):
            compiled.layer3

    def test_it_is_compiled(self):
        expected = self.model(self.x)
        before = graphs()
        self.same(self.compiled(self.x), expected)
        self.same(self.compiled(self.x, factor=3), self.model(self.x, 3))
        self.assertGreaterEqual(graphs(), before + 2)
        self.same(self.compiled.twice(self.x), expected + expected)

    def test_changes_are_seen_on_both_sides(self):
        self.compiled(self.x)
        self.compiled.scale = 5
        self.assertEqual(self.model.scale, 5)
        self.same(self.compiled(self.x), self.model(self.x))
        self.compiled.layer1 = self.torch.nn.Linear(3, 4)
        self.assertIs(self.model.layer1, self.compiled.layer1)
        self.same(self.compiled(self.x), self.model(self.x))
        self.assertIs(self.compiled.train(), self.compiled)
        self.assertTrue(self.model.layer2[1].training)
        self.compiled.eval()
        self.assertFalse(self.model.training)
        state = {name: self.torch.zeros_like(value) for name, value in self.model.state_dict().items()}
        self.compiled.load_state_dict(state)
        self.same(self.compiled(self.x), self.torch.zeros(2, 2))

    def test_to(self):
        self.assertIs(self.compiled.to(self.torch.float64), self.compiled)
        self.assertEqual(self.model.layer1.weight.dtype, self.torch.float64)
        x = self.x.to(self.torch.float64)
        self.same(self.compiled(x), self.model(x))

    def test_hooks(self):
        seen = []
        first = self.compiled.register_forward_hook(lambda module, args, result: result + 1)
        self.model.register_forward_pre_hook(lambda module, args: seen.append(len(args)))
        result = self.compiled(self.x)
        first.remove()
        self.same(result, self.compiled(self.x) + 1)
        self.assertEqual(seen, [1, 1])

    def test_gradients(self):
        self.compiled(self.x).sum().backward()
        gradient = self.model.layer1.weight.grad.clone()
        self.model.zero_grad()
        self.model(self.x).sum().backward()
        self.assertTrue(self.torch.allclose(gradient, self.model.layer1.weight.grad))

    def test_within_other_modules(self):
        outer = self.torch.nn.Sequential(self.compiled, self.torch.nn.ReLU())
        plain = self.torch.nn.Sequential(self.model, self.torch.nn.ReLU())
        self.same(outer(self.x), plain(self.x))
        self.assertEqual(list(outer.state_dict()), list(plain.state_dict()))
        found = wick.compiler.explain(outer)(self.x)
        self.assertEqual((found.graph_count, found.graph_break_count), (1, 0), found)
        self.same(wick.compile(outer, fullgraph=True)(self.x), plain(self.x))

    def test_copies(self):
        for other in (copy.deepcopy(self.compiled), copy.copy(self.compiled)):
            self.assertIsInstance(other, type(self.model))
            before = graphs()
            self.same(other(self.x), self.model(self.x))
            self.assertGreaterEqual(graphs(), before)
        other = copy.deepcopy(self.compiled)
        self.assertIsNot(other.layer1.weight, self.model.layer1.weight)
        other.scale = 7
        self.assertEqual(self.model.scale, 2)
        self.same(other(self.x) * 2, self.model(self.x) * 7)

    def test_pickle(self):
        model = (OwnModel if self.torch is own else TorchModel)()
        compiled = wick.compile(model, fullgraph=True, backend="eager")
        other = pickle.loads(pickle.dumps(compiled))
        self.assertIsInstance(other, type(model))
        self.assertTrue(hasattr(type(other), "_wick_parts"))
        before = graphs()
        self.same(other(self.x), model(self.x))
        self.assertEqual(graphs(), before + 1)

    def test_state_is_saved(self):
        file = io.BytesIO()
        self.torch.save(self.compiled.state_dict(), file)
        file.seek(0)
        fresh = make_model(self.torch)().eval()
        fresh.load_state_dict(self.torch.load(file))
        self.same(fresh(self.x), self.compiled(self.x))

    def test_compiled_again(self):
        again = wick.compile(self.compiled, backend="eager")
        self.same(again(self.x), self.model(self.x))
        self.assertIs(type(again), type(self.compiled))
        self.assertEqual(wick.compiler.explain(self.compiled)(self.x).graph_count, 1)

    def test_optimizer(self):
        step = self.torch.optim.SGD(self.compiled.parameters(), lr=0.1)
        before = self.model.layer1.weight.detach().clone()
        self.compiled(self.x).sum().backward()
        step.step()
        self.assertFalse(self.torch.equal(before, self.model.layer1.weight))
        self.same(self.compiled(self.x), self.model(self.x))


def named(x, *, factor: float = 2.0, **rest):
    """Doubles."""
    return x * factor


class Functions:
    def setUp(self):
        self.x = self.torch.tensor([1.0, 2.0])

    def test_names(self):
        compiled = wick.compile(named)
        self.assertEqual((compiled.__name__, compiled.__doc__, compiled.__module__), ("named", "Doubles.", __name__))
        self.assertEqual(inspect.signature(compiled), inspect.signature(named))
        self.assertIs(compiled.__wrapped__, named)
        self.assertTrue(inspect.isfunction(compiled))
        self.assertEqual(compiled(self.x, factor=3.0).tolist(), [3.0, 6.0])
        with self.assertRaisesRegex(TypeError, "named"):
            compiled()

    def test_methods(self):
        class Scaler:
            factor = 2

            @wick.compile
            def scaled(self, x, plus=0):
                """Scales."""
                return x * self.factor + plus

            @wick.compile(fullgraph=True)
            @staticmethod
            def twice(x):
                return x * 2

            @wick.compile
            @classmethod
            def of_class(cls, x):
                return x * cls.factor

            @classmethod
            @wick.compile
            def inner(cls, x):
                return x + cls.factor

            @property
            @wick.compile
            def size(self):
                return self.factor + 1

        scaler = Scaler()
        self.assertEqual(scaler.scaled(self.x, plus=1).tolist(), [3.0, 5.0])
        self.assertEqual(Scaler.scaled(scaler, self.x).tolist(), [2.0, 4.0])
        self.assertEqual(scaler.scaled.__name__, "scaled")
        self.assertEqual(scaler.scaled.__doc__, "Scales.")
        self.assertEqual(str(inspect.signature(scaler.scaled)), "(x, plus=0)")
        self.assertIs(scaler.scaled.__self__, scaler)
        for call in (scaler.twice, Scaler.twice, scaler.of_class, Scaler.of_class):
            self.assertEqual(call(self.x).tolist(), [2.0, 4.0])
        self.assertEqual(Scaler.inner(self.x).tolist(), [3.0, 4.0])
        self.assertEqual(scaler.size, 3)
        self.assertEqual(wick.compile(scaler.scaled)(self.x).tolist(), [2.0, 4.0])
        self.assertEqual(wick.compiler.explain(scaler.scaled)(self.x).graph_count, 1)

    def test_partial(self):
        add = wick.compile(lambda x, y, z=1: x * y + z)
        self.assertEqual(functools.partial(add, self.x, z=3)(2).tolist(), [5.0, 7.0])
        inner = wick.compile(functools.partial(lambda x, y: x * y, y=3))
        self.assertEqual(inner(self.x).tolist(), [3.0, 6.0])
        self.assertEqual(list(map(wick.compile(lambda x: x + 1), [1, 2])), [2, 3])

    def test_calls_of_compiled_functions_are_one_graph(self):
        inner = wick.compile(lambda x: (x + 1).sin())

        def outer(x):
            return inner(x) * 2 + inner(x)

        found = wick.compiler.explain(outer)(self.x)
        self.assertEqual((found.graph_count, found.graph_break_count), (1, 0), found)
        self.assertTrue(self.torch.equal(wick.compile(outer, fullgraph=True)(self.x), outer(self.x)))

    def test_many_compiled_functions_within_another_one(self):
        inner = [wick.compile(lambda x, i=i: x * i, fullgraph=True) for i in range(12)]

        @wick.compile(options={"max_entries": 100})
        def outer(x, functions):
            print(end="")
            for each in functions:
                x = each(x)
                print(end="")
            return x

        self.assertEqual(outer(self.x, inner[1:]).tolist(), [39916800.0, 79833600.0])

    def test_is_compiling(self):
        def f(x):
            return x + (1 if wick.compiler.is_compiling() else 2)

        self.assertEqual(wick.compile(f, fullgraph=True)(self.x).tolist(), [2.0, 3.0])
        self.assertEqual(f(self.x).tolist(), [3.0, 4.0])
        self.assertFalse(wick.compiler.is_compiling())

    def test_threads_call_it_first(self):
        def f(x, n):
            for _ in range(n):
                x = (x + n).sin()
            return x

        compiled = wick.compile(f)
        expected = f(self.x, 30)
        barrier, results, errors = threading.Barrier(8), [], []

        def work():
            try:
                barrier.wait()
                for _ in range(20):
                    results.append(self.torch.allclose(compiled(self.x, 30), expected))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((errors, results), ([], [True] * 160))

    def test_threads_call_it_while_others_are_given_up(self):
        def f(x, n):
            for _ in range(n):
                x = (x + n).sin()
            return x

        def work(compiled, barrier):
            barrier.wait()
            for _ in range(5):
                compiled(self.x, 30)

        # The entries of each round end in the next one.
        for _ in range(20):
            arguments = wick.compile(f), threading.Barrier(8)
            threads = [threading.Thread(target=work, args=arguments) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def test_fork(self):
        compiled = wick.compile(lambda x, n: (x * n).sin())
        expected = compiled(self.x, 2)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            good = self.torch.equal(compiled(self.x, 2), expected)
            other = wick.compile(lambda x: x + 1)
            good = good and other(self.x).tolist() == [2.0, 3.0] and compiled(self.x, 0).tolist() == [0.0, 0.0]
            os.write(write, b"1" if good else b"0")
            os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        self.assertEqual(os.read(read, 1), b"1")
        os.close(read)
        self.assertTrue(self.torch.equal(compiled(self.x, 2), expected))


@wick.compile
def squares(n):
    return [each * each for each in own.arange(n).tolist()]


class Processes(unittest.TestCase):
    def test_multiprocessing(self):
        self.assertEqual(squares(3), [0, 1, 4])
        with multiprocessing.get_context("fork").Pool(2) as pool:
            self.assertEqual(pool.map(squares, [1, 2, 3]), [[0], [0, 1], [0, 1, 4]])

    def test_functions_are_pickled_by_name(self):
        self.assertIs(pickle.loads(pickle.dumps(squares)), squares)
        self.assertIs(copy.deepcopy(squares), squares)


class Classes(unittest.TestCase):
    def test_slots_are_refused(self):
        class Slotted(own.nn.Module):
            __slots__ = ("extra",)

        with self.assertRaisesRegex(TypeError, "Slotted, a class with __slots__"):
            wick.compile(Slotted())

    def test_other_objects(self):
        class Adder:
            def __call__(self, x):
                return x + 1

        self.assertEqual(wick.compile(Adder())(own.ones(1)).tolist(), [2.0])

    def test_nothing_is_kept(self):
        import gc
        import weakref

        model = OwnModel()
        compiled = wick.compile(model)
        compiled(own.ones(1, 3))
        died = weakref.ref(model)
        del model, compiled
        gc.collect()
        self.assertIsNone(died())


ModulesOnWick, ModulesOnPyTorch = in_both(Modules)
FunctionsOnWick, FunctionsOnPyTorch = in_both(Functions)
del Modules, Functions

if __name__ == "__main__":
    unittest.main()
