"""Subscripts, against numpy's."""

import random
import unittest

import numpy as np
from testing import Case, needs_pytorch
from wick import torch


def both(*shape):
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    return torch.from_numpy(array.copy()), array


SUBSCRIPTS = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, 2),
    slice(-2, 100),
    slice(5, 1),
    None,
    Ellipsis,
    (0, 1),
    (slice(None), 1),
    (Ellipsis, 0),
    (0, Ellipsis, None),
    (None, slice(1, 2), None, 0),
    [0, 1, 1],
    ([0, 1], [1, 0]),
    (slice(None), [2, 0]),
    ([0, 1], slice(None), [1, 2]),
    True,
    False,
    (True, 0),
    (),
    np.int64(1),
    np.array([1, 0]),
]


class Getting(Case):
    def test_forms(self):
        x, array = both(2, 3, 4)
        for subscript in SUBSCRIPTS:
            with self.subTest(subscript):
                self.assert_same(x[subscript], array[subscript])

    def test_tensors(self):
        x, array = both(3, 4)
        mask = array % 3 == 0
        self.assert_same(x[torch.from_numpy(mask)], array[mask])
        self.assert_same(x[x % 3 == 0], array[mask])
        self.assert_same(x[torch.tensor([2, 0]), torch.tensor(1)], array[[2, 0], 1])
        self.assert_same(x[torch.tensor(1)], array[1])
        self.assert_same(x[:, mask[0]], array[:, mask[0]])
        y, other = both(2, 3, 4)
        self.assert_same(y[torch.tensor([[True, False, True], [False, True, True]]), 1:3],
                         other[np.array([[True, False, True], [False, True, True]]), 1:3])

    def test_views(self):
        x, _ = both(2, 3)
        row = x[1]
        row[0] = 50
        self.assertEqual(x[1, 0].item(), 50)
        self.assertEqual(x[..., 1].stride(), (3,))

    def test_refusals(self):
        x, _ = both(2, 3)
        for subscript, error, message in [
            (2, IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
            (-3, IndexError, "index -3 is out of bounds"),
            ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
            ("a", IndexError, "only integers, slices .* are valid indices .got str"),
            (1.5, IndexError, "got float"),
            (slice(None, None, -1), ValueError, "step must be greater than zero"),
            (slice(None, None, 0), ValueError, "step must be greater than zero"),
            (object(), IndexError, "got object"),
            (slice(object()), TypeError, "cannot be interpreted as an integer"),
        ]:
            with self.subTest(subscript), self.assertRaisesRegex(error, message):
                x[subscript]
        with self.assertRaisesRegex(Exception, "out of bounds"):
            x[torch.tensor([5])]
        with self.assertRaisesRegex(IndexError, "invalid index of a 0-dim tensor"):
            torch.tensor(1)[0]
        with self.assertRaisesRegex(TypeError, "elements of a tensor cannot be deleted"):
            del x[0]
        with self.assertRaisesRegex(TypeError, "a number or tensor to assign, got wick.dtype"):
            x[0] = torch.float32


class Setting(Case):
    def test_forms(self):
        for subscript in SUBSCRIPTS:
            x, array = both(2, 3, 4)
            with self.subTest(subscript):
                x[subscript] = -1
                array[subscript] = -1
                self.assert_same(x, array)

    def test_values(self):
        x, array = both(3, 4)
        for subscript, value in [
            (0, [1, 2, 3, 4]),
            (slice(1), [[9, 9, 9, 9]]),
            ((slice(None), 1), [5, 6, 7]),
            ([0, 2], [[1], [2]]),
            (array > 5, 0),
            (1, np.array([7, 7, 7, 7])),
        ]:
            x[subscript] = value if not isinstance(value, list) else torch.tensor(value)
            array[subscript] = value
            self.assert_same(x, array)
        x[0] = torch.zeros(1, 4, dtype=torch.int64)
        self.assertEqual(x[0].tolist(), [0, 0, 0, 0])
        x[0, 0] = 2.9
        self.assertEqual(x[0, 0].item(), 2)
        with self.assertRaises(RuntimeError):
            x[0] = torch.ones(3)

    def test_gradients(self):
        x = torch.ones(3, requires_grad=True)
        y = torch.zeros(3)
        y[1:] = x[:2] * 3
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [3, 3, 0])

    def test_a_boolean_alone(self):
        x = torch.zeros(2, dtype=torch.int64)
        x[False] = torch.ones(5)
        self.assertEqual(x.tolist(), [0, 0])
        x[True] = torch.tensor([1.5, 2.5])
        self.assertEqual(x.tolist(), [1, 2])
        x[True] = True
        self.assertEqual(x.tolist(), [1, 1])


@needs_pytorch
class AgainstPyTorch(Case):
    def random_subscript(self, rng, shape, torch_module):
        parts, used = [], 0
        ellipsis = False
        while used < len(shape) and rng.random() < 0.85:
            n = shape[used]
            kind = rng.randrange(7)
            if kind == 0:
                parts.append(rng.randrange(-n, n))
                used += 1
            elif kind == 1:
                parts.append(slice(rng.choice([None, rng.randrange(-4, 5)]),
                                   rng.choice([None, rng.randrange(-4, 5)]),
                                   rng.choice([None, 1, 2, 3])))
                used += 1
            elif kind == 2:
                parts.append(None)
            elif kind == 3 and not ellipsis:
                parts.append(Ellipsis)
                ellipsis = True
                break
            elif kind == 4:
                parts.append([rng.randrange(-n, n) for _ in range(2)])
                used += 1
            elif kind == 5:
                parts.append(("tensor", [rng.randrange(-n, n) for _ in range(2)]))
                used += 1
            elif kind == 6:
                parts.append(rng.random() < 0.7)
        return parts

    def test_random(self):
        import torch as reference

        rng = random.Random(7)
        for _ in range(1500):
            shape = [rng.randrange(1, 4) for _ in range(rng.randrange(1, 4))]
            parts = self.random_subscript(rng, shape, torch)
            results = []
            for module in (torch, reference):
                x = module.arange(int(np.prod(shape))).view(shape)
                subscript = tuple(module.tensor(p[1]) if isinstance(p, tuple) else p for p in parts)
                try:
                    read = x[subscript].numpy().copy()
                    x[subscript] = -1
                    results.append((read, x.numpy()))
                except Exception as error:
                    results.append(type(error))
            with self.subTest(shape=shape, parts=parts):
                if isinstance(results[1], type):
                    self.assertIsInstance(results[0], type)
                else:
                    self.assert_same(results[0], results[1])



class OutOfRange(Case):
    def test_class_of_the_error(self):
        x, far = torch.arange(5), torch.tensor([9])
        for call in (
            lambda: x[far],
            lambda: x.__setitem__(far, 1),
            lambda: torch.index_select(x, 0, far),
            lambda: torch.take(x, far),
            lambda: x.put_(far, torch.tensor([1])),
            lambda: x.index_fill_(0, far, 1),
            lambda: torch.nn.functional.embedding(far, torch.randn(3, 2)),
        ):
            with self.assertRaises(IndexError):
                call()
        with self.assertRaises(RuntimeError):  # as in PyTorch
            torch.gather(x, 0, far)


if __name__ == "__main__":
    unittest.main()
