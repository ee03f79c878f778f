"""Gradients, random numbers, dtypes and devices."""

import random

CLOSE = 1e-5


def leaf(*sizes):
    return torch.randn(*sizes, requires_grad=True)


@program(lambda: (leaf(3, 4),), backward=True)
def gradient_of_argument(x):
    return (x * 2 + 1).relu()


@program(lambda: (leaf(3), leaf(3), torch.randn(3)), backward=True)
def gradients_of_some_arguments(x, y, z):
    return x * y + z, y * 2, z * 3


@program(lambda: (leaf(3), leaf(3)), backward=True)
def unused_argument_has_no_gradient(x, y):
    z = y * 2
    return x * 2, z.shape


@program(lambda: (lambda t: (t, t))(leaf(3)), backward=True)
def gradient_of_same_tensor_twice(x, y):
    return x * 2 + y * 3


@program(lambda: (leaf(3),), use=lambda results: [r.sum().backward() for r in results][:0])
def independent_outputs(x):
    return x * 2, x.exp()


@program(lambda: (leaf(3),), backward=True)
def detached_parts(x):
    y = x * 2
    return y.detach() * x, y.detach(), y


@program(lambda: (leaf(3),), backward=True)
def parts_without_gradients(x):
    with torch.no_grad():
        scale = x * 2
    return x * scale, scale


@program(lambda: (leaf(3),), graphs=None, breaks="backward runs the tape")
def backward_inside(x):
    y = (x * x).sum()
    y.backward()
    return x.grad * 2, y


@program(lambda: (leaf(3),), graphs=None, breaks="backward runs the tape")
def gradients_by_function(x):
    y = (x ** 3).sum()
    first, = torch.autograd.grad(y, x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    return first, second


@program(given((3,)), graphs=None, breaks="a tensor becomes a leaf")
def requires_grad_inside(x):
    w = torch.ones(3, requires_grad=True)
    y = x * w
    v = y.detach().requires_grad_()
    return y, v, v * 2


@program([lambda: (torch.randn(3),), lambda: (leaf(3),), lambda: (torch.randn(3),)])
def requires_grad_changes(x):
    y = x * 2
    return y, y.requires_grad, x.is_leaf, y.grad_fn is None


@program(lambda: (leaf(3),), raises="RuntimeError", graphs=0, breaks="Python raises the error before the first operator has run")
def write_to_leaf_fails(x):
    x.add_(1)
    return x


@program(lambda: (leaf(3) * 1,))
def write_to_tensor_within_tape(x):
    x.mul_(3)
    return x * 2


@program(lambda: (leaf(3),), backward=True)
def write_to_result_within_tape(x):
    y = x * 2
    y.mul_(x)
    y[0] = 0
    return y


@program(lambda: (leaf(4),), backward=True)
def views_within_tape(x):
    y = x.view(2, 2)
    return y.t() * 2, x[1:], y


@program(lambda: (leaf(3),))
def update_by_hand(w):
    with torch.no_grad():
        w -= 0.1 * w
    return w.requires_grad, w.is_leaf


MODEL = None


def make_training():
    global MODEL, _OPTIMIZER
    MODEL = nn.Linear(4, 1)
    _OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.1)


@program(given((5, 4)), setup=make_training, check=lambda: MODEL, graphs=None, breaks="backward runs the tape", tolerance=CLOSE)
def training_step(x):
    _OPTIMIZER.zero_grad()
    loss = (MODEL(x) - 1).pow(2).mean()
    loss.backward()
    _OPTIMIZER.step()
    return loss.detach()


@program(lambda: (leaf(3),), backward=True, graphs=None, breaks="the hook is kept by the tape")
def hook_of_tensor(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y * 3


class Square(torch.autograd.Function if hasattr(torch.autograd, "Function") else object):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 2 * x


@program(lambda: (leaf(3),), backward=True)
def own_function(x):
    return Square.apply(x + 1) * 2


@program(lambda: (leaf(3),), backward=True, graphs=None, breaks="print writes")
def gradients_across_a_break(x):
    y = x * 2
    print("break")
    return y * x


@program(given((3,)))
def random_tensors(x):
    return x + torch.rand(3), torch.randn(2), torch.randint(0, 10, (4,)), torch.randperm(5), torch.rand_like(x), x.clone().uniform_(), torch.bernoulli(torch.full((3,), 0.5))


@program(given((3,)), graphs=None, breaks="the seed is set at run time")
def seed_inside(x):
    torch.manual_seed(7)
    a = torch.rand(3)
    torch.manual_seed(7)
    return x + a, torch.rand(3) - a


@program(given((3,)), graphs=None, breaks="the numbers are drawn at run time")
def random_numbers_of_python(x):
    n = random.random()
    return x * n, random.randint(1, 100), random.choice([1, 2, 3]), random.uniform(0, 1), n


@program(given((3,)), graphs=None, breaks="the numbers are drawn at run time")
def shuffle_and_sample(x):
    items = list(range(6))
    random.shuffle(items)
    return x + items[0], items, random.sample(items, 3), random.gauss(0, 1)


@program(given((3,)), graphs=None, breaks="the numbers are drawn at run time")
def seed_of_python(x):
    random.seed(5)
    return x * random.random(), random.getrandbits(8)



def make_generator():
    global _SOURCE
    _SOURCE = random.Random(3)


@program(given((3,)), setup=make_generator, graphs=None, breaks="the numbers are drawn at run time")
def own_source_of_numbers(x):
    return x * _SOURCE.random(), _SOURCE.randint(0, 9)


@program(given((3,)), graphs=None, breaks="the generator is read at run time")
def own_generator_of_tensors(x):
    g = torch.Generator()
    g.manual_seed(11)
    return x + torch.rand(3, generator=g), torch.rand(2, generator=g)


@program(given((4,)))
def dropout_is_random(x):
    return F.dropout(x, 0.5, training=True), F.dropout(x, 0.5, training=False)


@program([given((3,), True), given((3,), False), given((3,), True)])
def random_on_one_branch(x, draw):
    if draw:
        x = x + torch.rand(3)
    return x


@program(given((3,)))
def conversions_of_dtype(x):
    return x.double(), x.to(torch.int64), x.half().float(), x.type(torch.float64), x.bool(), x.to(x.dtype) is x, x.long().dtype, x.float() is x


@program([lambda: (torch.randn(3),), lambda: (torch.randn(3, dtype=torch.float64),), lambda: (torch.arange(3),), lambda: (torch.ones(3) > 0,)])
def dtype_of_argument_changes(x):
    return x + 1, x * 2.5, x.dtype


@program(given((3,), torch.float64))
def dtype_as_argument(x, dtype):
    return x.to(dtype), torch.zeros(2, dtype=dtype), dtype == torch.float64, dtype.is_floating_point, torch.promote_types(dtype, torch.int64)


@program(given((3,)))
def devices(x):
    device = x.device
    return x.to(device) is x, x.cpu(), torch.zeros(2, device=device), device.type, torch.device("cpu") == device, x.to("cpu", torch.float64)


@program([given((3,), "cpu"), given((3,), torch.device("cpu"))])
def device_as_argument(x, device):
    return torch.ones(3, device=device) + x.to(device)


@program(given((3,)))
def limits_of_dtypes(x):
    return x.clamp(min=torch.finfo(x.dtype).eps), torch.finfo(torch.float32).max, torch.iinfo(torch.int32).min


@program(lambda: (torch.randn(3) + 1j * torch.randn(3),), graphs={"wick": 1}, breaks="a result is a view of another dtype")
def complex_tensors(z):
    return z * z.conj(), z.abs(), torch.view_as_real(z), z.real + z.imag, z * 2j


@program(lambda: (leaf(2, 3), leaf(3, 2)), backward=True)
def gradients_through_containers(a, b):
    parts = {"p": a @ b, "q": [a.sum(), b.sum()]}
    parts["q"].append(parts["p"].trace())
    return parts


@program([lambda: (leaf(2),), lambda: (leaf(4),), lambda: (leaf(3),)], backward=True)
def gradients_with_changing_sizes(x):
    return x.pow(2) / x.numel()


@program(lambda: (leaf(3),), graphs=None, breaks="gradients belong to the tape")
def grad_attribute(x):
    before = x.grad
    x.grad = torch.ones(3)
    return before, x * 2


@program(lambda: (leaf(3),), backward=True, graphs=None, breaks="data hides writes from the tape")
def data_of_tensor_is_changed(x):
    y = x * 2
    z = y.data
    z.add_(1)
    return y, z, z.requires_grad


@program(lambda: (leaf(2, 3),), graphs=None, breaks="a view lost its history", raises="ValueError")
def view_of_a_view_is_written_without_gradients(x):
    seen = x.t().transpose(0, 1)
    with torch.no_grad():
        part = seen.view_as(seen)
        part.add_(1.5)
    raise ValueError(part.tolist())
