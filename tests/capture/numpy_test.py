"""Arrays of numpy in captured code: one graph for each expression, and results as plain numpy gives them."""

import re
import unittest
import warnings
from random import Random

try:
    import numpy as np
except ImportError:  # the package works without it
    np = None

import wick
import wick.compiler

# a and b are 4 x 5 of float64, p like them and positive, f and g of float32 (4 x 5 and 5), i and j of int64 and int32, k of int8, u of
# uint8, m of booleans, r a transposed array, s every second row, c 2 x 3 x 4, w a number of float32, z an array without dimensions.
EXPRESSIONS = """
a + b
a - b * 2
a / b
a // p
a % p
a ** 2
a ** 3
p ** 0.5
p ** b
p ** -1
2 ** a
-a
+a
abs(a)
a + 1
a + 1.5
1 - a
1.5 / p
f + 1
f + 1.5
f * 2.5 + 1
f + a
f + i
f + j
f + k
f + np.float32(2)
f + np.float64(2)
f * np.float64(1e300)
f + w
w + 1
w * f.sum()
i + 1
i + 1.5
i / 2
i / i.sum()
i // 3
i % 3
i ** 2
i * j
i + k
j + j
j + 1
j + 100000
j * 1.5
k + 1
k + k
k * 2
k + 1000
k / 2
u + u
u + 1
u - 1
u + 1.5
u * k
m + m
m * a
m & m
m | (a > 0)
m ^ m
~m
~i
~u
-i
-k
i & 3
i | j
i ^ 1
a > b
a >= 0
a == b
a != 0.5
f < 0.1
f == g
i < 2
i <= 1.5
k < 100
k < 1000
u > 3
m == True
2 < a
np.exp(a) + np.exp2(a) + np.expm1(a)
np.log(p) + np.log2(p) + np.log10(p) + np.log1p(p)
np.sqrt(p)
np.sin(a) + np.cos(a) + np.tan(a)
np.arcsin(m - 0.5) + np.arccos(m - 0.5) + np.arctan(a)
np.sinh(a) + np.cosh(a) + np.tanh(a)
np.arcsinh(a) + np.arccosh(p + 1) + np.arctanh(np.tanh(a))
np.floor(a) + np.ceil(a) + np.trunc(a) + np.rint(a)
np.floor(i)
np.deg2rad(a) + np.rad2deg(a) + np.radians(a) + np.degrees(a)
np.exp(f)
np.exp(i)
np.exp(j)
np.sqrt(u * 300.5)
np.square(a) + np.square(i)
np.negative(a) + np.positive(a) + np.absolute(a) + np.fabs(a)
np.sign(a) * np.sign(i)
np.sign(x)
np.isnan(x)
np.isinf(x)
np.isfinite(x)
np.isnan(i)
np.signbit(x)
np.add(a, b) + np.subtract(a, 1) + np.multiply(a, g) + np.divide(a, p)
np.true_divide(i, 2)
np.floor_divide(a, p) + np.remainder(a, p) + np.mod(a, p)
np.maximum(a, b) + np.minimum(a, 0)
np.maximum(x, 0)
np.fmax(x, 0)
np.fmin(x, x)
np.maximum(i, 2)
np.maximum(f, 0)
np.maximum(f, a)
np.arctan2(a, b)
np.hypot(a, b)
np.logaddexp(a, b)
np.copysign(a, b)
np.power(p, 2.5) + np.power(i, 2)
np.greater(a, b)
np.less_equal(a, 0.1)
np.equal(a, b)
np.not_equal(i, j)
np.logical_and(a > 0, b > 0)
np.logical_or(a, i)
np.logical_xor(m, i)
np.logical_not(a)
np.where(m, a, b)
np.where(m, a, 0)
np.where(m, f, 0.0)
np.where(m, f, a)
np.where(a > 0, 1, -1)
np.where(m, i, 1.5)
np.where(i, a, 2)
np.clip(a, -0.5, 0.5)
np.clip(a, None, 0.5)
np.clip(f, 0, 1)
np.clip(i, 1, 3)
np.clip(a, b, None)
a.clip(0, 1)
a.clip(min=0)
np.sum(a)
a.sum()
a.sum(axis=0)
a.sum(0)
a.sum(axis=-1, keepdims=True)
c.sum(axis=(0, 2))
c.sum((0, 1), keepdims=True)
f.sum()
f.sum(dtype=np.float64)
f.sum(axis=1, dtype="float64")
i.sum()
j.sum()
k.sum()
m.sum()
m.sum(axis=0)
k.sum(axis=1)
r.sum(axis=0)
s.sum(axis=0)
np.mean(a)
a.mean(axis=1)
a.mean(axis=(0, 1))
f.mean()
f.mean(axis=0, keepdims=True)
i.mean()
m.mean()
j.mean(axis=0)
np.max(a)
a.max(axis=0)
a.min(axis=1, keepdims=True)
np.amax(a, axis=1) + np.amin(a, 1)
x.max()
i.max()
k.min()
m.max()
c.max(axis=(0, 1))
np.prod(a, axis=0)
p.prod()
i.prod(axis=1)
k.prod()
a.std()
a.std(axis=0)
a.var(axis=1, ddof=1)
np.var(f)
np.std(f, axis=0, keepdims=True)
i.var()
np.any(a > 3)
np.all(m, axis=0)
m.any(axis=1)
m.all()
i.any()
a.all(axis=(0, 1))
np.argmax(a)
a.argmax(axis=1)
a.argmin(0)
i.argmax()
x.argmax(axis=0)
m.argmax()
f.argmin(axis=1)
np.cumsum(a)
a.cumsum(axis=1)
k.cumsum()
np.cumprod(a, axis=0)
m.cumsum(axis=0)
a @ b.T
a.T @ b
a @ g
g @ g
a.dot(b.T)
np.dot(a, b.T)
np.dot(f, g)
np.dot(g, g)
np.dot(a, 2)
np.matmul(f, f.T)
i @ j
i @ i.T
f @ b.T
c @ np.swapaxes(c, 1, 2)
np.outer(g, a[:, 0])
np.einsum("ij,kj->ik", a, b)
np.einsum("ij,ij->", a, b)
np.einsum("bij->bj", c)
a.reshape(5, 4)
a.reshape((2, -1))
a.reshape(-1)
r.reshape(4, 5)
r.reshape(-1)
a.reshape(2, 2, 5) + 1
a.ravel()
r.ravel()
a.flatten()
r.flatten()
a.T
r.T
c.T
c.transpose(2, 0, 1)
c.transpose((1, 0, 2))
np.transpose(c, (2, 1, 0))
np.transpose(a)
a.swapaxes(0, 1)
np.moveaxis(c, 0, -1)
np.rollaxis(c, 2)
np.squeeze(a[None, :, :, None])
a[None].squeeze(0)
np.expand_dims(a, 0)
np.expand_dims(a, (0, 2))
np.broadcast_to(g, (4, 5))
np.broadcast_to(g, (4, 5)) + 1
np.diagonal(a)
a.diagonal()
np.flip(a)
np.flip(a, 1)
np.flipud(a)
np.fliplr(a) * 2
np.rot90(a)
np.atleast_2d(g)
np.atleast_1d(g)
np.atleast_3d(a)
np.asarray(a)
np.asarray(a) + 1
np.ascontiguousarray(a)
np.ascontiguousarray(r)
np.array(a)
np.array(a, dtype=np.float32)
np.array(r)
np.copy(r)
a.copy()
r.copy()
r.copy(order="K")
np.split(a, 2)
np.split(a, [1, 3], axis=1)
np.array_split(a, 3)
np.vsplit(a, 2)[1] + 1
np.concatenate([a, b])
np.concatenate((a, b), axis=1)
np.concatenate([a, b], axis=None)
np.concatenate([a, f])
np.concatenate([i, a])
np.concatenate([i[0], j])
np.concatenate([a])
np.stack([a, b])
np.stack((a, b), axis=-1)
np.stack([a, i], axis=1)
np.vstack([g, a])
np.hstack([a, b])
np.hstack([g, g])
np.zeros(3) + 1
np.zeros((4, 5)) + a
np.ones((4, 5), dtype=np.float32) * f
np.full((2, 3), 7)
np.full(5, 1.5) + g
np.arange(5) + g
np.arange(2, 10, 2)
np.arange(5, dtype=np.float32) * g
np.linspace(0, 1, 5) * a
np.eye(5) @ b.T
np.identity(3)
np.tri(4, 5) * a
np.zeros_like(a) + 1
np.ones_like(i)
np.ones_like(f) * f
np.full_like(a, 2)
np.zeros_like(r)
np.array([1, 2, 3, 4, 5]) + a
np.array([[1.5], [2], [3], [4]]) * i
np.asarray([1.0, 2, 3, 4, 5]) * f
a + [1, 2, 3, 4, 5]
a[0]
a[-1]
a[1, 2]
a[1][2]
a[1:]
a[1:3, ::2]
a[:, 1]
a[..., 0]
a[..., None]
a[None]
a[::-1]
a[:, ::-1] + 1
a[::-2, ::-1]
a[3:1:-1]
a[1:1]
a[1:, 0] + 1
c[0, :, 1]
c[:, 1:, ::3] * 2
r[1]
r[1:, 1:]
s[0] + s[1]
a[[0, 2]]
a[np.array([1, 3, 0])]
a[:, [0, 2]]
a[[0, 1], [2, 3]]
a[u[0] % 4]
a[i % 4][..., 0]
a.astype(np.float32)
a.astype("int64")
a.astype(int)
a.astype(bool)
a.astype(a.dtype)
a.astype(a.dtype, copy=False)
f.astype(np.float64)
i.astype(np.int8)
i.astype(np.float32)
m.astype(int)
m.astype(np.float32)
r.astype(np.float32)
u.astype(np.int8)
np.float32(a.sum())
np.float64(f.sum()) + 1
np.int64(m.sum())
np.ptp(a)
np.ptp(a, axis=0)
np.nansum(x)
np.nansum(x, axis=0)
np.nanmean(x, axis=1)
np.pad(a, 1)
np.pad(a, ((1, 2), (0, 3)), constant_values=2.5)
np.pad(i, (1, 0))
np.linalg.norm(a)
np.linalg.norm(a, axis=1)
np.linalg.inv(a @ a.T + np.eye(4))
np.linalg.solve(a @ a.T + np.eye(4), b)
np.linalg.det(a @ a.T)
np.average(a)
np.average(a, axis=0)
np.add(f, g, dtype=np.float64)
np.tile(a, 2)
np.tile(a, (2, 1))
np.repeat(a, 2)
np.repeat(a, 2, axis=0)
np.roll(a, 1)
np.roll(a, 1, axis=0)
np.diff(a)
np.diff(a, axis=0)
np.take(a, [0, 2], axis=0)
np.take(a, i % 4, axis=1)
np.trace(a)
a.trace()
a.take([3, 1])
a.repeat(3)
np.array([a, b])
np.array([a.sum(), b.sum()])
np.array([1, a[0, 0]])
np.asarray(f, dtype=np.float64)
np.column_stack([g, g])
np.gradient(g)
np.trapz(g)
np.triu(a) + np.tril(a)
np.sinc(a)
np.count_nonzero(a > 0, axis=0)
np.array_equal(a, b)
g[g.argmax()]
a.conj()
a.real
a.mean().item()
float(a.sum())
int(i.sum())
np.round(a, 2)
np.around(a)
a.round(1)
a.round()
np.sort(a)
np.sort(a, axis=0)
a.shape
(a.shape[0], a.ndim, a.size, a.itemsize, a.nbytes, a.strides)
a.dtype
a.dtype == np.float64
(a + f).dtype
len(a)
np.add.reduce(a)
np.maximum.reduce(a, axis=1, keepdims=True)
a if isinstance(a, np.ndarray) else None
a.sum() + 1
a.sum() * 2.0
a.sum() / a.size
f.sum() * 2.0
f.sum() + f.sum()
i.sum() + 1
i.sum() / 2
a.mean() * a
f.mean() * f
f - f.mean()
(a - a.mean(axis=0)) / a.std(axis=0)
(f - f.mean(axis=0, keepdims=True)) / (f.std(axis=0, keepdims=True) + 1e-5)
np.exp(a - a.max(axis=1, keepdims=True)) / np.exp(a - a.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
np.sqrt(np.sum(a ** 2))
1 / (1 + np.exp(-a))
np.sqrt(a.sum() ** 2)
z + 1
z + a
z * 2
z.sum()
np.maximum(z, a)
np.pi * a
a * np.e + np.inf
(a, b, a + b)
[a + 1, a[0], a.sum()]
{"x": a * 2, "y": a.T}
[row * 2 for row in a]
sum(a[0])
[x for x in a[0]]
tuple(a + 1)
max(3, 2) * a
np.float32(3) * 2
np.sqrt(2.0) * a
np.float64(2) + np.float32(1)
np.dtype("float32")
np.zeros(3, dtype=a.dtype)
np.zeros(a.shape) + a
np.arange(a.shape[1]) * g
np.result_type(np.float32, np.int64)
np.finfo(np.float32).eps * a
""".strip().splitlines()

# Each of them is a function body on the same names.
BODIES = r"""
a2 = a * 2; a2 += 1; return a2
a2 = a * 2; a2[0] = 5; return a2
a2 = a * 2; a2[1:, ::2] = 0; return a2
a2 = a * 2; a2[a2 > 0] = 0; return a2
a2 = a * 2; a2[0] = a[1]; a2[:, 1] += 3; return a2
a2 = a * 2; v = a2[1:]; v += 1; return a2, v
a2 = a * 2; v = a2.T; v[0] = 7; return a2
a2 = a * 2; a2[1:] = a2[:-1]; return a2
a2 = a * 2; a2[...] = f; return a2
a2 = a * 2; a2 -= f; a2 *= 2; a2 /= 3; return a2
a2 = f * 2; a2 += a; return a2
a2 = f * 2; a2[0] = 1.1; a2[1] = a[0]; return a2
a2 = i * 2; a2 //= 3; a2 += j; a2[0] = 1.9; return a2
a2 = np.zeros((4, 5)); a2[1] = g; a2[2] = a[0]; return a2
a2 = np.empty((4, 5)); a2[:] = a; return a2
a2 = np.zeros(3); b2 = a2; b2 += 1; return a2, b2, a2 is b2
a2 = a + 1; x2 = a2[0, 0]; a2[0, 0] = 9; return a2, x2
a2 = a + 1; r2 = a2.reshape(-1); r2[3] = 8; return r2, a2
a2 = a + 1; l = [a2, a2[0], a2.reshape(2, 10)]; return l
t = a.sum(); t += 1; return t, a.sum()
t = a.sum(); t2 = t; t2 *= 2; return t, t2
y = a\nfor n in range(3): y = y * n + 1\nreturn y
if a.sum() > 1000: return a * 2\nreturn a * 3
if (a > -1000).all(): y = a + 1\nelse: y = a - 1\nreturn y + 2
return a.sum() if m.any() else a.mean()
def norm(v): return np.sqrt((v ** 2).sum())\nreturn a / norm(a)
return (lambda v: v.max() - v.min())(a)
a += 1; return a * 2
a[0] = 5; v = a[1:]; v *= 2; return a.sum(), v
b[:] = a; b -= f; return b, a
i //= 2; i[0] = i[1]; return i
r[1] = 0; r += r[0]; return r.T
s[:, 1:] = f[:, 1:]; return s
f[f < 0] = 0; return f, f.sum(axis=0)
z += 1; return z
""".strip().splitlines()

# Conversions between arrays and tensors, with t as a module of tensors and x as a tensor of it.
CONVERSIONS = """
t.from_numpy(a) * 2
t.from_numpy(a)
t.from_numpy(f).sum()
t.as_tensor(f) + x
t.as_tensor(f)
t.tensor(a)
t.tensor(f) @ x.t()
t.tensor(f, dtype=t.float64)
t.from_numpy(f + 1) * 2
t.from_numpy(f * 2)
t.from_numpy(f[1:])
(t.from_numpy(f) + x).numpy()
x.numpy()
x.detach().numpy()
x.detach().cpu().numpy()
(x * 2).numpy() + 1
np.asarray(x * 2)
np.asarray(x) + 1
((x * 2).numpy() + f, x + 1)
t.from_numpy((x * 2).numpy() * f)
x.numpy()[1:] * 2
(x * 2).numpy()[1:]
t.relu(t.from_numpy(f)).numpy().sum(axis=0)
t.from_numpy(f).numpy()
t.from_numpy(f[:, 1]) + 1
(t.from_numpy(i) + 1).numpy()
""".strip().splitlines()

BREAKS = """
a.tolist()
a[a > 0]
np.nonzero(a)
np.isclose(a, b)
np.unique(i)
np.random.rand(5) + a
a.astype(np.float16) + 1
a.astype(complex)
np.where(m)
a.view(np.int64)
np.argsort(a)
np.add(a, b, out=a)
np.multiply.reduce(a)
a.sum(where=m)
a.item(3)
a.fill(2)
a.flags.owndata
a.base
bytes(a)
f * f.astype(np.float64).sum()
""".strip().splitlines()


# Statements on an array P, another one Q, and a tensor T, for random functions.
COMPUTED = """P * 2|P + 1.5|P - Q.sum()|np.maximum(P, 0)|P.copy()|np.abs(P)|P.astype(np.float32)|P.astype(P.dtype, copy=False)
np.zeros_like(P)|np.where(P > 0, P, -1)|np.concatenate([P, P])|np.stack([P, P * 2])|P / 3|-P|np.array(P)|np.asarray(P)|P > 0
P + P.mean(axis=0)|P[1:]|P[::2]|P[::-1]|P[..., 0]|P[..., 1:3]|P.T|P[0]|P.reshape(-1)|P.ravel()|P[None]|P[..., ::-1]
np.squeeze(P)|np.expand_dims(P, 0)|np.swapaxes(P, 0, -1)|P.reshape(2, -1)|np.flip(P)|np.broadcast_to(P, (2,) + P.shape)
P[:1]|np.split(P, 2)[1]|np.moveaxis(P, 0, -1)|T.numpy()""".replace("\n", "|").split("|")
WRITTEN = """P[0] = 3|P[1:] += 1|P *= 2|P[..., 0] = 5|P -= 1|P[...] = Q[...]|P[P > 1] = 0|P[-1] = P[0]|P[::2] = 1|P += Q
P[1:] = P[:-1]|T.add_(1)|T[0] = 2""".replace("\n", "|").split("|")
TENSORS = "t.from_numpy(P)|t.as_tensor(P)|t.tensor(P)|T * 2|T[1:]|T.reshape(-1)|T.clone()".split("|")


def random_body(random):
    """The body of a function of arrays a, f, i, r, s and a tensor x, which returns most of its variables."""
    names, tensors, lines = ["a", "f", "i", "r", "s"], ["x"], []

    def filled(statements):
        text = random.choice(statements)
        for letter, known in (("P", names), ("Q", names), ("T", tensors)):
            text = re.sub(rf"(?<!\.)\b{letter}\b", random.choice(known[-6:]), text)
        return text

    for number in range(random.randint(2, 8)):
        kind = random.random()
        if kind < 0.2:
            lines.append(filled(WRITTEN))
        elif kind < 0.35:
            lines.append(f"v{number} = {filled(TENSORS)}")
            tensors.append(f"v{number}")
        else:
            lines.append(f"v{number} = {filled(COMPUTED)}")
            names.append(f"v{number}")
    returned = [name for name in names + tensors if random.random() < 0.7]
    return "\n".join(lines) + f"\nreturn [{', '.join(returned)}]"


def arrays():
    random = np.random.RandomState(3)
    a, b = random.randn(4, 5), random.randn(4, 5)
    f = random.randn(4, 5).astype(np.float32)
    x = a.copy()
    x[0, 1], x[1, 2], x[2, 0], x[3, 3] = np.nan, np.inf, -np.inf, 0.0
    return {
        "a": a, "b": b, "p": np.abs(b) + 0.1, "f": f, "g": random.randn(5).astype(np.float32), "x": x,
        "i": random.randint(0, 5, (4, 5)), "j": random.randint(0, 5, 5).astype(np.int32),
        "k": random.randint(-9, 9, (4, 5)).astype(np.int8), "u": random.randint(0, 9, (4, 5)).astype(np.uint8),
        "m": random.rand(4, 5) > 0.5, "r": random.randn(5, 4).T, "s": random.randn(8, 5)[::2],
        "c": random.randn(2, 3, 4), "w": np.float32(1.5), "z": np.array(2.5),
    }


def function_of(body, names):
    """The function of the names with this body."""
    lines = body.replace("; ", "\n").replace("\\n", "\n").split("\n")
    text = f"def f({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in lines)
    made = {"np": np}
    exec(compile(text, f"<{body}>", "exec"), made)
    return made["f"]


def memory_of(array):
    """The first and the last byte of an array's memory."""
    return np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)


class Facts:
    """Everything that a program may ask of results, beside the elements."""

    def __init__(self, given):
        self.given, self.met = given, []

    def of(self, value):
        if isinstance(value, (list, tuple)):
            return type(value).__name__, [self.of(each) for each in value]
        if isinstance(value, dict):
            return {key: self.of(each) for key, each in value.items()}
        if isinstance(value, np.ndarray):
            shared = [name for name, other in self.given.items()
                      if isinstance(other, np.ndarray) and value.size and np.shares_memory(value, other)]
            same = [value is other for other in self.met], [value is other for other in self.given.values()]
            among = [value.size and np.shares_memory(value, other) for other in self.met]
            self.met.append(value)
            return ("array", type(value), value.dtype, value.dtype.char, value.shape, value.strides, shared, same, among,
                    value.flags.writeable, value.flags.owndata, value.base is None)
        if isinstance(value, np.generic):
            return "number", type(value), value.dtype.char
        if hasattr(value, "numpy"):
            return "tensor", type(value), str(value.dtype), tuple(value.shape), \
                tuple(s for s, n in zip(value.stride(), value.shape) if n > 1)
        return value


def elements_of(value):
    if isinstance(value, (list, tuple)):
        return [one for each in value for one in elements_of(each)]
    if isinstance(value, dict):
        return [one for each in value.values() for one in elements_of(each)]
    if isinstance(value, np.ndarray) or hasattr(value, "numpy"):
        return [np.asarray(value)]
    return [np.asarray(value)] if isinstance(value, np.generic) else []


def difference(expected, found, tolerance=0.0):
    """A text that tells where results differ, or None."""
    for one, other in zip(elements_of(expected), elements_of(found)):
        if not np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"expected\n{one}\nfound\n{other}"
        if one.dtype.kind == "f" and not np.array_equal(np.signbit(one[one == 0]), np.signbit(other[one == 0])):
            return f"signs of zeros: expected\n{one}\nfound\n{other}"
    return None


@unittest.skipIf(np is None, "numpy is not installed")
class NumpyTest(unittest.TestCase):
    def setUp(self):
        np.seterr(all="ignore")
        warnings.simplefilter("ignore")

    def check(self, body, given, graphs=1):
        names = list(given)
        plain, compiled = function_of(body, names), wick.compile(function_of(body, names))
        explained = wick.compiler.explain(function_of(body, names))(*arrays_again(given))
        reasons = explained.break_reasons
        self.assertEqual(explained.graph_break_count, 0, reasons)
        self.assertLessEqual(explained.graph_count, graphs)
        for _ in range(3):
            first, second = arrays_again(given), arrays_again(given)
            expected, found = plain(*first), compiled(*second)
            self.assertEqual(Facts(dict(zip(names, first))).of(expected), Facts(dict(zip(names, second))).of(found))
            # Numbers of float32 round as such.
            tolerance = 1e-5 if re.search(r"\b[fgwtx]\b|float32", body) else 1e-11
            self.assertIsNone(difference(expected, found, tolerance))
            self.assertIsNone(difference(first, second))

    def test_expressions(self):
        given = arrays()
        for each in EXPRESSIONS:
            with self.subTest(each):
                self.check("return " + each, given)

    def test_bodies(self):
        given = arrays()
        for each in BODIES:
            with self.subTest(each):
                self.check(each, given)

    def test_conversions(self):
        for library in libraries():
            given = arrays() | {"t": library, "x": library.ones(4, 5) / 3}
            for each in CONVERSIONS:
                with self.subTest(each, library=library.__name__):
                    self.check("return " + each, given)

    def outcome(self, function, given):
        """The facts about a call, its result, and the arguments afterwards."""
        args = arrays_again(given)
        try:
            result = function(*args)
        except Exception as error:
            return type(error), None, args
        return Facts(dict(zip(given, args))).of(result), result, args

    def test_random_functions(self):
        random = Random(7)
        for library in libraries():
            given = {name: array for name, array in arrays().items() if name in "afirs"}
            given |= {"x": library.ones(4, 5) / 3, "t": library}
            for number in range(150):
                body = random_body(random)
                with self.subTest(number, body=body, library=library.__name__):
                    plain, compiled = function_of(body, given), wick.compile(function_of(body, given))
                    for _ in range(3):
                        expected, found = self.outcome(plain, given), self.outcome(compiled, given)
                        self.assertEqual(expected[0], found[0])
                        self.assertIsNone(difference(expected[1:], found[1:], 1e-5))

    def test_breaks(self):
        given = arrays()
        for each in BREAKS:
            with self.subTest(each):
                explained = wick.compiler.explain(function_of("return " + each, given))(*arrays_again(given))
                self.assertTrue(explained.break_reasons or explained.graph_count == 0)
                self.assertGreaterEqual(explained.graph_break_count, 1)


def libraries():
    from wick import torch as own

    try:
        import torch
    except ImportError:
        return [own]
    return [own, torch]


def arrays_again(given):
    """Copies of the arguments, with the same layouts."""
    made = []
    for each in given.values():
        if isinstance(each, np.ndarray):
            base = each if each.base is None else each.base
            copied = base.copy(order="K")
            if base is not each:
                offset = each.__array_interface__["data"][0] - base.__array_interface__["data"][0]
                copied = np.ndarray(each.shape, each.dtype, copied, offset, each.strides)
            made.append(copied)
        else:
            made.append(each.clone() if hasattr(each, "numpy") else each)
    return made


if __name__ == "__main__":
    unittest.main()
