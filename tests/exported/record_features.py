"""Programs that show what exported programs can hold: kinds of arguments, inputs and outputs, higher-order operators, dynamic
sizes, aliases, several models, dtypes."""
import collections
import dataclasses
import io
import json
import tempfile
import typing
import zipfile

import torch
import torch.nn.functional as F
from torch.export import Dim


@dataclasses.dataclass
class Feature:
    name: str
    module: torch.nn.Module
    calls: list
    dynamic: typing.Any = None
    forms: tuple = ("training", "decomposed")
    stateful: bool = False
    tolerance: float = 1e-4

    def record(self, recorder, record, saved, plain):
        record(recorder, self)


@dataclasses.dataclass
class Made:
    """A package that `make` writes, which gives its bytes and the content of io.pt."""
    name: str
    make: typing.Callable

    def record(self, recorder, record, saved, plain):
        try:
            torch.manual_seed(0)
            package, content = self.make(saved, plain)
            recorder.add(self.name, package, content)
        except Exception as e:
            recorder.failed.append((self.name, f"{type(e).__name__}: {str(e)[:200]}"))


class Plain(torch.nn.Module):
    """A module of a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


FEATURES = []


class With(typing.NamedTuple):
    """A call with keyword arguments."""
    args: tuple
    kwargs: dict


def feature(*calls, dynamic=None, **options):
    """Marks a function or a class of modules as a program, with the arguments of its calls."""
    def mark(made):
        def build():
            torch.manual_seed(0)
            is_class = isinstance(made, type)
            module = made() if is_class else Plain(made)
            shapes = dynamic if is_class or dynamic is None else (dynamic,)
            return Feature(made.__name__, module, [tuple(c) if isinstance(c, With) else (c, {}) for c in calls], shapes, **options)
        FEATURES.append(build)
        return made
    return mark


def t(*sizes, seed=0, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(*sizes, generator=g, dtype=dtype)
    return torch.randint(0, 5, sizes, generator=g).to(dtype)


# Arguments and results in trees.
@feature(({"a": t(2), "b": t(2, seed=1)},), ({"b": t(2), "a": t(2)},), ({"a": t(2)},))
def dict_argument(d):
    return {"sum": d["a"] + d["b"], "parts": [d["a"], d["b"]]}


@feature(([t(2), t(3)], (t(2), (t(1),))))
def lists_and_tuples(x, y):
    return (x[0] * y[0], [x[1] + y[1][0]], {})


@feature(With((t(2),), {"scale": t(2, seed=3), "flag": True}), With((t(2),), {"scale": t(2), "flag": False}))
def keyword_arguments(x, *, scale, flag):
    return x * scale if flag else x


@feature((t(2), 3, 2.5, "left", True, None), (t(2), 4, 2.5, "left", True, None), (t(2), 3, 2.5, "right", True, None))
def constants(x, n, f, text, flag, nothing):
    x = x * n + f
    return x if flag and nothing is None and text == "left" else -x


@feature((t(2), [t(1), 3, {"k": t(1)}]))
def mixed_list(x, things):
    return x + things[0] * things[1] + things[2]["k"]


@feature((t(2),))
def mixed_results(x):
    return {"x": x, "n": 3, "none": None, "list": [x, x + 1], "text": "t", "f": 0.5, "nested": {"y": x * 2}}


@feature((t(2),))
def nothing_but_none(x):
    return None


@feature((t(2),))
def argument_comes_back(x):
    return x, x + 1


@feature((t(2), {3: t(2, seed=1), 1: t(2, seed=2)}))
def integer_keys(x, d):
    return {7: x + d[3], 8: d[1]}


Point = collections.namedtuple("Point", ["x", "y"])
torch.utils._pytree._register_namedtuple(Point, serialized_type_name="record_features.Point")


@feature((Point(t(2), t(2, seed=1)),))
def named_tuples(p):
    return Point(p.y, p.x + 1)


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    loss: typing.Optional[torch.Tensor] = None
    hidden: typing.Optional[torch.Tensor] = None


torch.export.register_dataclass(Output, serialized_type_name="record_features.Output")


@feature((t(2, 3),))
def dataclass_result(x):
    return Output(logits=x * 2, hidden=x)


@feature((collections.OrderedDict(b=t(2), a=t(2, seed=1)),))
def ordered_dicts(d):
    return collections.OrderedDict(z=d["a"], y=d["b"])


# Kinds of arguments of operators.
@feature((t(2, 3),))
def many_arguments(x):
    y = torch.full([2, 3], 2.5, dtype=torch.float64, device="cpu")
    z = x.to(torch.float16, memory_format=torch.preserve_format)
    w = torch.zeros([2, 3], dtype=torch.bfloat16, layout=torch.strided)
    return y + x, z, w, torch.cat([x, x], -1), x.sum([0, 1]), torch.clamp(x, -0.5, 0.5), torch.clamp(x, max=0.1)


@feature((t(2, 3, 4, 4),))
def memory_formats(x):
    y = x.contiguous(memory_format=torch.channels_last)
    return y * 2, torch.empty_like(y, memory_format=torch.contiguous_format).fill_(1)


@feature((t(3, 4), torch.tensor([0, 2])))
def optional_tensors(x, i):
    return x[:, i], x[i], x[i, i], x[None, i]


@feature((t(6),))
def lists_of_results(x):
    a, b, c = torch.split(x, [1, 2, 3])
    values, indices = torch.topk(x, 2)
    p, q = x.chunk(2)
    return a, c, indices, values, p + q, torch.unbind(x.view(2, 3))[1]


@feature((t(3, dtype=torch.complex64),))
def complex_numbers(x):
    return x * (1 + 2j), x.real, torch.view_as_real(x), x.abs()


@feature((t(3),))
def infinities(x):
    return torch.full([2], float("inf")), x.clamp(min=float("-inf")), torch.where(x > 0, float("nan"), x)


@feature((torch.tensor([True, False]), torch.tensor([1, 2])))
def other_dtypes(b, i):
    return ~b, b & (i > 1), i // 2, i / 2, i.to(torch.int8), torch.full([2], True), torch.scalar_tensor(3)


@feature((t(2, 3),))
def strings(x):
    return F.gelu(x, approximate="tanh"), torch.div(x, 0.3, rounding_mode="floor"), torch.einsum("ij,kj->ik", x, x)


# State.
@feature((t(2, 3),), (t(2, 3, seed=4),), stateful=True)
class buffers_change(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("hidden", torch.ones(3), persistent=False)
        self.weight = torch.nn.Parameter(t(3))

    def forward(self, x):
        self.steps += 1
        self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
        self.hidden.copy_(x[0])
        return (x - self.mean) * self.weight + self.hidden


@feature((t(2), t(2, seed=1)),)
def input_is_written(x, y):
    x.add_(y)
    return x * 2


@feature((t(4, 3),), (t(4, 3, seed=1),), stateful=True)
class batch_norm_trains(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)

    def forward(self, x):
        return self.norm(x)


@feature((t(2, 3),), stateful=True)
class shared_weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 3)
        self.b = torch.nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("part", self.a.bias.detach()[1:])

    def forward(self, x):
        return self.b(self.a(x)) + self.part.sum()


@feature((t(3),))
class constants_in_code(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(3.0)
        self.deep = torch.nn.ModuleDict({"key": torch.nn.ParameterList([torch.nn.Parameter(t(3))])})

    def forward(self, x):
        return x + self.table + torch.tensor([1.0, 2.0, 3.0]) + self.deep["key"][0]


@feature((t(1, 1, 8, 8),))
class convolutions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3, padding="same"), torch.nn.BatchNorm2d(3), torch.nn.ReLU(),
                                       torch.nn.MaxPool2d(2), torch.nn.ConvTranspose2d(3, 2, 2, 2), torch.nn.Flatten(), torch.nn.Dropout(0.5),
                                       torch.nn.Linear(128, 4), torch.nn.Softmax(-1)).eval()

    def forward(self, x):
        return self.net(x)


@feature((t(2, 5, 8), torch.zeros(1, 2, 8)))
class recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRU(8, 8, batch_first=True)
        self.lstm = torch.nn.LSTM(8, 8)

    def forward(self, x, h):
        y, h = self.gru(x, h)
        z, (a, b) = self.lstm(y)
        return z, h, a + b


@feature((t(2, 6, 16),))
class transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0).eval()

    def forward(self, x):
        return self.layer(x)


@feature((t(1, 2, 4, 8), t(1, 2, 4, 8, seed=1), t(1, 2, 4, 8, seed=2)))
def attention(q, k, v):
    mask = torch.ones(4, 4, dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, is_causal=True), F.scaled_dot_product_attention(q, k, v, mask, scale=0.3)


# Sizes.
BATCH = Dim("batch", min=2, max=16)


@feature((t(4, 3),), (t(1, 3),), (t(16, 3),), (t(17, 3),), (t(4, 2),), dynamic=({0: BATCH},))
def dynamic_batch(x):
    return x.view(x.shape[0] * 3), torch.zeros(x.shape[0] + 1, x.shape[0] * 2), x.shape[0]


@feature((t(4), t(4, seed=1)), (t(5), t(5)), (t(5), t(6)), dynamic=({0: BATCH}, {0: BATCH}))
def equal_sizes(x, y):
    return x + y


HALF = Dim("half", min=3, max=8)


@feature((t(8), t(4)), (t(10), t(5)), (t(11), t(5)), (t(4), t(2)), dynamic=({0: 2 * HALF}, {0: HALF}))
def derived_sizes(x, y):
    return x.view(-1, 2).sum(1) + y


@feature((t(6, 4),), (t(3, 8),), (t(7, 3),), dynamic=({0: Dim.AUTO, 1: Dim.AUTO},))
def arithmetic_of_sizes(x):
    n, m = x.shape
    a = torch.ones(n * m - 1, max(n, 3), min(m, 3))
    return a, x.reshape(-1), torch.arange(n + m), x.new_zeros(n % 4 + 1, int(m ** 0.5)), x.mean() / (n / m), (n * m) // 5


@feature((torch.tensor([0.5, -1.0, 2.0]),), (torch.tensor([-0.5, -1.0, 2.0]),), (torch.tensor([-0.5, -1.0, -2.0]),))
def sizes_from_elements(x):
    kept = x[x > 0]
    torch._check(kept.shape[0] <= 3)
    return kept * 2, torch.nonzero(x)


@feature((torch.tensor([3, 1]),), (torch.tensor([2, 7]),), (torch.tensor([9, 7]),))
def numbers_from_elements(x):
    n = x[0].item()
    torch._check(n >= 0)
    torch._check(n < 8)
    return torch.ones(n, 2), x * n, torch.arange(n)


@feature((t(3), 4), (t(3), 5), dynamic=(None, Dim.DYNAMIC))
def dynamic_int(x, n):
    return x * n, torch.zeros(n)


@feature((t(1), 3_000_000_000), (t(1), 2_999_999_998), dynamic=(None, Dim.DYNAMIC))
def large_sizes(x, n):
    y = x.expand(n, 1000)
    return y.shape[0] + 1, y[:2, -2:], y.numel() // 7, n * 2, y.stride(0)


# Higher-order operators.
@feature((t(3), torch.tensor(True)), (t(3), torch.tensor(False)))
def conditions(x, p):
    def yes(x):
        return x.sin() + 1

    def no(x):
        return x.cos() - 1
    return torch.cond(p, yes, no, (x,))


@feature((t(3),), (-t(3).abs() - 1,))
class conditions_with_weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(3, 3)
        self.b = torch.nn.Linear(3, 3)

    def forward(self, x):
        def yes(x):
            return self.a(x), x.clone()

        def no(x):
            return self.b(x), x * 2
        y, z = torch.cond(x.sum() > 0, yes, no, (x,))
        return y + z


@feature((t(3),), (-t(3).abs() - 1,), (t(3).abs() * 5,))
def nested_conditions(x):
    def inner_yes(y):
        return y * 3

    def inner_no(y):
        return y * 5

    def yes(y):
        return torch.cond(y.max() > 1, inner_yes, inner_no, (y,))

    def no(y):
        return -y
    return torch.cond(x.sum() > 0, yes, no, (x,))


@feature((t(4),), (t(9),), dynamic=({0: Dim("n", min=2, max=20)},))
def condition_on_sizes(x):
    return torch.cond(x.shape[0] > 5, lambda x: x + 1, lambda x: x - 1, (x,))


@feature((torch.tensor(0), t(3)), (torch.tensor(5), t(3)))
def while_loops(i, x):
    from torch._higher_order_ops.while_loop import while_loop
    return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2 + i), (i, x))


@feature((t(3),))
class while_loop_with_weights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop
        return while_loop(lambda i, x: (i < 3) & (x.sum() < 100), lambda i, x: (i + 1, self.linear(x) + x), (torch.tensor(0), x))[1]


@feature((t(4, 3), t(3)))
def maps(xs, y):
    from torch._higher_order_ops.map import map as mapped
    return mapped(lambda x, y: x * y + 1, xs, y)


@feature((t(4, 3), t(3)))
def scans(xs, init):
    from torch._higher_order_ops.scan import scan
    return scan(lambda c, x: (c * 0.5 + x, (c + x).sin()), init, xs, dim=0)


@feature((t(4, 3), t(3)))
def scans_backwards(xs, init):
    from torch._higher_order_ops.scan import scan
    return scan(lambda c, x: (c * 0.5 + x, c * 1.0), init, xs, dim=0, reverse=True)


@feature((t(5, 3),), forms=("decomposed",))
def associative_scans(xs):
    from torch._higher_order_ops.associative_scan import associative_scan
    return associative_scan(lambda a, b: a + b, xs, 0, combine_mode="generic")


@feature((t(3),))
def gradient_modes(x):
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad():
        z = y + x
    return z


@feature((t(2, 3), t(3, 2)), tolerance=2e-2)
def autocast_scopes(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ y
        with torch.autocast("cpu", enabled=False):
            b = x @ y
    return a, b


@feature((t(3),))
class checkpoints(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(lambda y: self.linear(y).relu(), x, use_reentrant=False)


@torch.library.custom_op("record::scale", mutates_args=("x",))
def scale_in_place(x: torch.Tensor, factor: float) -> None:
    x.mul_(factor)


@feature((t(3),))
def random_numbers_are_left(x):
    return torch.rand_like(x).shape, F.dropout(x, 0.5, training=False)


@feature((t(3),))
def assertions(x):
    torch._check(x.shape[0] == 3)
    torch._assert_async((x == x).all(), "NaN")
    return x + 1


@feature((t(3),), (t(3) * float("nan"),))
def assertions_fail(x):
    torch._assert_async((x == x).all(), "there is a NaN")
    return x + 1


# Whole packages.
def package(programs):
    with tempfile.NamedTemporaryFile(suffix=".pt2") as f:
        from torch.export.pt2_archive import PT2ArchiveReader  # noqa: F401  (since 2.8)
        from torch.export.pt2_archive._package import package_pt2
        package_pt2(f.name, exported_programs=programs)
        return open(f.name, "rb").read()


class Net(torch.nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.linear = torch.nn.Linear(3, n)

    def forward(self, x):
        return self.linear(x)


def several_models(saved, plain):
    a, b = Net(), Net(4)
    b.shared = a.linear
    x = t(2, 3)
    programs = {"first": torch.export.export(a, (x,)), "second": torch.export.export(b, (x,))}
    calls = [{"method": name, "args": [x], "kwargs": {}, "expected": plain(p.module()(x))} for name, p in programs.items()]
    return package(programs), {"calls": calls, "after": {}, "tolerance": 1e-5}


def models_share_weights(saved, plain):
    a, b = Net(), Net()
    b.linear = a.linear
    x = t(2, 3)
    programs = {"first": torch.export.export(a, (x,)), "model": torch.export.export(b, (x,))}
    calls = [{"method": name, "args": [x], "kwargs": {}, "expected": plain(p.module()(x))} for name, p in programs.items()]
    return package(programs), {"calls": calls, "after": {}, "tolerance": 1e-5}


def both_passes(saved, plain):
    from torch.export.experimental import _export_forward_backward

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1), torch.nn.Sigmoid())

        def forward(self, x, y):
            return ((self.net(x) - y) ** 2).mean()

    module = Loss()
    x, y = t(4, 3), t(4, 1)
    program = _export_forward_backward(torch.export.export(module, (x, y)))
    loss = module(x, y)
    loss.backward()
    gradients = {n: p.grad for n, p in module.named_parameters()}
    return saved(program), {"calls": [{"args": [x, y], "kwargs": {}, "expected": plain(loss)},
                                      {"method": "forward_and_gradients", "args": [x, y], "kwargs": {}, "expected": (plain(loss), plain(gradients))}],
                            "after": {}, "tolerance": 1e-4}


def on_cuda(saved, plain):
    module = Net().cuda()
    x = t(2, 3).cuda()

    class Moves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = module

        def forward(self, x):
            return self.net(x) + torch.ones(3, device="cuda") + torch.zeros(3).to("cuda")

    program = torch.export.export(Moves(), (x,))
    return saved(program), {"calls": [{"args": [x.cpu()], "kwargs": {}, "expected": plain(program.module()(x))}], "after": {}, "tolerance": 1e-4}


def dtype_of_weights(dtype):
    def make(saved, plain):
        class Weights(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("table", torch.arange(4).to(dtype))

            def forward(self, x):
                return x + self.table.to(torch.float32)
        x = t(4)
        program = torch.export.export(Weights(), (x,))
        return saved(program), {"calls": [{"args": [x], "kwargs": {}, "expected": plain(program.module()(x))}], "after": {}, "tolerance": 1e-5}
    return make


def custom_operator(saved, plain):
    def f(x):
        y = x.clone()
        torch.ops.record.scale(y, 2.0)
        return y
    program = torch.export.export(Plain(f), (t(3),)).run_decompositions()
    return saved(program), {"refused": "record::scale", "calls": [], "after": {}, "tolerance": 1e-5}


def extra_files(saved, plain):
    x = t(2, 3)
    program = torch.export.export(Net(), (x,))
    with tempfile.NamedTemporaryFile(suffix=".pt2") as f:
        torch.export.save(program, f.name, extra_files={"note.txt": "hello"})
        data = open(f.name, "rb").read()
    return data, {"calls": [{"args": [x], "kwargs": {}, "expected": plain(program.module()(x))}], "after": {}, "tolerance": 1e-5, "extra": {"note.txt": "hello"}}


def feature_cases():
    for build in FEATURES:
        yield build()
    yield Made("several_models", several_models)
    yield Made("models_share_weights", models_share_weights)
    yield Made("both_passes", both_passes)
    yield Made("on_cuda", on_cuda)
    for name in ("float8_e4m3fn", "float8_e5m2", "uint16", "float16", "bfloat16", "uint8", "int16"):
        yield Made(f"weights_of_{name}", dtype_of_weights(getattr(torch, name)))
    yield Made("custom_operator", custom_operator)
    yield Made("extra_files", extra_files)
