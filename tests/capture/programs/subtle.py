"""Programs of the kinds that made other captures wrong."""

import contextvars
import math

SHARED = [1, 2]
LIST_IN_GLOBAL = SHARED
NUMBER = 1
VARIABLE = contextvars.ContextVar("variable", default=1)


class Indexed:
    def __init__(self, x):
        self.x = x

    def __getitem__(self, index):
        return self.x + index


@program(lambda: (Indexed(torch.randn(3)),))
def getitem_many_times(o):
    total = 0
    for i in range(20):
        total = total + o[i]
    return total


@program([lambda: (torch.ones(2), 0.0), lambda: (torch.ones(2), -0.0), lambda: (torch.ones(2), 0), lambda: (torch.ones(2), False),
          lambda: (torch.ones(2), math.nan), lambda: (torch.ones(2), 1), lambda: (torch.ones(2), True), lambda: (torch.ones(2), 1.0),
          lambda: (torch.ones(2), math.nan), lambda: (torch.ones(2), 0j)])
def numbers_that_look_equal(x, n):
    return x * n, n, type(n), math.copysign(1, n) if not isinstance(n, complex) else n


@program([lambda: (torch.randn(3), SHARED), lambda: (torch.randn(3), [1, 2]), lambda: (torch.randn(3), SHARED)], check=lambda: SHARED)
def argument_is_the_global(x, items):
    items.append(len(SHARED))
    return x * len(SHARED), items is SHARED, LIST_IN_GLOBAL is items


@program(given((3,)), check=lambda: (SHARED, NUMBER))
def local_is_the_global(x):
    global NUMBER
    items = SHARED
    items.append(3)
    NUMBER += len(SHARED)
    before = NUMBER
    items.append(LIST_IN_GLOBAL[-1] + 1)
    return x * before, len(LIST_IN_GLOBAL)


@program([lambda: (lambda o: (torch.randn(3), o, o))(object()), lambda: (torch.randn(3), object(), object())])
def branch_on_identity(x, a, b):
    return x + 1 if a is b else x - 1


@program([lambda: (lambda o: (torch.randn(3), [o, o]))([1]), lambda: (torch.randn(3), [[1], [1]]), lambda: (lambda o: (torch.randn(3), [o, o]))([1])])
def items_that_are_the_same(x, items):
    items[0].append(2)
    return x * len(items[1])


@program(lambda: (torch.randn(3), [1, 2, 3, 4]))
def partly_consumed_reversed(x, items):
    r = reversed(items)
    first = next(r)
    items.append(5)
    return x * first, list(r), list(r)


@program(given((3,)), graphs=None, breaks="context variables belong to the thread", check=lambda: VARIABLE.get())
def context_variable(x):
    token = VARIABLE.set(VARIABLE.get() + 1)
    y = x * VARIABLE.get()
    inner = contextvars.copy_context().run(VARIABLE.get)
    VARIABLE.reset(token)
    return y, inner, VARIABLE.get()


def two_functions_share_names():
    n = 1

    def f():
        nonlocal n
        n += 1
        return n

    def g(n=10):
        def h():
            nonlocal n
            n += 1
            return n

        return h

    return f, g()


@program(given((3,)))
def cells_with_the_same_name(x):
    f, h = two_functions_share_names()
    return x * f() + h(), f(), h()


@program(given((3,)), makes=True)
def code_shared_by_two_closures():
    def make(n):
        def apply(x):
            return x * n

        return apply

    two, three = make(2), make(3)

    def run(x):
        return two(x), three(x), make(4)(x)

    return run


@program(given((3,)))
def generator_is_not_a_list(x):
    g = (x * i for i in range(3))
    a = list(g)
    return a, list(g), iter(g) is g, hasattr(g, "send")


@program([given((3,), 1), given((3,), 0), given((3,), 1)])
def operator_fails_on_one_branch(x, n):
    try:
        y = x + 1
        if not n:
            y = y + torch.ones(9)
        y = y * 2
    except RuntimeError:
        y = x - 1
    return y


@program(lambda: (torch.randn(3, requires_grad=True),))
def results_with_and_without_gradients(x):
    a = x + 1
    with torch.no_grad():
        b = x + 1
    c = x + 1
    return a, b, c, a.requires_grad, b.requires_grad, a is c, a.detach()


@program(lambda: (torch.randn(3, requires_grad=True),), graphs=None, breaks="detach_ takes a tensor off the tape")
def detach_in_place(x):
    y = x * 2
    y.detach_()
    return y, y * 3


@program(given((3,)))
def equal_code_different_constants(x):
    f = lambda y: y + 0.0
    g = lambda y: y + -0.0
    h = lambda y: y + 0
    return f(-0.0), g(-0.0), h(-0.0), f(x), h(True)


@program(given((3,)))
def identity_of_constants(x):
    a = (1, 2)
    b = "text"
    c = 1000
    return a is a, b == "text", c is c, None is None, x + 1


@program([given((3,), "a"), given((3,), "b")])
def new_text_each_time(x, s):
    t = s + "suffix"
    return x * len(t), {t: 1}[s + "suffix"], t is s


class Tracked:
    log = []

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        Tracked.log.append(("eq", self.name))
        return self.name == getattr(other, "name", other)

    def __hash__(self):
        Tracked.log.append(("hash", self.name))
        return hash(self.name)

    def __bool__(self):
        Tracked.log.append(("bool", self.name))
        return True

    def __getattr__(self, name):
        Tracked.log.append(("getattr", name))
        raise AttributeError(name)


@program(lambda: (torch.randn(3), Tracked("t")), check=lambda: Tracked.log)
def user_code_runs_as_often_as_written(x, t):
    if t:
        x = x + 1
    table = {t: 1}
    found = t in [Tracked("t")], t == "t", table[t], hasattr(t, "none")
    return x, found


@program(given((3,)), check=lambda: Tracked.log)
def order_of_evaluation(x):
    log = Tracked.log

    def say(value):
        log.append(value)
        return value

    d = {say("k1"): say(1), say("k2"): say(2)}
    items = [0, 0, 0]
    items[say(0)] = say(5)
    a, items[say(1)] = say(6), say(7)
    say(2) < say(1) < say(0)
    say(0) or say(3) and say(0) or say(4)
    return x * a, d, items, (say("a"), say("b"))


@program(lambda: (torch.randn(3), [1, 2, 3]))
def del_within_loop(x, items):
    while items:
        x = x + items[-1]
        del items[-1]
    return x


@program([given((2,)), given((3,)), given((3,)), given((2,))])
def size_as_key(x):
    table = {(2,): "two", (3,): "three"}
    return x, table[tuple(x.shape)], {x.shape: 1}[(x.shape[0],)]


@program([given((4,)), given((6,)), given((8,))])
def size_escapes(x):
    n = x.shape[0]
    half = n // 2
    return n, half, float(n), f"{half}", [0] * half, range(n), n * 1.5, -n, n == 6, bool(n), hash(n), x[:half], str(n)


@program([given((4,)), given((6,)), given((8,))], makes=True)
def size_kept_in_state():
    seen = []

    def run(x):
        seen.append(x.shape[0])
        seen.append(x.shape)
        return x * seen[0], sum(seen[::2]), list(seen)

    return run


@program(lambda: (torch.randn(3), [torch.ones(3)]))
def tensor_replaced_in_list_while_used(x, items):
    t = items[0]
    items[0] = x
    t.add_(1)
    items[0].mul_(2)
    return t, items[0] is x


@program(given((3,)))
def exception_keeps_effects_in_order(x):
    log = []
    try:
        log.append(x.clone())
        x.add_(1)
        log.append([][0])
        x.add_(100)
    except IndexError:
        log.append(x.clone())
    finally:
        x.mul_(2)
    return log


@program(given((3,)))
def write_between_two_reads_of_attribute(x):
    o = Indexed(x)
    a = o.x
    o.x = o.x + 1
    b = o.x
    o.__dict__["x"] = b * 2
    return a, b, o.x, o[1]


class Base:
    def __init__(self):
        self.ready = True

    def apply(self, x):
        return x + self.value


class Late(Base):
    value = 3

    def __init__(self):
        self.value = 5
        super().__init__()
        self.apply = lambda x: super(Late, self).apply(x) * 2


@program(given((3,)))
def method_hidden_by_instance(x):
    late = Late()
    return late.apply(x), Late.apply(late, x), late.ready


@program(given((3,)))
def hasattr_depends_on_effects(x):
    o = Indexed(x)
    before = hasattr(o, "extra")
    o.extra = 1
    during = hasattr(o, "extra")
    del o.extra
    return before, during, hasattr(o, "extra"), x * 2


@program([lambda: (torch.randn(3), (1, 2.0, "a")), lambda: (torch.randn(3), (1.0, 2, "a")), lambda: (torch.randn(3), (True, 2.0, "a"))])
def types_within_tuple(x, t):
    a, b, c = t
    return x * a + b, type(a), type(b), t == (1, 2, "a")


@program(given((3,)))
def sum_starts_with_zero(x):
    return sum([x]) is x, sum([x, x]), sum([], x) is x


@program(given((3,)))
def augmented_assignment_of_tensors_and_numbers(x):
    y = x
    y += 1
    z = x
    z = z + 1
    n = m = 5
    n += 1
    return y is x, z is x, n, m


@program(given((3,)), graphs=0, breaks="there is no operator")
def no_operator_at_all(x):
    return [1, 2], "text"


@program([lambda: (1, 2), lambda: (3, 4)], graphs=0, breaks="there is no tensor")
def no_tensor_at_all(a, b):
    return a + b, [a] * b
