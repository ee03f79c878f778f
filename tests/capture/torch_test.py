"""wick.compile of functions and modules that were written with PyTorch: what no program of programs/ tells."""

import copy
import gc
import subprocess
import sys
import threading
import unittest
import weakref

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: needs Debian's python3-torch")
    sys.exit(0)

import wick
import wick.compiler
from wick import torch as own


def scale(x, factor):
    return torch.relu(x * factor) + 1


def explained(function, *args):
    return wick.compiler.explain(function)(*args)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.4), nn.Linear(8, 3))


class Tensors(unittest.TestCase):
    def setUp(self):
        wick.compiler.reset()
        torch.manual_seed(1)
        self.x = torch.randn(3, 4)

    def assertSame(self, found, expected):
        self.assertIs(type(found), type(expected))
        self.assertEqual(found.dtype, expected.dtype)
        self.assertEqual(found.stride(), expected.stride())
        self.assertTrue(torch.allclose(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True))

    def test_result_is_pytorchs(self):
        compiled = wick.compile(scale)
        for _ in range(3):
            self.assertSame(compiled(self.x, 2), scale(self.x, 2))
        self.assertEqual(explained(scale, self.x, 2).graph_count, 1)

    def test_dtypes_share_memory(self):
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
                      torch.int64, torch.bool, torch.complex64, torch.complex128):
            x = torch.ones(2, 3, dtype=dtype)
            compiled = wick.compile(lambda v: (v, v.t(), v.reshape(-1)[1:], torch.stack([v, v])))
            same, transposed, part, made = compiled(x)
            self.assertIs(same, x)
            self.assertEqual(transposed.data_ptr(), x.data_ptr())
            self.assertEqual(part.data_ptr(), x.data_ptr() + x.element_size())
            self.assertEqual(part.dtype, dtype)
            self.assertTrue(torch.equal(made, torch.stack([x, x])))

    def test_second_backward_passes(self):
        weight = torch.ones(3)

        def write_to_part(x):
            y = x.clone()
            y[0].add_(1)
            return y

        def read_for_nothing(x):
            x[torch.tensor([0])]
            return x + 1

        functions = (
            lambda x: x.sum() + 1 - x[0],
            lambda x: torch.cat([x.t(), -x.view(3)]).flip(0).unsqueeze(0),
            lambda x: (x - weight).clone().double().expand(2, 3),
            lambda x: x * 2 + 1,
            lambda x: x + (weight * 2).exp(),
            write_to_part,
            read_for_nothing,
            lambda x: x.exp().sum(),
            lambda x: (x + 1, x.exp(), -x),
        )
        for function in functions:
            outcomes = []
            for called in (function, wick.compile(function, fullgraph=True)):
                x = torch.arange(3.0, requires_grad=True)
                results = called(x)
                for result in results if isinstance(results, tuple) else (results,):
                    try:
                        for _ in range(3):
                            result.sum().backward()
                    except RuntimeError as error:
                        outcomes.append(str(error))
                outcomes.append(x.grad.tolist())
            self.assertEqual(outcomes[: len(outcomes) // 2], outcomes[len(outcomes) // 2 :])

    def test_zeros_of_both_signs(self):
        """Which zero the largest and the smallest of all elements is."""
        generator = torch.Generator().manual_seed(0)
        for name in ("max", "min"):
            other = -1.0 if name == "max" else 1.0
            for i in range(200):
                compiled = wick.compile(lambda x: getattr(x, name)() * 1, fullgraph=True)
                dtype = (torch.float32, torch.float64)[i % 2]
                choice = torch.randint(3, (1 + i % 50,), generator=generator)
                x = torch.tensor([0.0, -0.0, other], dtype=dtype)[choice]
                x = x.expand(2, -1).t() if i % 3 == 0 else x
                self.assertEqual(str(compiled(x)), str(getattr(x, name)() * 1), f"{name} of {x.tolist()}")

    def test_strides_of_dimensions_with_one_element(self):
        layouts = (
            ((4, 1), (1, 4)), ((1, 4), (1, 1)), ((2, 0, 3), (1, 2, 2)), ((2, 1, 3), (1, 77, 2)), ((3, 1, 1), (1, 9, 3)), ((1, 3, 2, 2), (1, 1, 6, 3)),
            ((2, 1, 4, 4), (16, 1, 4, 1)), ((2, 3, 1), (1, 2, 50)), ((2, 3), (0, 1)),
        )
        functions = (
            lambda x: x * 1, lambda x: x + x, lambda x: x + torch.ones([]), lambda x: x.double(), lambda x: x > 0, lambda x: x.clamp(0, 1), lambda x: x**2,
            lambda x: x + x.contiguous(), lambda x: (x * 2 + 1).relu(), lambda x: torch.where(x > 0, x, 2.0), lambda x: (x.relu() + x).double() * 2,
        )
        for sizes, strides in layouts:
            x = torch.as_strided(torch.arange(200.0), sizes, strides)
            for i, function in enumerate(functions):
                compiled = wick.compile(function)
                for _ in range(4):
                    self.assertEqual(compiled(x).stride(), function(x).stride(), f"{sizes} {strides} function {i}")

    def test_views_that_cannot_tell_whether_they_are_leaves(self):
        compiled = wick.compile(lambda part: part.mul_(3))
        for tensors in (torch.ones(4, 1), torch.ones(4, 1) * torch.ones((), requires_grad=True)):
            for _ in range(2):
                with torch.no_grad():
                    for part in tensors.unbind(0):
                        compiled(part)
            self.assertEqual(tensors.tolist(), [[9.0]] * 4)

    def test_one_of_several_views_must_not_be_written_to(self):
        def parts(x):
            y = x * 2
            a, b = y.unbind()
            c, d = x.split(1)
            return y, a, b, c, d

        for function in (parts, wick.compile(parts)):
            x = torch.ones(2, 3, requires_grad=True)
            y, *views = function(x)
            for view in views:
                with self.assertRaisesRegex(RuntimeError, "multiple views"):
                    view.add_(1)
            sum(v.sum() * (i + 1) for i, v in enumerate(views)).backward()
            self.assertEqual(x.grad.tolist(), [[5.0] * 3, [8.0] * 3])

    def test_a_write_through_a_view_gives_its_base_a_gradient(self):
        def add(to, x):
            part = to.reshape(-1)[1:]
            print(end="")
            part += x

        def apart(to, x):
            part = to.detach().reshape(-1)[1:]
            print(end="")
            part += x

        for function, expected in ((add, True), (apart, False)):
            for each in (function, wick.compile(function)):
                to, x = torch.zeros(3), torch.ones(2, requires_grad=True)
                each(to, x)
                self.assertEqual((to.requires_grad, to.tolist()), (expected, [0, 1, 1]))
                if expected:
                    (to * 2).sum().backward()
                    self.assertEqual(x.grad.tolist(), [2, 2])

    def test_where_a_tensor_begins(self):
        x = torch.arange(12.0).reshape(3, 4)
        for function in (lambda v: v[1].storage_offset(), lambda v: copy.copy(v[1:]), copy.copy):
            for given in (x, x[1:]):
                expected, found = function(given), wick.compile(function)(given)
                self.assertTrue(torch.equal(torch.as_tensor(found), torch.as_tensor(expected)))

    def test_views_are_views(self):
        x = torch.zeros(4, requires_grad=True)
        y = x * 1
        part, whole = wick.compile(lambda v: (v[1:3], v.view(2, 2)))(y)
        self.assertIs(part._base, y)
        part.mul_(3)
        part.add_(2)
        self.assertEqual(y.tolist(), [0, 2, 2, 0])
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [1, 3, 3, 1])
        # Parts of one new memory that is no result itself.
        cut = lambda v: (lambda m: (m[1:], m[2:3], m[:1]))(v * 2)
        compiled = wick.compile(cut)
        for requires in (False, True):
            v = torch.arange(4.0).requires_grad_(requires)
            for found, expected in zip(compiled(v), cut(v)):
                self.assertEqual(found.tolist(), expected.tolist())
        a, b, _ = compiled(torch.arange(4.0))
        a.fill_(7)
        self.assertEqual((b.tolist(), a.storage_offset(), b.storage_offset()), ([7], 1, 2))
        # Two results on one memory.
        first, second = wick.compile(lambda v: (lambda m: (m.view(-1), m))(v * 2))(torch.ones(2, 2))
        first.zero_()
        self.assertEqual(second.tolist(), [[0, 0], [0, 0]])

    def test_sizes_and_constants_are_pytorchs(self):
        def facts(v):
            return v.shape, v.dtype, v.device, v.layout, v.max(dim=0), v.size(), v.stride()

        found, expected = wick.compile(facts)(self.x), facts(self.x)
        for a, b in zip(found, expected):
            self.assertIs(type(a), type(b))
        self.assertEqual(found[:4], expected[:4])
        self.assertTrue(torch.equal(found[4].values, expected[4].values))

    def test_other_tensors_break_or_run_plainly(self):
        class Own(torch.Tensor):
            pass

        for x in (torch.ones(3).to_sparse(), torch.ones(3).as_subclass(Own), torch.ones(3, device="meta"),
                  torch.ones(3, dtype=torch.complex64).conj(), torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)):
            result = wick.compile(lambda v: (v.shape, v))(x)
            self.assertIs(result[1], x)
        inference = wick.compile(lambda v: v + 1)
        with torch.inference_mode():
            made = torch.ones(2)
            self.assertEqual(inference(made).tolist(), [2, 2])

    def test_two_libraries_in_one_function(self):
        def both(mine, theirs):
            a = mine * 2
            b = theirs + 1
            return a, b

        compiled = wick.compile(both)
        for _ in range(3):
            a, b = compiled(own.ones(2), torch.ones(2))
            self.assertIs(type(a), wick.Tensor)
            self.assertIs(type(b), torch.Tensor)
            self.assertEqual((a.tolist(), b.tolist()), ([2, 2], [2, 2]))

    def test_data_that_is_replaced(self):
        weight = nn.Parameter(torch.ones(2, 2))
        compiled = wick.compile(lambda v: v @ weight)
        x = torch.ones(1, 2)
        for number in (1.0, 2.0, 3.0):
            self.assertEqual(compiled(x).tolist(), [[2 * number] * 2])
            weight.data = torch.full((2, 2), number + 1)
        for number in (5.0, 6.0):
            # Writes that nobody counts.
            weight.data.fill_(number)
            self.assertEqual(compiled(x).tolist(), [[2 * number] * 2])

    def test_memory_ends_with_the_tensors(self):
        compiled = wick.compile(scale)
        kept = []
        for _ in range(4):
            x = torch.randn(64, 64)
            kept.append(weakref.ref(x))
            compiled(x, 2)
        del x
        gc.collect()
        self.assertEqual([each() for each in kept], [None] * 4)
        model = network()
        step = wick.compile(lambda v: model(v))
        for _ in range(4):
            step(torch.randn(5, 6)).sum().backward()
        references = [weakref.ref(p) for p in model.parameters()]
        del model, step
        wick.compiler.reset()
        gc.collect()
        self.assertEqual([each() for each in references], [None] * 6)

    def test_threads(self):
        compiled = wick.compile(scale)
        inputs = [torch.randn(16, 16) for _ in range(4)]
        wrong = []

        def work(x):
            for _ in range(200):
                if not torch.allclose(compiled(x, 3), scale(x, 3)):
                    wrong.append(x)

        threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(wrong, [])

    def test_backends(self):
        graphs = []

        def backend(graph, examples):
            graphs.append((graph, examples))
            return graph

        compiled = wick.compile(scale, backend=backend)
        self.assertSame(compiled(self.x, 2), scale(self.x, 2))
        self.assertIn("aten::relu", graphs[0][0].graph)
        self.assertIs(graphs[0][1][0], self.x)
        with self.assertRaisesRegex(TypeError, "takes 1 tensors"):
            graphs[0][0]()
        with self.assertRaisesRegex(ValueError, "another dtype, sizes or strides"):
            graphs[0][0](torch.ones(7))
        with self.assertRaisesRegex(ValueError, "gave 0 tensors"):
            wick.compile(scale, backend=lambda graph, examples: lambda x: ())(self.x, 2)
        calls = wick.compile(scale, backend="eager")
        x = self.x.clone().requires_grad_()
        self.assertEqual(type(calls(x, 2).grad_fn).__name__, "AddBackward0")

    def test_exit_of_the_process(self):
        code = "import torch, wick; f = wick.compile(lambda x: (x * 2).sum()); x = torch.ones(3, requires_grad=True); f(x).backward()"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))


class Gradients(unittest.TestCase):
    def setUp(self):
        wick.compiler.reset()

    def test_training_equals_plain_training(self):
        plain = network()
        model = copy.deepcopy(plain)
        compiled = wick.compile(model)
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01) for m in (plain, model)]
        for i in range(6):
            x = torch.randn(5, 6)
            results = []
            for each, optimizer in ((plain, optimizers[0]), (compiled, optimizers[1])):
                torch.manual_seed(i)
                optimizer.zero_grad()
                y = each(x)
                y.square().mean().backward()
                optimizer.step()
                results.append((y, torch.rand(1)))
            self.assertTrue(torch.allclose(results[0][0], results[1][0], atol=1e-5))
            # The random numbers of dropout are PyTorch's.
            self.assertEqual(results[0][1], results[1][1])
        for a, b in zip([*plain.parameters(), *plain.buffers()], [*model.parameters(), *model.buffers()]):
            self.assertTrue(torch.allclose(a, b, atol=1e-5))
        plain.eval(), model.eval()
        self.assertTrue(torch.allclose(plain(x), compiled(x), atol=1e-5))

    def test_second_derivative(self):
        def cube(v):
            return (v**3).sum() * 2

        x = torch.tensor([1.0, 2.0], requires_grad=True)
        first, = torch.autograd.grad(wick.compile(cube)(x), x, create_graph=True)
        self.assertEqual(first.tolist(), [6, 24])
        second, = torch.autograd.grad(first.sum(), x, create_graph=True)
        self.assertEqual(second.tolist(), [12, 24])
        third, = torch.autograd.grad(second.sum(), x)
        self.assertEqual(third.tolist(), [12, 12])
        compiled = wick.compile(lambda v: torch.tanh(v) * v)
        x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(compiled, (x,)))
        self.assertTrue(torch.autograd.gradgradcheck(compiled, (x,)))

    def test_independent_results_have_backward_passes_of_their_own(self):
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        c = torch.ones(2, requires_grad=True)
        y, z = wick.compile(lambda p, q, r: (p.exp(), q.exp()))(a, b, c)
        y.sum().backward()
        z.sum().backward()
        self.assertIsNone(c.grad)
        with self.assertRaisesRegex(RuntimeError, "second time"):
            y.sum().backward()

    def test_unused_results_give_no_gradients(self):
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

        def shared(p, q):
            s = p.exp()
            return s * 2, s * q

        y, _ = wick.compile(shared)(a, b)
        y.sum().backward()
        self.assertIsNone(b.grad)

    def test_writes_before_the_backward_pass_are_noticed(self):
        x = torch.ones(3, requires_grad=True)
        y, z = wick.compile(lambda v: (v.exp(), v + 1))(x)
        z.mul_(2)
        y.add_(1)
        z.sum().backward(retain_graph=True)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()
        weight = torch.ones(3, requires_grad=True)
        y = wick.compile(lambda v: v * weight)(x)
        with torch.no_grad():
            weight.add_(1)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_gradients_do_not_share_memory(self):
        a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        wick.compile(lambda p, q: p + q)(a, b).sum().backward()
        a.grad.add_(5)
        self.assertEqual(b.grad.tolist(), [1, 1])

    def test_hooks_and_retained_gradients(self):
        seen = []
        x = torch.ones(2, requires_grad=True)
        x.register_hook(lambda g: seen.append(g.tolist()))
        y = wick.compile(lambda v: v * 3)(x)
        y.retain_grad()
        y.sum().backward()
        self.assertEqual(seen, [[3, 3]])
        self.assertEqual(y.grad.tolist(), [1, 1])

    def test_writes_to_one_of_several_views(self):
        cases = {
            "parts": lambda y: [part.mul_(2) for part in y.unbind(0)],
            "part alone": lambda y: y.chunk(1)[0].add_(1),
            "view of a part": lambda y: y.split(1)[0].view(-1).mul_(2),
            "part of an iterator": lambda y: next(iter(y)).view_as(y[0]).mul_(2),
            "parts made one by one": lambda y: [part.mul_(2) for part in y.tensor_split(2)],
        }
        for name, write in cases.items():
            for rows in (1, 2):
                for kept in (True, False):
                    outcomes = []
                    for torch_ in (torch, torch, wick.torch):
                        def f(x):
                            y = x * 2
                            made = write(y)
                            return y if kept else made

                        wick.compiler.reset()
                        run = wick.compile(f) if len(outcomes) == 1 else f
                        x = torch_.ones(rows, 3, requires_grad=True)
                        try:
                            result = run(x)
                            outcomes.append([e.tolist() for e in result] if isinstance(result, list) else result.tolist())
                        except RuntimeError as error:
                            outcomes.append(str(error).split(" is a view")[1])
                    with self.subTest(name, rows=rows, kept=kept):
                        self.assertEqual(outcomes[1], outcomes[0])
                        self.assertEqual(outcomes[2], outcomes[0])

    def test_writes_to_inputs(self):
        def count(buffer, v):
            buffer.add_(1)
            return v * buffer

        buffer, x = torch.zeros(2), torch.ones(2, requires_grad=True)
        compiled = wick.compile(count)
        for i in range(1, 4):
            before = buffer._version
            self.assertEqual(compiled(buffer, x).tolist(), [i, i])
            self.assertEqual(buffer.tolist(), [i, i])
            self.assertGreater(buffer._version, before)
        # Inputs that share memory with the one that is written.
        whole = torch.zeros(3)
        self.assertEqual(compiled(whole[:2], whole[1:]).tolist(), count(torch.zeros(2), torch.tensor([1.0, 0.0])).tolist())
        self.assertEqual(whole.tolist(), [1, 1, 0])
        # A leaf that requires a gradient must not be written to.
        leaf = torch.ones(2, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "leaf Variable"):
            compiled(leaf, x)


class EmptyTensors(unittest.TestCase):
    def test_kernels_read_nothing(self):
        """Until their kernels are compiled, as thirty functions make sure."""
        for _ in range(30):
            total = torch.tensor(0.5)

            @wick.compile
            def f(x):
                total.add_(x.tril().mean().clone())
                return x.abs()

            for _ in range(3):
                x = torch.ones(0).requires_grad_()
                result = f(x)
                try:
                    (result.sum() + total.sum()).backward()
                except RuntimeError as error:
                    self.assertIn("a second time", str(error))

    def test_they_can_be_resized(self):
        for make in (lambda x: x.new(), lambda x: torch.empty(0), lambda x: x[:0].clone() > 0, lambda x: x.new_zeros(3, 0).t()):
            compiled = wick.compile(make)
            for _ in range(2):
                x = torch.ones(3)
                made, expected = compiled(x), make(x)
                self.assertEqual((made.shape, made.dtype, made.stride()), (expected.shape, expected.dtype, expected.stride()))
                self.assertEqual(made.resize_(2, 2).fill_(1).tolist(), expected.resize_(2, 2).fill_(1).tolist())


class Distributions(unittest.TestCase):
    """torch.distributions checks its arguments, and makes objects with lazy properties."""

    def check(self, function, *arguments, breaks=0):
        wick.compiler.reset()
        found = []
        for called in (function, wick.compile(function)):
            torch.manual_seed(5)
            results = called(*arguments), called(*arguments)
            found.append([torch.cat([each.double().flatten() for each in result]) for result in results])
            found[-1].append(torch.rand(3).double())
        for mine, its in zip(*found):
            torch.testing.assert_close(mine, its, rtol=1e-5, atol=1e-6, equal_nan=True)
        explained_call = explained(function, *arguments)
        if breaks is not None:
            self.assertEqual(explained_call.graph_break_count, breaks, str(explained_call))

    def test_samples_and_densities(self):
        d = torch.distributions
        a, b = torch.tensor([1.5, 0.7, 2.0]), torch.tensor([0.5, 1.5, 0.9])
        made = (
            lambda: d.Normal(a, b), lambda: d.HalfNormal(b), lambda: d.Laplace(a, b),
            lambda: d.Exponential(b), lambda: d.Uniform(a, a + b), lambda: d.Cauchy(a, b), lambda: d.Gamma(a, b),
            lambda: d.Chi2(a),
            lambda: d.Poisson(a), lambda: d.Geometric(b / 2), lambda: d.Bernoulli(b / 2), lambda: d.Bernoulli(logits=a),
            lambda: d.Binomial(5, b / 2), lambda: d.Categorical(a), lambda: d.Categorical(logits=a.repeat(2, 1)),
            lambda: d.OneHotCategorical(logits=a), lambda: d.Independent(d.Normal(a, b), 1),
            lambda: d.MultivariateNormal(a, scale_tril=torch.diag(b)), lambda: d.Normal(0.5, 2.0),
        )
        # Transforms keep weak references to each other; a variance is computed by two equal masks.
        broken = (lambda: d.LogNormal(a, b), lambda: d.Weibull(a, b), lambda: d.Pareto(a, b), lambda: d.StudentT(a))
        for make in made + broken:
            def use(_, make=make):
                made = make()
                sample = made.sample()
                return sample, made.log_prob(sample), made.mean, made.variance

            with self.subTest(type(make()).__name__):
                self.check(use, a, breaks=None if make in broken else 0)

    def test_divergences_and_losses(self):
        d = torch.distributions
        a, b = torch.randn(2, 3), torch.rand(2, 3) + 0.5
        self.check(lambda a, b: (d.kl_divergence(d.Normal(a, b), d.Normal(0.0, 1.0)),), a, b)
        self.check(lambda a, b: (d.kl_divergence(d.Categorical(logits=a), d.Categorical(logits=b)),), a, b)
        self.check(lambda a, b: (d.kl_divergence(d.Bernoulli(logits=a), d.Bernoulli(logits=b)),), a, b)

        def policy(logits, old):
            chosen = d.Categorical(logits=logits)
            ratio = (chosen.log_prob(chosen.sample()) - old).exp()
            return -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean() - 0.01 * chosen.entropy().mean(),

        self.check(policy, a, b[:, 0])

    def test_wrong_arguments_raise(self):
        compiled = wick.compile(lambda mean, deviation: torch.distributions.Normal(mean, deviation).sample())
        compiled(torch.zeros(2), torch.ones(2))
        with self.assertRaisesRegex(ValueError, "GreaterThan"):
            compiled(torch.zeros(2), -torch.ones(2))


if __name__ == "__main__":
    unittest.main()
