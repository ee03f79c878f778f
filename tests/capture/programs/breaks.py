"""Breaks at all positions: within with, try, finally, loops and callees, and all ways to leave."""

import contextlib

PRINT = "print writes"
EVENTS = []


class Logged:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        EVENTS.append("enter " + self.name)
        return self

    def __exit__(self, kind, error, trace):
        EVENTS.append(f"exit {self.name} {kind and kind.__name__}")
        return self.swallow


def note(*values):
    """Breaks."""
    print(*values)


def broken(x, n=2):
    y = x * n
    note("callee", n)
    return y + 1


def raising(x):
    y = x + 1
    note("raising")
    raise ValueError(f"shape {tuple(y.shape)}")


@program(given((3,)), graphs=2, breaks=PRINT)
def break_with_values_on_the_stack(x):
    return x + 1, [x * 2, note("middle") or x * 3], {"k": x * 4}


@program(given((3,)), graphs=2, breaks=PRINT)
def break_between_arguments_of_a_call(x):
    return torch.add(x * 2, note("argument") or x * 3, alpha=2)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_a_method_call(x):
    return (x * 2).add(broken(x), alpha=3).mul(broken(x, 5))


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_f_string(x):
    return x * 2, f"{note('f') or 5}-{x.shape[0]}"


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_comprehension(x):
    return [broken(x, i) for i in range(3)], {i: broken(x, i) for i in range(2)}, sum(broken(x, i) for i in range(2))


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_condition(x):
    if note("if") or x.dim() == 1:
        x = x + 1
    y = x * 2 if note("expression") is None and x.dim() else x
    while note("while") or y.dim() > 2:
        y = y[0]
    return y, note("and") and y, note("or") or x


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_loop(x):
    for i in range(3):
        x = x + i
        note("loop", i)
        x = x * 2
        if i == 1:
            break
    else:
        x = x - 100
    return x, i


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_nested_loops(x):
    for i in [1, 2]:
        for j in {"a": 1, "b": 2}.items():
            for k in zip("xy", (3, 4)):
                if k[1] == 4 and i == 1:
                    note(i, j, k)
                    continue
                x = x + i * j[1] * k[1]
    return x


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_while(x):
    n = 3
    while n:
        n -= 1
        if n == 1:
            note("n is one")
            continue
        x = x + n
    return x


@program(given((3,)), graphs=None, breaks=PRINT, check=lambda: EVENTS)
def break_within_with_then_return(x):
    with Logged("a") as a:
        with Logged("b"):
            y = x + 1
            note("with")
            return y * 2, a.name


@program(given((3,)), graphs=None, breaks=PRINT, check=lambda: EVENTS, raises="ValueError")
def break_within_with_then_raise(x):
    with Logged("a"):
        y = x + 1
        note("with")
        x.add_(y)
        raise ValueError("inside")


@program(given((3,)), graphs=None, breaks=PRINT, check=lambda: EVENTS)
def break_within_with_then_swallow(x):
    with Logged("a", swallow=True):
        y = x + 1
        note("with")
        y = y * 2
        raise ValueError("inside")
    return y


@program(given((3,)), graphs=None, breaks=PRINT, check=lambda: EVENTS)
def break_within_with_in_loop(x):
    for i in range(4):
        with Logged(str(i)):
            x = x + i
            if i == 1:
                note("continue")
                continue
            note("body")
            if i == 2:
                break
            x = x * 2
    return x


@program(given((3,)), graphs=None, breaks=PRINT)
def break_within_try_then_raise(x):
    try:
        y = x + 1
        note("try")
        y = y * 2
        raise KeyError("k")
    except KeyError as error:
        return y, str(error)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_callee_that_raises(x):
    try:
        raising(x)
    except ValueError as error:
        y = x * 2
        text = str(error)
    return y, text


@program(given((3,)), graphs=None, breaks=PRINT, raises="ValueError")
def break_in_callee_that_raises_through(x):
    x.add_(1)
    try:
        return raising(x)
    finally:
        x.mul_(2)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_except(x):
    try:
        raise KeyError("k")
    except KeyError as error:
        y = x + 1
        note("except", error)
        y = y * 2
        try:
            raise
        except KeyError as again:
            note("again", again is error)
            return y, error.args


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_else_of_try(x):
    try:
        y = x + 1
    except KeyError:
        y = x
    else:
        note("else")
        y = y * 2
    return y


@program([given((3,), 0), given((3,), 1), given((3,), 2), given((3,), 3)], graphs=None, breaks=PRINT)
def break_in_finally(x, way):
    def inner():
        for i in range(3):
            try:
                y = x + i
                if way == 0:
                    return y, "return"
                if way == 1 and i == 1:
                    raise ValueError("raise")
                if way == 2:
                    continue
                if way == 3:
                    break
            finally:
                z = x * 2
                note("finally", i)
                z = z + 1
        return z, i

    try:
        return inner()
    except ValueError as error:
        return x - 1, str(error)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_deep_in_callees(x):
    def a(y):
        return b(y + 1) * 2

    def b(y):
        z = c(y * 3)
        return z + y

    def c(y):
        note("deep")
        return y - 1

    return a(x), a(x + 1)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_method_and_property(x):
    return Owner(x).scaled(3) + Owner(x).total, len(Owner(x)), Owner(x)[1], Owner(x) + 1


class Owner:
    def __init__(self, x):
        note("init")
        self.x = x

    def scaled(self, n):
        note("method", n)
        return self.x * n

    @property
    def total(self):
        note("property")
        return self.x.sum()

    def __len__(self):
        note("len")
        return 5

    def __getitem__(self, index):
        note("item", index)
        return self.x[index]

    def __add__(self, n):
        note("add", n)
        return self.x + n


@program(given((3,)), graphs=None, breaks=PRINT, use=lambda f: f(torch.ones(3)))
def break_with_cells(x):
    n = 1

    def up(y):
        nonlocal n
        n += 1
        return y + n

    y = up(x)
    note("cells", n)
    n *= 10
    y = up(y)
    note("again", n)
    return up


@program(given((3,)), makes=True, graphs=None, breaks=PRINT)
def break_between_two_closures_of_a_cell():
    n = 0

    def first():
        nonlocal n
        n += 1
        return n

    def second():
        nonlocal n
        n *= 10
        return n

    def run(x):
        a = first()
        y = x + a
        note("between", n)
        b = second()
        return y * b, n

    return run


@program(given((3,)), graphs=None, breaks=PRINT)
def break_keeps_unbound_locals(x):
    if x.dim() == 2:
        y = 1
    note("unbound")
    try:
        return y
    except UnboundLocalError as error:
        return x + 1, str(error)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_after_delete(x):
    y = x + 1
    z = y * 2
    del y
    note("deleted")
    return z, "y" in locals()


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_generator(x):
    def produce():
        for i in range(3):
            y = x + i
            note("yield", i)
            got = yield y
            note("got", got)

    g = produce()
    first = next(g)
    second = g.send("sent")
    return first, second, list(g)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_with_iterators_in_use(x):
    items = [1, 2, 3, 4]
    it = iter(items)
    z = zip(it, "abcd")
    next(z)
    r = reversed(items)
    next(r)
    note("iterators")
    items.append(5)
    return x + next(it), list(z), list(r)


@program(lambda: (torch.randn(3, requires_grad=True),), graphs=None, breaks=PRINT, backward=True)
def break_with_gradients(x):
    y = x * 2
    with torch.no_grad():
        z = x * 3
        note(z.requires_grad)
        z = z + 1
    note(y.requires_grad)
    return y * z + broken(x)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_after_write(x):
    x.add_(1)
    v = x[1:]
    v.mul_(2)
    note("written")
    x.sub_(1)
    return v, x


@program(given((3,)), graphs=None, breaks=PRINT)
def break_with_objects_in_flight(x):
    o = Logged("o")
    o.items = [x, x + 1]
    o.me = o
    note(o.name)
    o.items.append(o.items[0] * 2)
    return o.items, o.me is o


@program(given((3,)), graphs=None, breaks=PRINT)
def many_breaks(x):
    note(1)
    x = x + 1
    note(2)
    note(3)
    x = x * 2
    x, y = x - 1, note(4)
    return x, y, note(5)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_recursion(x):
    def down(y, n):
        if n == 0:
            note("bottom")
            return y
        return down(y + n, n - 1) * 2

    return down(x, 3)


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_match(x):
    match [note("subject") or 3, {"k": x}]:
        case [int(n), {"k": y}] if note("guard") is None:
            note("body")
            return y * n
    return None


@program(given((3,)), graphs=None, breaks=PRINT)
def break_in_unpacking(x):
    a, *b = (note("one") or x), x * 2, x * 3
    note("two")
    c = d = (note("three"), a)
    return a, b, c is d


@program(given((3,)), graphs=None, breaks=PRINT)
def break_with_generator_context(x):
    @contextlib.contextmanager
    def doubled(y):
        note("before")
        try:
            yield y * 2
        finally:
            note("after")

    with doubled(x) as y:
        note("inside")
        z = y + 1
    return z


@program(given((3,)), graphs=None, breaks=PRINT, raises="TypeError")
def call_that_breaks_and_fails(x):
    x.add_(1)
    note("before")
    return broken(x, 1, 2, 3)


@program([given((3,)), given((4,)), given((5,)), given((6,))], graphs=None, breaks=PRINT)
def break_with_changing_sizes(x):
    y = x * x.shape[0]
    note(x.shape[0])
    return y + y.numel()
