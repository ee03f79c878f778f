"""Arrays of numpy, alone and beside tensors."""

import numpy as np


def _random(*shape, dtype=np.float64):
    return np.array(torch.randn(*shape).tolist(), dtype=dtype)


@program(lambda: (_random(4, 5),), tolerance=1e-6)
def standardized(a):
    a = (a - a.mean(axis=0)) / (a.std(axis=0) + 1e-6)
    return np.clip(a, -1, 1).astype(np.float32)


@program(lambda: (_random(4, 5, dtype=np.float32), _random(5)), tolerance=1e-6)
def dtypes_that_meet(a, b):
    return a + 1, a + 1.5, a + b, a * np.arange(5), a.sum(), a.sum() * 2.0, a + np.float64(2), (a > 0).sum()


@program([lambda: (_random(4, 5),), lambda: (_random(5, 4).T,), lambda: (_random(8, 5)[::2],)])
def layouts_of_arguments(a):
    return a * 2, a[1], a.T, a.reshape(-1)[3:5] + 1, a.copy()


@program([lambda: (_random(3),), lambda: (_random(3, dtype=np.float32),), lambda: (np.arange(3),), lambda: ([1, 2, 3],)])
def arguments_of_several_kinds(a):
    return a + a, type(a), isinstance(a, np.ndarray)


@program(lambda: (_random(4, 5),))
def views_share_memory(a):
    b = a * 2
    return a[1:], a[1:, ::2], a.T, b, b[0], b[::-1], np.broadcast_to(b[0], (2, 5)), a


@program(lambda: (_random(4, 5),))
def writes_to_own_arrays(a):
    b = np.zeros((4, 5))
    b[1] = a[0]
    b[2:, ::2] += 3
    c = b[0]
    c -= 1
    b[b < -0.5] = 7
    return b, c


@program(lambda: (_random(4, 5),))
def writes_to_an_argument(a):
    b = a * 2
    a[0] = 5
    a += 1
    return b, a * 3


@program(lambda: (lambda a: (a, a[1:]))(_random(4, 5)))
def arguments_share_memory(a, b):
    c = b + 1
    a *= 2
    return c, b + 1


@program(lambda: (np.array([[5, -7], [8, 9]]), np.array([[0, 2], [-3, 0]])), graphs=2, breaks="errstate ends a graph")
def integers_divided_by_zero(a, b):
    a += 1
    with np.errstate(all="ignore"):
        return a // b, a % b, a


@program(lambda: (_random(4, 5), np.array([0, 9])), raises="IndexError", graphs=None, breaks="a subscript may be out of range")
def write_before_a_subscript_that_fails(a, index):
    a += 1
    return a[index]


@program(lambda: (np.broadcast_to(_random(5), (4, 5)),), raises="ValueError", graphs=0, breaks="numpy raises the error")
def write_to_memory_that_must_not_be_written(a):
    a += 1
    return a


@program(lambda: (_random(4, 5),))
def names_of_one_array(a):
    b = a + 1
    c = b
    c += 1
    return b is c, b, c, np.asarray(b) is b, a.T is a, b[0] is b[0]


@program([lambda: (_random(4),), lambda: (_random(4) + 100,), lambda: (_random(4) - 100,)], tolerance=1e-6)
def branch_on_a_number(a):
    if a.sum() > 50:
        return a - a.mean()
    return a * 2


@program(lambda: (_random(6),), tolerance=1e-6)
def numbers_of_elements(a):
    total = a.sum()
    return total, float(total), total.item(), a[2], bool(total > 1000), [each * 2 for each in a[:3]]


@program(lambda: (_random(4, 5, dtype=np.float32),), tolerance=1e-6)
def to_tensors(a):
    x = torch.from_numpy(a)
    y = torch.as_tensor(a * 2)
    return x, y, torch.tensor(a), (x + y).numpy(), x is y


@program(given((4, 5)), tolerance=1e-6)
def from_tensors(x):
    a = x.numpy()
    y = x * 2
    return a, np.asarray(y), y, (y + 1).detach().cpu().numpy()[1:] * a[1:]


@program(lambda: (_random(4, 5, dtype=np.float32), torch.randn(5, 3)), tolerance=1e-6)
def there_and_back(a, w):
    x = torch.from_numpy((a - a.mean()) / a.std())
    return torch.relu(x @ w).numpy().argmax(axis=1)


@program(lambda: (_random(4, 5, dtype=np.float32),), graphs=None, breaks="a tensor is written that has the memory of an argument")
def tensor_writes_to_an_argument(a):
    x = torch.from_numpy(a)
    x.mul_(2)
    return a, a + 1, x


@program(lambda: (_random(4, 5, dtype=np.float32),), graphs=None, breaks="an array and a tensor on its memory are results")
def tensor_writes_to_an_own_array(a):
    b = a + 1
    x = torch.from_numpy(b)
    x += 1
    return b, x


@program(lambda: (_random(4, 5),), raises="ValueError")
def sizes_that_do_not_fit(a):
    return a + np.zeros(3)


@program(lambda: (_random(4, 5),), raises="IndexError", graphs=0, breaks="numpy raises the error")
def item_out_of_range(a):
    return a[7]


@program(lambda: (_random(4, 5),), graphs=None, breaks="numpy raises errors that are caught")
def errors_that_are_caught(a):
    found = []
    for axis in (0, 1, 2, -3):
        try:
            found.append(a.sum(axis=axis))
        except np.AxisError as error:
            found.append(str(error))
    try:
        a.astype(np.int64)[0] += 0.5
    except TypeError as error:
        found.append(type(error).__name__)
    return found


@program(lambda: (np.array([1.0, 0.0]),), graphs=None, breaks="numpy is told to raise errors")
def divisions_that_raise(a):
    with np.errstate(all="ignore"):
        quotient = 1 / a
    try:
        with np.errstate(divide="raise"):
            return 1 / a
    except FloatingPointError as error:
        return quotient, str(error)


@program(lambda: (_random(4, 5),), graphs=None, breaks="elements decide about sizes")
def masks_and_positions(a):
    return a[a > 0], np.nonzero(a > 0), np.where(a > 0, a, 0), np.unique(a > 0)


@program(lambda: (_random(4, 5),), graphs=None, breaks="print")
def printed_between(a):
    b = a.round(1) + 0.5
    print(b[0, 0] > 100, b.shape)
    return b * 2


_kept = np.ones(3)


def _rebind():
    global _kept
    _kept = np.zeros(3)


@program([lambda: (_random(3),)] * 4, between={1: lambda: _kept.fill(2), 2: _rebind})
def array_of_the_module(a):
    return a + _kept


class _Scale:
    def __init__(self):
        self.factor = np.array([1.0, 2.0, 3.0])

    def __call__(self, a):
        self.last = a * self.factor
        return self.last.sum()


_scale = _Scale()


@program(lambda: (_random(3),), check=lambda: _scale.last, tolerance=1e-6)
def arrays_in_attributes(a):
    return _scale(a), _scale.factor


@program(lambda: (_random(3),))
def arrays_in_containers(a):
    pairs = {"a": a, "b": [a * 2, (a + 1,)]}
    pairs["b"].append(a[0])
    return pairs, sorted(pairs), len(a), list(a.shape)


@program(lambda: (_random(2, 3, dtype=np.float16), _random(2, 3) * 1j, np.array(["x"]), np.ma.zeros(3)), graphs=0,
         breaks="tensors have no such arrays")
def arrays_of_other_kinds(h, c, s, m):
    return h + 1, c * 2, s, m + 1
