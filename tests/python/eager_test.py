"""Operators as functions, methods and signs, and how tensors behave as Python's objects."""

import copy
import gc
import math
import operator
import pickle
import re
import subprocess
import sys
import threading
import unittest

import numpy as np
import wick
from testing import Case, needs_pytorch, ticks_while
from wick import torch


def run(code):
    """A program in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def nested(levels):
    made = 1.0
    for _ in range(levels):
        made = [made]
    return made


class Names(Case):
    def test_namespaces(self):
        x = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
        self.assert_same(torch.linalg.det(x), np.float32(10), 1e-6)
        self.assert_same(torch.fft.fft(x).real[0], np.array([5, 3], np.float32))
        self.assert_same(torch.special.erf(x), np.vectorize(math.erf)(x.numpy()).astype("f"), 1e-6)
        self.assert_same(torch.nn.functional.relu(-x), np.zeros((2, 2), "f"))
        self.assert_same(torch.ops.aten.add(x, 1), x.numpy() + 1)
        import wick.torch.linalg as la

        self.assertIs(la, torch.linalg)

    def test_constants(self):
        self.assertIs(torch.float, torch.float32)
        self.assertEqual(repr(torch.bfloat16), "torch.bfloat16")
        self.assertEqual(torch.pi, math.pi)
        self.assertEqual(torch.device("cpu").type, "cpu")
        self.assertEqual(repr(torch.device("cuda", 1)), "device(type='cuda', index=1)")
        self.assertEqual(torch.finfo(torch.float32).eps, np.finfo("f").eps)
        self.assertEqual(torch.iinfo(torch.int8).min, -128)
        self.assertIs(torch.promote_types(torch.int32, torch.float16), torch.float16)

    def test_missing(self):
        with self.assertRaisesRegex(AttributeError, "no attribute 'not_there'"):
            torch.not_there
        with self.assertRaisesRegex(AttributeError, "not_there"):
            torch.ones(1).not_there
        with self.assertRaises(ImportError):
            from wick.torch import not_there  # noqa: F401

    def test_names_that_only_python_has(self):
        x = torch.tensor([[3.0, 1.0], [1.0, 2.0]])
        self.assertEqual((x.nelement(), x.ndimension()), (4, 2))
        self.assertEqual(x.unique().tolist(), [1, 2, 3])
        values, inverse, counts = x.unique(True, True, True)
        self.assertEqual((inverse.tolist(), counts.tolist()), ([[2, 0], [0, 1]], [2, 1, 1]))
        self.assertEqual(x.unique_consecutive().tolist(), [3, 1, 2])
        self.assertEqual(x.unique_consecutive(return_counts=True)[1].tolist(), [1, 2, 1])
        for got, want in zip(x.lu(), torch.lu(x)):
            self.assertTrue(torch.equal(got, want))
        self.assertTrue(torch.equal(x.to_sparse_coo().to_dense(), x))
        y = x.t()
        self.assertIs(y.apply_(lambda v: v + 1), y)
        self.assertEqual(x.tolist(), [[4, 2], [2, 3]])
        self.assertEqual(y.map_(torch.tensor([1.0, 2.0]), max).tolist(), [[4, 2], [2, 3]])
        with self.assertRaisesRegex(RuntimeError, "requires grad"):
            torch.ones(2, requires_grad=True).apply_(abs)
        with self.assertRaisesRegex(TypeError, "on CPU"):
            torch.ones(2, device="lazy").apply_(abs)
        with self.assertRaisesRegex(TypeError, "float32"):
            x.map_(torch.tensor([1, 2]), max)

    @needs_pytorch
    def test_pytorch_agrees_on_these(self):
        import torch as pytorch

        for make in (lambda t: t.unique(), lambda t: t.unique(dim=0), lambda t: t.lu()[0]):
            rows = [[2.0, 1.0], [2.0, 1.0]], [[1.0, 5.0], [3.0, 4.0]]
            for each in rows:
                got, want = make(torch.tensor(each)), make(pytorch.tensor(each))
                self.assert_same(got, want.numpy(), 1e-6)

    def test_refusals(self):
        x = torch.ones(2)
        with self.assertRaisesRegex(TypeError, "aten::add.Tensor"):
            torch.add(x, "text")
        with self.assertRaisesRegex(TypeError, "no form as a value"):
            torch.add(x, object())
        with self.assertRaisesRegex(TypeError, "unsupported operand"):
            x + object()
        with self.assertRaisesRegex(RuntimeError, "shapes cannot be multiplied"):
            torch.ones(2, 3) @ torch.ones(2, 3)
        with self.assertRaises(OverflowError):
            x + 2**70
        with self.assertRaises(TypeError):
            x + np.ones(2)[0:0:1].tolist


class Calls(Case):
    def test_forms_of_arguments(self):
        self.assertEqual(torch.zeros(2, 3).shape, (2, 3))
        self.assertEqual(torch.zeros([2, 3]).shape, (2, 3))
        self.assertEqual(torch.zeros((2, 3), dtype=torch.int64).dtype, torch.int64)
        self.assertEqual(torch.zeros(()).shape, ())
        self.assertEqual(torch.zeros([]).shape, ())
        self.assertEqual(torch.zeros(2, requires_grad=True).requires_grad, True)
        self.assertEqual(torch.ones(4).view(2, 2).shape, (2, 2))
        self.assertEqual(torch.ones(4).reshape(torch.Size([2, 2])).shape, (2, 2))
        self.assertEqual(torch.full((2,), 1.5).tolist(), [1.5, 1.5])
        self.assertEqual(torch.ones(2).to("cpu").sum(dim=0, keepdim=True).shape, (1,))
        self.assertEqual((torch.ones(2) * np.float32(2)).tolist(), [2, 2])
        self.assertEqual(torch.arange(np.int64(3)).tolist(), [0, 1, 2])
        self.assertEqual(torch.einsum("ij->ji", torch.ones(2, 3)).shape, (3, 2))

    def test_booleans_are_numbers(self):
        x = torch.tensor([1.5, -2.0])
        i = torch.tensor([3, -2])
        b = torch.tensor([True, False])
        self.assertEqual((x + True).tolist(), [2.5, -1])
        self.assertEqual((x == True).tolist(), [False, False])  # noqa: E712
        self.assertEqual((i << True).tolist(), [6, -4])
        self.assertEqual(torch.add(b, True).dtype, torch.bool)
        self.assertEqual(torch.full([2], True).dtype, torch.bool)
        self.assertEqual(torch.where(b, True, False).dtype, torch.bool)
        self.assertEqual(torch.clamp(x, min=False, max=True).tolist(), [1, 0])
        self.assertEqual(x.masked_fill(b, True).tolist(), [1, -2])
        self.assertEqual(torch.nn.functional.leaky_relu(x, True).tolist(), [1.5, -2])
        self.assertEqual(torch.nn.functional.pad(x, [1, 0], value=True).tolist(), [1, 1.5, -2])
        self.assertIs((True * i).dtype, torch.int64)
        self.assertIs((False + i).dtype, torch.int64)
        self.assertIs((True + b).dtype, torch.bool)
        # Where an int is wanted they are not.
        for wrong in (lambda: torch.sum(x, dim=True), lambda: x.unsqueeze(False)):
            with self.assertRaises(TypeError):
                wrong()

    def test_lists_of_numbers(self):
        x = torch.arange(9.0).reshape(3, 3) ** 2
        rows = torch.gradient(x, spacing=[2, 3])[0]
        self.assertEqual(rows[0].tolist(), [4.5, 7.5, 10.5])
        self.assertEqual(torch.gradient(x, spacing=(2.0, 3))[0].tolist(), rows.tolist())
        self.assertEqual(torch.gradient(x, dim=[0, 1], spacing=[2, 3])[0].tolist(), rows.tolist())
        self.assertEqual(torch.gradient(x, spacing=[True], dim=0)[0][0].tolist(), [9, 15, 21])
        sums = torch._foreach_add([torch.ones(1), torch.ones(1)], [1, 2.5])
        self.assertEqual([t.item() for t in sums], [2, 3.5])

    def test_layouts(self):
        x = torch.eye(4)
        for made, layout in (
            (x, torch.strided),
            (x.to_sparse(), torch.sparse_coo),
            (x.to_sparse_csr(), torch.sparse_csr),
            (x.to_sparse_csc(), torch.sparse_csc),
            (x.to_sparse_bsr((2, 2)), torch.sparse_bsr),
            (x.to_sparse_bsc((2, 2)), torch.sparse_bsc),
        ):
            self.assertIs(made.layout, layout)
        self.assertEqual(torch.sparse.sum(x.to_sparse(), 0).to_dense().tolist(), [1, 1, 1, 1])

    def test_python_converts_more_than_programs_do(self):
        image = torch.ones(1, 1, 2, 2)
        for factor in (2, 2.0, 2):
            resized = torch.nn.functional.interpolate(image, scale_factor=factor)
            self.assertEqual(resized.shape, (1, 1, 4, 4))
        x = torch.tensor([[0, 1], [2, 0]])
        self.assertEqual(x.nonzero().tolist(), [[0, 1], [1, 0]])
        self.assertEqual([t.tolist() for t in x.nonzero(as_tuple=True)], [[0, 1], [1, 0]])
        self.assertFalse(torch.cuda.is_available())
        # Lists of indices may hold None.
        mask = torch.tensor([True, False])
        for places in ([mask.long()], (mask.long(),), [mask.long()]):
            picked = torch._unsafe_masked_index(torch.tensor([3.0, 4.0]), mask, places, 2.5)
            self.assertEqual(picked.tolist(), [4.0, 2.5])

    def test_views_of_another_dtype(self):
        x = torch.ones(3)
        for view in (x.view(torch.int32), x.view(dtype=torch.int32)):
            self.assertEqual((view.shape, view.dtype, view[0].item()), ((3,), torch.int32, 0x3F800000))
        self.assertEqual(x.view(torch.uint8).shape, (12,))
        self.assertEqual(torch.ones(4).view(torch.float64).shape, (2,))
        self.assertEqual(x.view(3).dtype, torch.float32)

    def test_norms(self):
        x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
        self.assertEqual((x.norm().item(), x.norm(1).item(), x.norm("fro").item()), (5, 7, 5))
        self.assertEqual(x.norm(dim=1).tolist(), [5, 0])
        self.assertEqual(x.norm(2, dim=1, keepdim=True).tolist(), [[5], [0]])
        self.assertEqual(x.norm("fro", dim=(0, 1)).item(), 5)
        self.assertEqual(x.norm(keepdim=True).shape, (1, 1))
        self.assertIs(x.norm(2, dtype=torch.float64).dtype, torch.float64)

    def test_flags_that_choose_a_function(self):
        x = torch.arange(16.0).view(1, 1, 4, 4)
        pooled, places = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
        self.assertEqual(places.flatten().tolist(), [5, 7, 13, 15])
        self.assert_same(torch.nn.functional.max_pool2d(x, 2), pooled)

    def test_named_results(self):
        result = torch.max(torch.tensor([[1, 5], [7, 2]]), 1)
        self.assertEqual(result.values.tolist(), [5, 7])
        self.assertEqual(result.indices.tolist(), [1, 0])

    def test_tensors_come_in_tuples(self):
        parts = torch.ones(4, 2).split(2)
        self.assertIsInstance(parts, tuple)
        self.assertEqual([p.shape for p in parts], [(2, 2), (2, 2)])

    def test_writing_gives_the_same_object(self):
        x = torch.ones(2)
        before = x
        x += 1
        self.assertIs(x, before)
        self.assertIs(x.add_(1), x)
        self.assertEqual(x.tolist(), [3, 3])
        out = torch.empty(2)
        self.assertIs(torch.add(x, x, out=out), out)
        self.assertEqual(out.tolist(), [6, 6])

    def test_several_tensors_to_write_to(self):
        x = torch.tensor([[1.0, 3.0, 2.0]])
        for kind in (tuple, list):
            out = torch.empty(0), torch.empty(0, dtype=torch.int64)
            found = torch.max(x, 1, out=kind(out))
            self.assertIs(found.values, out[0])
            self.assertIs(found.indices, out[1])
            self.assertEqual((out[0].tolist(), out[1].tolist()), ([3], [1]))
        parts = [torch.empty(0) for _ in range(3)]
        torch.linalg.svd(torch.eye(2), out=tuple(parts))
        self.assertEqual([t.shape for t in parts], [(2, 2), (2,), (2, 2)])
        torch.sort(x, 1, out=out)
        self.assertEqual(out[1].tolist(), [[0, 2, 1]])
        self.assertEqual(torch.add(x, 1, out=None).tolist(), [[2, 4, 3]])
        self.assertTrue(torch.zeros(2, out=None, requires_grad=True).requires_grad)
        for wrong in ((out[0],), (1, 2), (out[0],) * 3):
            with self.assertRaises(TypeError):
                torch.max(x, 1, out=wrong)
        with self.assertRaises(TypeError):
            torch.add(x, x, out=(x, x))

    def test_signs(self):
        a, b = torch.tensor([7, -7, 2]), torch.tensor([2, 2, 3])
        for sign in (operator.add, operator.sub, operator.mul, operator.truediv, operator.and_,
                     operator.or_, operator.xor, operator.lt, operator.ge, operator.eq):
            expected = sign(a.numpy(), b.numpy())
            found = sign(a, b).numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        for sign in (operator.add, operator.sub, operator.mul, operator.mod, operator.floordiv):
            np.testing.assert_array_equal(sign(a, 2).numpy(), sign(a.numpy(), 2))
        for sign in (operator.add, operator.sub, operator.mul):
            np.testing.assert_array_equal(sign(2, a).numpy(), sign(2, a.numpy()))
        self.assertEqual((1 / torch.tensor([2.0])).tolist(), [0.5])
        self.assertEqual((2 ** torch.tensor([3])).tolist(), [8])
        self.assertEqual((-a).tolist(), [-7, 7, -2])
        self.assertEqual((~a).tolist(), [-8, 6, -3])
        self.assertEqual(abs(a).tolist(), [7, 7, 2])
        self.assertEqual((1 << torch.tensor([3])).tolist(), [8])
        self.assertFalse(torch.ones(1) == None)  # noqa: E711

    def test_numbers_before_signs(self):
        mask, ints, x = torch.tensor([True, False]), torch.tensor([3, -2]), torch.tensor([1.5, -2])
        for made, expected in [
            (True & mask, [True, False]), (True | mask, [True, True]), (True ^ mask, [False, True]),
            (True & ints, [1, 0]), (5 ^ ints, [6, -5]), (6 | ints, [7, -2]), (True << ints[:1], [8]),
            (2 // x, [1, -1]), (7 // ints, [2, -4]), (2.5 // ints, [0, -2]), (True // ints, [0, -1]),
            (2 % ints, [2, 0]), (True / ints[:1], [1 / 3]),
            (2**ints[:1], [8]), (True < x, [True, False]),
        ]:
            np.testing.assert_allclose(np.array(made.tolist()), np.array(expected), rtol=1e-6)
        self.assertIs((2 // torch.tensor([3], dtype=torch.int8)).dtype, torch.int8)
        self.assertIs((2 // torch.tensor(3, dtype=torch.int8)).dtype, torch.int8)
        self.assertIs((2.5 // torch.tensor([3])).dtype, torch.float32)
        self.assertEqual((1000000 // torch.tensor([3], dtype=torch.int8)).tolist(), [21])
        self.assertIs(torch.floor_divide(2, torch.tensor([3])).dtype, torch.int64)
        self.assertIs(torch.floor_divide(2.5, torch.tensor([3])).dtype, torch.float32)
        self.assertEqual((0.3 // torch.tensor([0.1], dtype=torch.float64)).item(), 2)
        for wrong in (lambda: "a" // x, lambda: None & mask, lambda: [1] ^ ints, lambda: 2 @ x):
            with self.assertRaises(TypeError):
                wrong()


class Objects(Case):
    def test_numbers(self):
        self.assertEqual(int(torch.tensor(3.7)), 3)
        self.assertEqual(float(torch.tensor(3)), 3.0)
        self.assertEqual([10, 20, 30][torch.tensor(1)], 20)
        self.assertTrue(torch.tensor([True]))
        self.assertEqual(f"{torch.tensor(3.14159):.2f}", "3.14")
        self.assertEqual(torch.tensor(2 + 1j).item(), 2 + 1j)
        with self.assertRaisesRegex(RuntimeError, "ambiguous"):
            bool(torch.ones(2))
        with self.assertRaises(TypeError):
            [1, 2][torch.tensor(1.0)]

    def test_sequences(self):
        x = torch.arange(6).view(2, 3)
        self.assertEqual(len(x), 2)
        self.assertEqual([row.tolist() for row in x], [[0, 1, 2], [3, 4, 5]])
        self.assertIn(5, x)
        self.assertNotIn(9, x)
        with self.assertRaises(TypeError):
            len(torch.tensor(1))
        with self.assertRaises(TypeError):
            iter(torch.tensor(1))

    def test_properties(self):
        x = torch.ones(2, 3)
        self.assertEqual((x.shape, x.ndim, str(x.device)), ((2, 3), 2, "cpu"))
        self.assertIs(x.dtype, torch.float32)
        self.assertEqual((x.T.shape, x.size(1), x.stride(), x.is_cuda), ((3, 2), 3, (3, 1), False))
        self.assertIs(x.layout, torch.strided)
        self.assertEqual(x.shape[1:], torch.Size([3]))
        self.assertIsInstance(x.shape[1:], torch.Size)
        self.assertEqual(x.shape.numel(), 6)

    def test_messages(self):
        tracked = torch.ones(2, requires_grad=True)
        for wrong, error, message in [
            (lambda: torch.add(*[1] * 300), TypeError, "more than 48 arguments"),
            (lambda: torch.set_default_dtype(torch.int32), TypeError, "only floating-point types"),
            (lambda: torch.set_num_threads(0), RuntimeError, "number from 1 to 1024, got 0"),
            (lambda: torch.set_num_threads(5000), RuntimeError, "from 1 to 1024, got 5000"),
            (lambda: torch.device("cuda", 200), RuntimeError, "index 200 is out of range"),
            (lambda: torch.device(200), RuntimeError, "index 200 is out of range"),
            (lambda: torch.device("cuda:1", 1), RuntimeError, "the index is given twice"),
            (lambda: torch.device(3.5), TypeError, "expected a device, got float"),
            (lambda: torch.Generator(device="cuda"), RuntimeError, "only the CPU has one"),
            (lambda: torch.ones(2).size() + [1], TypeError, 'concatenate tuple (not "list")'),
            (lambda: torch.ones(2).item(), ValueError, "only one element tensors"),
            (lambda: float(torch.ones(2)), ValueError, "only one element tensors"),
            (lambda: delattr(tracked, "data"), AttributeError, "data cannot be deleted"),
            (lambda: wick.Tensor([1], dtype=torch.int8), TypeError, "Tensor takes no keywords"),
            (lambda: len(torch.tensor(1)), TypeError, "len() of a 0-d tensor"),
            (lambda: iter(torch.tensor(1)), TypeError, "iteration over a 0-d tensor"),
            (lambda: [1][torch.tensor(1.0)], TypeError, "only integer tensors of a single element"),
            (lambda: pickle.dumps(torch.eye(2).to_sparse()), TypeError, "only dense tensors can be"),
            (lambda: copy.deepcopy(tracked * 2), RuntimeError, "created explicitly by the user"),
            (lambda: wick._C._number(0, 99), ValueError, "99 has no name here"),
            (lambda: torch.ones(2) + 2**64, OverflowError, "int too large for 64 bits"),
            (lambda: torch.finfo(torch.int8), TypeError, "requires a floating point input type"),
            (lambda: torch.iinfo(torch.float32), TypeError, "requires an integer input type"),
            (lambda: torch.ones(2).type("torch.Nothing"), ValueError, "invalid type: 'torch.Nothing'"),
            (lambda: torch.set_printoptions(profile="wide"), ValueError, "unknown profile 'wide'"),
            (lambda: torch.set_printoptions(sci_mode=3), ValueError, "True, False or None"),
            (lambda: torch.set_printoptions(precision=101), ValueError, "more than 100 digits"),
            (lambda: torch.tensor(nested(70)), ValueError, "too many dimensions"),
            (lambda: torch.load("x", map_location="gpu"), RuntimeError, "got 'gpu'"),
            (lambda: torch.load("x", map_location=2.5), TypeError, "map_location: expected a device, a dict"),
            (lambda: wick.not_there, AttributeError, "has no attribute 'not_there'"),
            (lambda: torch.ones(2).size(3), IndexError, "in range of [-1, 0], but got 3"),
            (lambda: torch.ones(2).size(0, 1), TypeError, "size() takes at most one dimension"),
            (lambda: delattr(tracked, "requires_grad"), AttributeError, "cannot be deleted"),
            (lambda: setattr(tracked, "grad", torch.ones(3)), RuntimeError,
             "assigned grad float32[3] does not fit a tensor of float32[2]"),
            (lambda: setattr(tracked, "grad", 3), TypeError, "grad: expected a Tensor, got int"),
            (lambda: wick.Tensor._make_subclass(int, torch.ones(2)), TypeError,
             "expected a class derived from Tensor"),
            (lambda: wick._C._number(99, 3), ValueError, "there is no kind 99 of numbers"),
            (lambda: wick._C._tensor_of_bytes(b"123", torch.float32, [1]), ValueError,
             "expected 4 bytes for a tensor of float32[1], got 3"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(error, re.escape(message)):
                wrong()
        self.assertEqual(torch.ones(2).size() + (1,), (2, 1))
        x = torch.ones(2)
        x.requires_grad = True
        self.assertTrue(x.requires_grad)

    def test_constructing(self):
        self.assertEqual(torch.tensor([[1, 2], [3, 4.5]]).dtype, torch.float32)
        self.assertEqual(torch.tensor([1, True]).dtype, torch.int64)
        self.assertEqual(torch.tensor([]).shape, (0,))
        self.assertEqual(torch.tensor([[], []]).shape, (2, 0))
        self.assertEqual(torch.tensor(0.1, dtype=torch.float64).item(), 0.1)
        self.assertEqual(torch.tensor([torch.tensor(1), 2]).tolist(), [1, 2])
        self.assertEqual(torch.tensor(range(3)).tolist(), [0, 1, 2])
        self.assertEqual(torch.tensor([1j]).dtype, torch.complex64)
        with self.assertRaisesRegex(ValueError, "expected sequence of length 2 at dim 1"):
            torch.tensor([[1, 2], [3]])
        with self.assertRaisesRegex(TypeError, "array or tensor is expected, not str"):
            torch.tensor("text")
        with self.assertRaisesRegex(TypeError, "expected a dtype, got str"):
            torch.tensor(1, dtype="float")
        nested = []
        nested.append(nested)
        with self.assertRaises(ValueError):
            torch.tensor(nested)
        for wrong, error, message in [
            ([torch.ones(2), [1, 2, 3]], ValueError, "length 2 at dim 1 (got 3)"),
            ([[1, 2], torch.ones(3)], ValueError, "length 2 at dim 1 (got 3)"),
            ([[1, 2], torch.ones(2, 2)], ValueError, "a tensor of 1 dimensions at dim 1, not 2"),
            ([3, torch.ones(2)], ValueError, "a tensor of 0 dimensions at dim 1, not 1"),
            ([1, [2]], ValueError, "expected a number, not a sequence, at dim 1"),
            ([[1], 2], TypeError, "expected a sequence of length 1 at dim 1, not int"),
            ([object()], TypeError, "a number, sequence, array or tensor is expected, not object"),
        ]:
            with self.subTest(wrong), self.assertRaisesRegex(error, re.escape(message)):
                torch.tensor(wrong)
        with self.assertRaisesRegex(RuntimeError, "complex number cannot be converted"):
            torch.tensor([1j], dtype=torch.float32)
        with self.assertRaisesRegex(TypeError, "nonsense"):
            torch.tensor(1, nonsense=3)
        self.assertEqual(torch.tensor(np.float32(3)).dtype, torch.float32)
        self.assertEqual(torch.LongTensor([1, 2]).dtype, torch.int64)
        self.assertEqual(torch.FloatTensor(2, 3).shape, (2, 3))
        self.assertEqual(wick.Tensor(2, 3).shape, (2, 3))

    def test_copies(self):
        x = torch.ones(2, requires_grad=True)
        for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            self.assertEqual(other.tolist(), [1, 1])
            self.assertTrue(other.requires_grad)
        self.assertIs(pickle.loads(pickle.dumps(torch.float16)), torch.float16)
        self.assertEqual(pickle.loads(pickle.dumps(torch.device("cpu"))), torch.device("cpu"))
        self.assertEqual(pickle.loads(pickle.dumps(torch.Size([1, 2]))), torch.Size([1, 2]))

    def test_generators(self):
        first = torch.randn(3, generator=torch.Generator().manual_seed(5))
        again = torch.randn(3, generator=torch.Generator().manual_seed(5))
        self.assert_same(first, again)
        torch.manual_seed(1)
        state = torch.get_rng_state()
        first = torch.rand(3)
        torch.set_rng_state(state)
        self.assert_same(torch.rand(3), first)

    @needs_pytorch
    def test_text_is_that_of_pytorch(self):
        import torch as reference

        for make in (
            lambda t: t.arange(5),
            lambda t: t.tensor([[1.5, -2], [1e10, 3]]),
            lambda t: t.zeros(2, 0),
            lambda t: t.ones(2, dtype=t.float64),
            lambda t: t.ones(40, 40),
            lambda t: t.tensor([float("nan"), float("inf"), 1.0]),
            lambda t: t.tensor([True, False]),
            lambda t: t.tensor([1 + 2j]),
            lambda t: t.ones(2, requires_grad=True),
            lambda t: t.ones(2, requires_grad=True) * 2,
            lambda t: t.ones(2).shape,
            lambda t: t.float16,
        ):
            self.assertEqual(repr(make(torch)), repr(make(reference)))


class Process(Case):
    def test_other_threads_run_while_kernels_do(self):
        x = torch.randn(700, 700, dtype=torch.float64)
        self.assertGreater(ticks_while(lambda: torch.linalg.svd(x)), 5)

    def test_many_threads(self):
        failures = []

        def work(seed):
            try:
                for i in range(200):
                    x = torch.full((seed + 1,), float(i))
                    assert (x * 2 + i).sum().item() == 3 * i * (seed + 1)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_keyboard_interrupt_ends_an_operator(self):
        code = (
            "import wick, signal, threading, os, time\n"
            "from wick import torch\n"
            "x = torch.rand(20000000)\n"
            "threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
            "start = time.time()\n"
            "try:\n"
            "    while time.time() - start < 60: torch.sort(x)\n"
            "except KeyboardInterrupt: print('ended')\n"
            "print((torch.ones(2) + 1).tolist())\n"
        )
        done = run(code)
        self.assertEqual(done.stdout.split("\n")[:2], ["ended", "[2.0, 2.0]"], done.stderr)

    def test_objects_that_outlive_the_interpreter(self):
        code = (
            "import wick, sys, numpy as np\n"
            "from wick import torch\n"
            "a = torch.from_numpy(np.ones(3)); b = a.numpy(); c = a.__dlpack__()\n"
            "sys.kept = [a, b, c, torch.Generator(), torch.add, a.add, torch.float32]\n"
            "class Late:\n"
            "    def __del__(self): self.x + 1\n"
            "late = Late(); late.x = a; sys.late = late\n"
        )
        done = run(code)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_leaks(self):
        x = torch.ones(3)
        for _ in range(50):
            x + 1
        gc.collect()
        before = sys.getrefcount(x), sys.getrefcount(torch.float32), sys.getrefcount(None)
        for _ in range(1000):
            x + 1, x.sum(0), x.dtype, x.shape, torch.zeros(2, dtype=torch.float32), x[0], x.T
            try:
                x + object()
            except TypeError:
                pass
        after = sys.getrefcount(x), sys.getrefcount(torch.float32), sys.getrefcount(None)
        for b, a in zip(before, after):
            self.assertLess(abs(a - b), 50)


if __name__ == "__main__":
    unittest.main()
