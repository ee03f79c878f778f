"""wick.jit.trace of functions: what is recorded, what a trace follows, warnings and errors."""

import io
import math
import os
import tempfile
import unittest
import warnings
from typing import Dict, List

from testing import Case, needs_pytorch
from wick import jit, nn, torch

TracerWarning = jit.TracerWarning


def kinds(traced):
    return [k for k in traced.graph.node_kinds() if k != "prim::Constant"]


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        return function(*args, **kwargs)


@jit.script
def scripted_branch(x: torch.Tensor, n: int) -> torch.Tensor:
    if bool(x.sum() > 0):
        return x * n
    return x - n


@jit.script
def scripted_dict(x: torch.Tensor) -> Dict[str, List[torch.Tensor]]:
    return {"a": [x + 1, x + 2], "b": [x * 2]}


class Recording(Case):
    def test_operators_become_nodes(self):
        def f(x, y):
            return torch.relu(x @ y) * 2 + 1

        x, y = torch.randn(3, 4), torch.randn(4, 2)
        traced = jit.trace(f, (x, y))
        self.assertEqual(kinds(traced), ["aten::matmul", "aten::relu", "aten::mul", "aten::add"])
        self.assertIn("x : Tensor", str(traced.graph).replace("%x.1", "x"))
        a, b = torch.randn(5, 4), torch.randn(4, 7)
        self.assert_same(traced(a, b), f(a, b))

    def test_places_are_lines_of_this_file(self):
        def f(x):
            return torch.cat([x, x * 3.5])

        traced = jit.trace(f, torch.ones(2))
        place = r"(?s)trace_test.py.*torch.cat\(\[x, x \* 3.5\]\)"
        with self.assertRaisesRegex(RuntimeError, place):
            traced(torch.ones(()))

    def test_containers(self):
        def f(pair, others, named):
            a, (b, c) = pair
            return (a + b, named["k"] * c), others[0] - others[1]

        t = [torch.randn(3) for _ in range(6)]
        inputs = ((t[0], (t[1], t[2])), [t[3], t[4]], {"k": t[5]})
        traced = jit.trace(f, inputs)
        t = [torch.randn(3) for _ in range(6)]
        inputs = ((t[0], (t[1], t[2])), [t[3], t[4]], {"k": t[5]})
        (found, last), (expected, other) = (traced(*inputs)[0], traced(*inputs)[1]), f(*inputs)
        self.assert_same(found, expected)
        self.assert_same(last, other)

    def test_list_and_dict_results(self):
        def f(x):
            return {"a": x + 1, "b": x * 2}, [x, x - 1]

        x = torch.randn(2)
        with self.assertRaisesRegex(RuntimeError, "Encountering a dict at the output"):
            jit.trace(f, x)
        with self.assertRaisesRegex(RuntimeError, "Encountering a list at the output"):
            jit.trace(lambda x: [x], x)
        traced = jit.trace(f, x, strict=False)
        y = torch.randn(2)
        self.assert_same(traced(y)[0]["b"], y * 2)
        self.assert_same(traced(y)[1][1], y - 1)

    def test_results_that_are_lists(self):
        def f(x):
            a, b = torch.split(x, 2)
            values, places = torch.max(x, 0)
            return a * b + values, places

        traced = jit.trace(f, torch.randn(4, 3))
        x = torch.randn(4, 3)
        self.assert_same(traced(x), f(x))

    def test_writes_and_views(self):
        def f(x):
            y = x.clone()
            y[0] = 5
            y[:, 1].mul_(10)
            y[y > 20] = -1
            z = y.view(-1)
            z += 1
            return y, z

        traced = jit.trace(f, torch.randn(3, 3))
        x = torch.randn(3, 3)
        self.assert_same(traced(x), f(x))

    def test_a_written_input(self):
        traced = jit.trace(lambda x: x.add_(1), torch.zeros(2), check_trace=False)
        x = torch.zeros(2)
        traced(x)
        self.assert_same(x, torch.ones(2))

    def test_one_tensor_twice(self):
        x = torch.randn(3)
        traced = jit.trace(lambda a, b: a - 2 * b, (x, x))
        a, b = torch.randn(3), torch.randn(3)
        self.assert_same(traced(a, b), a - 2 * b)

    def test_constants(self):
        weight = torch.randn(3)
        traced = jit.trace(lambda x: x * weight + torch.ones(3), torch.randn(3))
        x = torch.randn(3)
        self.assert_same(traced(x), x * weight + 1)
        weight.requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "Cannot insert a Tensor that requires grad"):
            jit.trace(lambda x: x * weight, torch.randn(3))

    def test_random_operators_stay(self):
        with self.assertWarnsRegex(TracerWarning, "nondeterministic nodes"):
            traced = jit.trace(lambda x: x + torch.rand_like(x), torch.zeros(4))
        self.assertFalse(torch.equal(traced(torch.zeros(4)), traced(torch.zeros(4))))

    def test_gradients_of_a_trace(self):
        traced = jit.trace(lambda x: (x * x).sum(), torch.randn(3))
        x = torch.randn(3, requires_grad=True)
        traced(x).backward()
        self.assert_same(x.grad, 2 * x.detach(), 1e-6)

    def test_functions_of_the_library_keep_their_branches(self):
        def f(x):
            return torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear")

        traced = jit.trace(f, torch.randn(1, 2, 4, 4))
        x = torch.randn(2, 3, 5, 6)
        self.assert_same(traced(x), f(x))

    def test_saved(self):
        traced = jit.trace(lambda x: (x + 1).view(x.shape[0], -1), torch.randn(2, 3, 4))
        file = io.BytesIO()
        traced.save(file)
        file.seek(0)
        x = torch.randn(5, 3, 4)
        self.assert_same(jit.load(file)(x), (x + 1).view(5, -1))

    @needs_pytorch
    def test_pytorch_loads_it(self):
        import torch as pytorch

        def f(x):
            y = torch.softmax(x.reshape(x.size(0), -1), -1)
            y[0] += 1
            return y, x.shape[1] * 2

        traced = jit.trace(f, torch.randn(2, 3, 4))
        x = torch.randn(4, 5, 6)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "f.pt")
            traced.save(path)
            found = pytorch.jit.load(path)(pytorch.from_numpy(x.numpy()))
        self.assert_same(found[0], f(x)[0], 1e-6)
        self.assertEqual(int(found[1]), 10)


class Numbers(Case):
    def follow(self, f, *shapes, expected_warnings=0):
        inputs = [torch.randn(s) for s in shapes[0]]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", TracerWarning)
            traced = jit.trace(f, tuple(inputs))
        self.assertEqual(len(caught), expected_warnings, [str(w.message) for w in caught])
        for other in shapes[1:]:
            inputs = [torch.randn(s) for s in other]
            self.assert_same(traced(*inputs), f(*inputs), 1e-6)
        return traced

    def test_sizes(self):
        self.follow(lambda x: x.view(x.size(0), -1), [(2, 3, 4)], [(5, 2, 2)])
        self.follow(lambda x: x.view(x.shape[0] * x.shape[1], -1), [(2, 3, 4)], [(5, 2, 2)])
        self.follow(lambda x: x.view(-1, x.size()[2]), [(2, 3, 4)], [(5, 2, 2)])
        self.follow(lambda x: x.new_zeros(x.shape) + torch.ones(x.size(-1)), [(2, 3)], [(4, 5)])
        self.follow(lambda x: x.reshape(x.numel()), [(2, 3)], [(4, 5)])
        self.follow(lambda x: torch.zeros(x.shape[1:]), [(2, 3, 4)], [(2, 5, 1)])
        self.follow(lambda x: torch.arange(x.size(0)) * 2, [(3,)], [(8,)])

    def test_arithmetic(self):
        def f(x):
            n, m = x.shape
            return x.sum() * (n + m - 1) / (n * m) + (n // 2) ** 2 - n % 2 + -m + 7 - m + 2 * n

        self.follow(f, [(4, 3)], [(7, 2)])
        self.follow(lambda x: x / x.shape[-1] ** 0.5, [(4, 3)], [(2, 9)])
        self.follow(lambda x: x * math.ceil(x.shape[0] / 2), [(5,)], [(8,)])
        self.follow(lambda x: x.view(math.prod(x.shape)), [(5, 2)], [(3, 7)])

    def test_subscripts(self):
        self.follow(lambda x: x[: x.shape[0] // 2, x.size(1) - 1], [(4, 3)], [(8, 5)])
        self.follow(lambda x, y: x[: y.shape[0]] + y, [(5,), (3,)], [(6,), (2,)])

    def test_lists_of_tensors_stay_tuples(self):
        self.follow(lambda x: torch.split(x, x.shape[1] // 2, 1), [(3, 4)], [(5, 8)])

    def test_a_tensor_as_an_index(self):
        traced = jit.trace(lambda x, i: x[i] + 1, (torch.randn(4), torch.tensor(1)))
        x = torch.randn(4)
        self.assert_same(traced(x, torch.tensor(3)), x[3] + 1)

    def test_a_number_as_a_result(self):
        traced = jit.trace(lambda x: x.shape[0] * 2, torch.randn(3))
        self.assertEqual(int(traced(torch.randn(7))), 14)

    def test_into_scripted_functions(self):
        traced = jit.trace(lambda x: scripted_branch(x, x.shape[0]), torch.ones(3))
        self.assertIn("prim::CallFunction", kinds(traced))
        for x in (torch.ones(5), -torch.ones(2)):
            self.assert_same(traced(x), scripted_branch(x, x.shape[0]))

    def test_branches_on_sizes_warn(self):
        def f(x):
            return x + 1 if x.shape[0] > 2 else x - 1

        self.follow(f, [(3,)], [(4,)], expected_warnings=1)

    def test_as_python_numbers(self):
        seen = []

        def f(x):
            n = x.shape[0]
            seen.append((isinstance(n, int), hash(n) == hash(3), f"{n}", n.__reduce__()))
            return x + n

        jit.trace(f, torch.randn(3), check_trace=False)
        self.assertEqual(seen, [(True, True, "3", (int, ("3",)))])

    def test_after_the_trace_they_are_plain(self):
        kept = []
        jit.trace(lambda x: kept.append(x.shape[0]) or x, torch.randn(3), check_trace=False)
        n = kept[0]
        found = (n + 1, 2 * n, n / 2, n // 2, -n, n**2, n > 1)
        self.assertEqual(found, (4, 6, 1.5, 1, -3, 9, True))
        self.assert_same(torch.zeros(n), torch.zeros(3))
        traced = jit.trace(lambda x: x + torch.ones(n), torch.randn(3))
        self.assertNotIn("aten::size", kinds(traced))


class Warnings(Case):
    def check(self, f, text, *inputs):
        with self.assertWarnsRegex(TracerWarning, text) as caught:
            jit.trace(f, inputs, check_trace=False)
        self.assertEqual(os.path.basename(caught.filename), "trace_test.py")

    def test_conversions(self):
        x = torch.ones(1)
        self.check(lambda x: x + int(x), "to a Python integer", x)
        self.check(lambda x: x + float(x), "to a Python float", x)
        self.check(lambda x: x + 1 if x > 0 else x, "to a Python boolean", x)
        self.check(lambda x: x + x.item(), "to a Python number", x)
        self.check(lambda x: x + torch.tensor(x.tolist()), "to a Python list", x)
        self.check(lambda x: x + torch.from_numpy(x.numpy()), "to a Python array", x)
        self.check(lambda x: x * len(x), "Using len to get tensor shape", x)
        self.check(lambda x: sum(x), "Iterating over a tensor", x)
        self.check(lambda x: x[int(x) :] + list(range(3))[torch.tensor(1)], "index|integer", x)
        self.check(lambda x: x + torch.tensor([1.0]), "torch.tensor results are registered", x)
        self.check(lambda x: x + (1 if 1.0 in x else 2), "to a Python boolean", x)

    def test_nothing_without_a_trace(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x = torch.ones(1)
            (int(x), float(x), bool(x), x.item(), x.tolist(), len(x), list(x), torch.tensor(1))

    def test_warnings_as_errors_leave_no_trace(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", TracerWarning)
            with self.assertRaises(TracerWarning):
                jit.trace(lambda x: x * int(x), torch.ones(1))
        self.assertFalse(jit.is_tracing())


class Errors(Case):
    def test_is_tracing(self):
        seen = []
        x = torch.ones(1)
        jit.trace(lambda x: seen.append(jit.is_tracing()) or x + 1, x, check_trace=False)
        self.assertEqual((seen, jit.is_tracing()), ([True], False))

    def test_exceptions_end_the_trace(self):
        def f(x):
            x + 1
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            jit.trace(f, torch.ones(1))
        self.assertFalse(jit.is_tracing())
        x = torch.ones(1)
        self.assert_same(jit.trace(lambda x: x + 1, x)(x), x + 1)

    def test_an_exception_that_is_caught(self):
        def f(x):
            try:
                x @ torch.ones(7)
            except RuntimeError:
                return x * 2

        traced = jit.trace(f, torch.ones(2, 2))
        self.assertEqual(kinds(traced), ["aten::mul"])

    def test_nested(self):
        def f(x):
            return jit.trace(lambda y: y + 1, x)(x)

        with self.assertRaisesRegex(RuntimeError, "Tracing can't be nested"):
            jit.trace(f, torch.ones(1))
        self.assertFalse(jit.is_tracing())

    def test_results(self):
        x = torch.ones(2)
        outside = torch.ones(2)
        with self.assertRaisesRegex(RuntimeError, "did not have observable data dependence"):
            jit.trace(lambda x: outside, x)
        for f in (lambda x: None, lambda x: 3, lambda x: "text", lambda x: (x, 2.5)):
            with self.assertRaisesRegex(RuntimeError, "Only tensors, lists, tuples of tensors"):
                jit.trace(f, x)

    def test_inputs(self):
        for wrong, name in [(3, "int"), ("a", "str"), ((torch.ones(1), 2.0), "float")]:
            with self.assertRaisesRegex(RuntimeError, f"Type '{name}' cannot be traced"):
                jit.trace(lambda x: x, (wrong,))
        with self.assertRaisesRegex(TypeError, "a function or module is expected, not int"):
            jit.trace(3, torch.ones(1))
        with self.assertRaisesRegex(AttributeError, "expected torch.nn.Module as the first argument"):
            jit.trace_module(3, {})
        with self.assertRaisesRegex(AttributeError, r"a dictionary of \(method_name, input\) pairs"):
            jit.trace_module(torch.nn.Linear(1, 1), 3)
        with self.assertRaises(TypeError):
            jit.trace(lambda x: x, (object(),))
        with self.assertRaises(TypeError):  # Python's: one argument is missing
            jit.trace(lambda x, y: x, torch.ones(1))

    def test_already_a_program(self):
        with self.assertWarnsRegex(UserWarning, "already a ScriptModule"):
            self.assertIs(jit.trace(scripted_branch, torch.ones(1)), scripted_branch)

    def test_gradients(self):
        def f(x):
            y = (x * x).sum()
            y.backward()
            return x.grad

        with self.assertRaisesRegex(RuntimeError, "gradients cannot be recorded in a trace yet"):
            jit.trace(f, torch.ones(2, requires_grad=True))

    def test_generators(self):
        generator = torch.Generator()
        with self.assertRaisesRegex(RuntimeError, "cannot be recorded in a trace"):
            jit.trace(lambda x: x + torch.rand(2, generator=generator), torch.ones(2))


class Checks(Case):
    def test_what_differs_is_named(self):
        calls = []

        def f(x):
            calls.append(1)
            y = x + 1
            return y * 2 if len(calls) == 1 else y / 2

        with self.assertRaisesRegex(
            jit.TracingCheckError, r"(?s)First diverging operator.*aten::mul.*y \* 2.*aten::div"
        ):
            jit.trace(f, torch.ones(2))

    def test_more_nodes(self):
        calls = []

        def f(x):
            calls.append(1)
            return x + 1 if len(calls) == 1 else x + 1 + 1

        with self.assertRaises(jit.TracingCheckError):
            jit.trace(f, torch.ones(2))

    def test_check_inputs(self):
        def f(x):
            return x + 1 if x.sum() > 0 else x - 1

        quietly(jit.trace, f, torch.ones(2))
        with self.assertRaisesRegex(jit.TracingCheckError, "aten::sub"):
            quietly(jit.trace, f, torch.ones(2), check_inputs=[(-torch.ones(2),)])

    def test_constants_that_differ(self):
        calls = []

        def f(x):
            calls.append(1)
            return x + torch.full((2,), 3.0).to(x) * torch.tensor(float(len(calls)))

        with self.assertRaisesRegex(jit.TracingCheckError, "Tensor-valued constant"):
            quietly(jit.trace, f, torch.ones(2))

    def test_results_that_differ(self):
        state = [0.0]

        def f(x):
            state[0] += 1
            return x + (0 if state[0] < 3 else 0) + scripted_branch(x, 1) * 0 + x.new_tensor([0.0])

        jit.trace(lambda x: x, torch.ones(1))
        quietly(jit.trace, f, torch.ones(1))

    def test_without(self):
        calls = []
        jit.trace(lambda x: calls.append(1) or x + 1, torch.ones(1), check_trace=False)
        self.assertEqual(len(calls), 1)


class Scripts(Case):
    def test_results_of_containers(self):
        def f(x):
            found = scripted_dict(x)
            return found["a"][1] * found["b"][0]

        traced = jit.trace(f, torch.randn(2))
        x = torch.randn(2)
        self.assert_same(traced(x), f(x))

    def test_script_if_tracing(self):
        @jit.script_if_tracing
        def half(x):
            if bool(x.sum() > 0):
                return x / 2
            return x

        traced = jit.trace(lambda x: half(x), torch.ones(2))
        self.assert_same(traced(-torch.ones(2)), -torch.ones(2))
        self.assert_same(traced(torch.ones(2)), torch.ones(2) / 2)

    def test_a_trace_in_a_program(self):
        traced = jit.trace(lambda x: x * 2 + 1, torch.ones(2))

        @jit.script
        def twice(x):
            return traced(traced(x))

        self.assert_same(twice(torch.ones(2)), torch.ones(2) * 7)
        outer = jit.trace(lambda x: traced(x) - 1, torch.ones(2))
        self.assertEqual(kinds(outer), ["prim::CallFunction", "aten::sub"])

    def test_a_foreign_module(self):
        other = jit.script(nn.Linear(2, 2))
        with self.assertRaisesRegex(RuntimeError, "it is not part of the active trace"):
            jit.trace(lambda x: other(x), torch.ones(2))


if __name__ == "__main__":
    unittest.main()
