"""Closures, recursion, arguments, lambdas, partials and decorators."""

import functools

COUNTER = 0
HOOKS = []


@program(given((3,)), makes=True)
def closure_made_outside():
    scale, shift = 3, [1]

    def apply(x):
        return x * scale + shift[0]

    return apply


@program(given((3,)), makes=True)
def nonlocal_made_outside():
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * count, count

    return step


@program(given((3,)), makes=True)
def two_closures_share_a_cell():
    total = 0

    def add(n):
        nonlocal total
        total += n
        return total

    def step(x):
        nonlocal total
        add(2)
        total *= 2
        return x + total, add(1)

    return step


@program(given((3,)), makes=True)
def cell_holds_tensor():
    state = torch.zeros(3)

    def step(x):
        nonlocal state
        state = state * 0.5 + x
        return state

    return step


@program(given((3,)))
def closure_inside(x):
    scale = 2

    def apply(y):
        return y * scale + x

    scale = 5
    return apply(x), apply(x + 1)


@program(given((3,)))
def nonlocal_inside(x):
    count = 0

    def step():
        nonlocal count, x
        count += 1
        x = x + count

    step()
    step()
    return x, count


@program(given((3,)), use=lambda f: (f(torch.ones(3)), f(torch.zeros(3))))
def closure_escapes(x):
    y = x + 1

    def later(z):
        nonlocal y
        y = y + z
        return y

    return later


@program(given((3,)), use=lambda r: (r[0](), r[1](), r[0]()), graphs=0, breaks="it computes no tensor")
def two_escaping_closures_share_a_cell(x):
    n = 0

    def up():
        nonlocal n
        n += 1
        return n

    def read():
        return n, x

    up()
    return up, read


@program(given((3,)), use=lambda fs: [f() for f in fs], graphs=0, breaks="it computes no tensor")
def closures_made_in_a_loop(x):
    return [lambda: x + i for i in range(3)] + [lambda i=i: x * i for i in range(2)]


@program(given((3,)))
def deeply_nested_functions(x):
    def a():
        def b():
            def c():
                return x + y

            return c() * 2

        return b() + 1

    y = x * 3
    return a()


@program([given((3,), 5), given((3,), 1), given((3,), 5)])
def recursion(x, n):
    def power(k):
        return torch.ones(3) if k == 0 else power(k - 1) * x

    return power(n), factorial(n)


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def is_even(n):
    return n == 0 or is_odd(n - 1)


def is_odd(n):
    return n != 0 and is_even(n - 1)


@program([given((3,), 4), given((3,), 3), given((3,), 4)])
def mutual_recursion(x, n):
    return x + 1 if is_even(n) else x - 1


@program(given((3,)), raises="RecursionError", graphs=None, breaks="recursion without end is left to Python")
def recursion_without_end(x):
    def again(y):
        return again(y + 1)

    return again(x)


def with_defaults(x, a=2, b=(1, 2), *, c=3, d=None):
    return x * a + b[0] + c, d


@program(given((3,)))
def default_arguments(x):
    return with_defaults(x), with_defaults(x, 5), with_defaults(x, b=(7,), d=x), with_defaults(x, c=0, a=1)


def collect(x, items=[]):
    items.append(x + len(items))
    return items


@program(given((3,)))
def mutable_default(x):
    return len(collect(x)), collect(x), collect(x, [])


def everything(a, /, b, *args, c, d=4, **kwargs):
    return a, b, args, c, d, kwargs


@program(given((3,)))
def every_kind_of_parameter(x):
    items, d = [2, 3], {"c": 5, "z": 6}
    return everything(x, 1, c=2), everything(x, *items, 4, **d), everything(x, b=1, c=x + 1, a=9), everything(*(1, 2), **d, d=0)


@program(given((3,)))
def wrong_arguments(x):
    caught = []
    for attempt in (lambda: with_defaults(), lambda: with_defaults(x, 1, 2, 3), lambda: with_defaults(x, z=1), lambda: everything(x, 1),
                    lambda: everything(b=1, c=2), lambda: with_defaults(x, 1, a=2), lambda: (lambda: 0)(1)):
        try:
            attempt()
        except TypeError as error:
            caught.append(str(error))
    return x + 1, caught


@program([lambda: arguments(torch.randn(3), a=2), lambda: arguments(x=torch.randn(3), a=5), lambda: arguments(torch.randn(3), 7, b=1)])
def called_with_keywords(x, a=1, **rest):
    return x * a, rest


@program([lambda: (torch.randn(3), torch.randn(3)), lambda: (torch.randn(3),), lambda: (torch.randn(3), torch.randn(3), 5)])
def called_with_any_number(*tensors):
    total = 0
    for t in tensors:
        total = total + t
    return total, len(tensors)


@program([given((3,)), given((3,), 4), given((3,))])
def called_with_and_without_default(x, n=2):
    return x * n


@program(given((3,)))
def lambdas(x):
    double = lambda v: v * 2
    return double(x), (lambda a, *b, c=1: (a, b, c))(x, 1, 2, c=3), (lambda: x)(), [f(x) for f in (lambda t: t + 1, lambda t: t - 1)]


@program(given((3,)))
def partials(x):
    f = functools.partial(with_defaults, c=10)
    g = functools.partial(f, x)
    h = functools.partial(torch.add, x)
    return f(x), g(a=3), h(1), g.args[0] is x, f.keywords, f.func is with_defaults, functools.partial(f, d=1)


@program(given((3,)), makes=True)
def partial_as_target():
    return functools.partial(with_defaults, a=4, d="d")


def logged(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        HOOKS.append(function.__name__)
        return function(*args, **kwargs)

    return call


def repeated(times):
    def decorate(function):
        def call(x):
            for _ in range(times):
                x = function(x)
            return x

        return call

    return decorate


@logged
@repeated(3)
def tripled(x):
    return x + 1


@program(given((3,)), check=lambda: HOOKS)
def decorated_functions(x):
    @logged
    def inner(y):
        return y * 2

    return tripled(x), inner(x), inner.__name__, inner.__wrapped__ is not inner, tripled.__name__


@program(given((3,)), check=lambda: COUNTER)
def global_counter(x):
    global COUNTER
    COUNTER += 1
    before = COUNTER
    COUNTER = before * 2
    return x + COUNTER, before


@program(given((3,)))
def functions_as_values(x):
    table = {"add": torch.add, "own": factorial, "lambda": lambda a, b: a - b, "method": x.mul}
    return table["add"](x, 1), table["own"](4), table["lambda"](x, 2), table["method"](3), callable(table["own"]), len


@program(given((3,)))
def attributes_of_functions(x):
    def f(a: int, b: str = "x") -> float:
        "Text."
        return a

    f.calls = 1
    f.calls += 1
    return x + f.calls, f.__name__, f.__doc__, f.__defaults__, f.__annotations__, f.__qualname__, hasattr(f, "none"), f


@program(given((3,), lambda y: y * 3))
def function_as_argument(x, f):
    return f(x) + 1, list(map(f, [1, 2]))


@program([lambda: (torch.randn(3), torch.relu), lambda: (torch.randn(3), torch.tanh), lambda: (torch.randn(3), lambda t: t + 1)])
def function_argument_changes(x, f):
    return f(x) * 2


def compose(*functions):
    return functools.reduce(lambda f, g: lambda x: g(f(x)), functions)


@program(given((3,)))
def composition(x):
    return compose(torch.relu, lambda v: v + 1, torch.neg)(x)


@program(given((3,)))
def unbound_local(x):
    try:
        if x is None:
            y = 1
        return y
    except UnboundLocalError as error:
        return x + 1, str(error)


@program(given((3,)))
def unbound_cell(x):
    def read():
        return later

    try:
        read()
    except NameError as error:
        caught = str(error)
    later = x * 2
    return read(), caught


@program(given((3,)))
def missing_global(x):
    try:
        return no_such_name + x
    except NameError as error:
        return x * 2, str(error), error.name


@program(given((3,)))
def delete_locals_and_cells(x):
    y = x + 1
    z = y * 2
    del y
    cell = 5

    def read():
        return cell

    first = read()
    del cell
    try:
        read()
    except NameError as error:
        return z, first, str(error)
    return None


@program(given((3,)))
def cell_that_is_an_argument(x):
    def change():
        nonlocal x
        x = x * 2
        return x

    y = x
    return change(), x, y


@program(given((3,)), makes=True)
def bound_method_as_target():
    class Scaler:
        factor = 2

        def __init__(self):
            self.calls = 0

        def scale(self, x):
            self.calls += 1
            return x * self.factor + self.calls

    return Scaler().scale


@program(given((3,)), makes=True)
def callable_object_as_target():
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            self.n += 1
            return x + self.n

    return Adder(3)


@program(given((3,)))
def keyword_only_from_closure(x):
    def outer(*, scale=2):
        def inner(*, shift=scale):
            return x * scale + shift

        return inner

    return outer()(), outer(scale=3)(shift=1)


@program(given((3,)))
def defaults_are_constants_of_the_code(x):
    def inner(a, b=7, c=(1, 2)):
        return a

    def other(a, b=7, c=(1, 2)):
        return a

    return x + 1, inner, inner.__defaults__ is other.__defaults__
