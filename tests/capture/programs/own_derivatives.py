"""Functions with derivatives of their own: classes with forward and backward."""

import importlib

CALLS = []


def leaf(*sizes):
    return torch.randn(*sizes, requires_grad=True)


class Scaled(torch.autograd.Function):
    """The gradient is not that of the operators."""

    @staticmethod
    def forward(ctx, x, factor, power=2):
        ctx.save_for_backward(x)
        ctx.factor = factor
        ctx.power = power
        return x**power * factor

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 7 * x ** (ctx.power - 1) * ctx.factor, None, None


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.by = by
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.by * gradient, None


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Several(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        inner = torch.exp(x) + 1
        positive = x > 0
        ctx.inner = inner
        ctx.save_for_backward(x, y)
        ctx.mark_non_differentiable(positive)
        CALLS.append(ctx.needs_input_grad[0])
        return inner * y, positive, y.sum()

    @staticmethod
    def backward(ctx, first, _, last):
        x, y = ctx.saved_tensors
        of_x = of_y = None
        if ctx.needs_input_grad[0]:
            of_x = first * y * ctx.inner * 2
        if ctx.needs_input_grad[1]:
            of_y = first * first * ctx.inner + last + x
        return of_x, of_y


class Clipped(torch.autograd.Function):
    """Saves its result, works in place."""

    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y[y < 0] = 0
        y.mul_(2)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        gradient = gradient.clone()
        gradient[y == 0] = 5
        return gradient


@program(lambda: (leaf(3),), backward=True)
def derivative_of_its_own(x):
    return Scaled.apply(x, 3.0) + x, Scaled.apply(x * 2, 0.5, 3)


@program(lambda: (leaf(4), leaf(4)), backward=True)
def reversed_gradient(x, y):
    return Reversed.apply(x * y, 0.5) * x + Reversed.apply(y, 2) * 3


@program(lambda: (leaf(4),), backward=True, graphs=None, breaks="a view of an argument is a result")
def reversed_gradient_is_returned(x):
    return Reversed.apply(x, 2)


@program(lambda: (leaf(4),), backward=True)
def straight_through(x):
    return Rounded.apply(x * 3) * 2, Rounded.apply(Rounded.apply(x) + x)


@program([lambda: (leaf(3), leaf(3)), lambda: (leaf(3), torch.randn(3)), lambda: (torch.randn(3), leaf(3))],
         backward=True, check=lambda: CALLS)
def several_results(x, y):
    a, positive, total = Several.apply(x, y)
    b, _, _ = Several.apply(y, y)
    return a * 2, positive, total, b


@program(lambda: (leaf(3), leaf(3)), backward=True)
def one_of_several_results(x, y):
    return Several.apply(x, y)[2] * 2, Several.apply(y, x)[0]


@program(lambda: (leaf(5),), backward=True)
def works_in_place(x):
    return Clipped.apply(x) * x


@program(lambda: (leaf(3),))
def without_gradients(x):
    with torch.no_grad():
        y = Scaled.apply(x, 2)
        z = Reversed.apply(x * 2, 1)
    return y, z, Scaled.apply(x.detach(), 3)


@program(lambda: (leaf(3),), backward=True)
def chained(x):
    for i in range(3):
        x = Scaled.apply(x, 0.5 + i, 2 - i % 2)
    return x.sum()


INPUT = torch.linspace(0.5, 1.5, 3).requires_grad_()


def second_derivative(y):
    (first,) = torch.autograd.grad((y * y).sum(), INPUT, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), INPUT)
    return first.detach(), second


@program(lambda: (INPUT,), use=second_derivative)
def second_derivatives(x):
    return Scaled.apply(x, 2.0) * x


def two_walks(y):
    first = torch.autograd.grad(y.sum(), INPUT, retain_graph=True)
    second = torch.autograd.grad((y * 2).sum(), INPUT)
    return first, second


@program(lambda: (INPUT,), use=two_walks)
def walks_twice(x):
    return Scaled.apply(x, 2.0).exp()


class Counting(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        CALLS.append("forward")
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        CALLS.append("backward")
        return gradient * 3


@program(lambda: (leaf(3),), backward=True, graphs=None, breaks="a derivative changes a list", check=lambda: CALLS)
def derivative_with_effects(x):
    return Counting.apply(x) + 1


class Telling(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, n):
        CALLS.append([ctx.needs_input_grad[i] for i in range(3)])
        return x + y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2, gradient * 3, None


@program([lambda: (leaf(3), torch.randn(3)), lambda: (torch.randn(3), leaf(3))], backward=True, check=lambda: CALLS)
def needs_of_arguments(x, y):
    with torch.no_grad():
        z = Telling.apply(x, y, 1)
    return Telling.apply(x, y, 2), z, Telling.apply(z, z, 3)


_CONFIGURATION = type(importlib)("configuration")
_CONFIGURATION.scale = 2.0


class Configured(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * _CONFIGURATION.scale

    @staticmethod
    def backward(ctx, gradient):
        return gradient * _CONFIGURATION.scale


def change_configuration(y):
    _CONFIGURATION.scale = 5.0
    y.sum().backward()
    _CONFIGURATION.scale = 2.0


@program(lambda: (leaf(3),), use=change_configuration, graphs=None, breaks="a derivative reads a number of a module")
def derivative_reads_a_module(x):
    return Configured.apply(x) + 1


WEIGHT = torch.linspace(-1, 1, 3).requires_grad_()


class Reading(torch.autograd.Function):
    """Reads a tensor that is no argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * WEIGHT

    @staticmethod
    def backward(ctx, gradient):
        return gradient * WEIGHT * ctx.x


@program(lambda: (leaf(3),), backward=True, graphs=None, breaks="a derivative uses a tensor that was not saved")
def derivative_reads_other_tensors(x):
    return Reading.apply(x) + 1


SCALE = 2.0


class Global(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * SCALE

    @staticmethod
    def backward(ctx, gradient):
        return gradient * SCALE


def change_scale(y):
    global SCALE
    SCALE = 5.0
    y.sum().backward()
    SCALE = 2.0


@program(lambda: (leaf(3),), use=change_scale, graphs=None, breaks="a derivative reads a global number")
def derivative_reads_a_global(x):
    return Global.apply(x) + 1


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return Scaled.apply(self.layer(Reversed.apply(self.layer(x), 0.1)), 2).mean()


MODEL = None


def make():
    global MODEL
    MODEL = Module()


@program(lambda: (leaf(2, 4),), backward=True, setup=make, check=lambda: [p.grad for p in MODEL.parameters()], tolerance=1e-5)
def within_a_module(x):
    return MODEL(x)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if x.shape[0] > 2:
            raise ValueError("too long")
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient


@program([lambda: (torch.randn(3),), lambda: (leaf(3),)], graphs=None, breaks="an exception within")
def function_raises(x):
    try:
        return Wrong.apply(x)
    except ValueError as error:
        return x + 1, str(error)
