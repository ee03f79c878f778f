"""functools.lru_cache and cache, singledispatch and its method, wraps."""

import abc
import collections.abc
import functools

CALLS = []


def caught(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, error.args


@functools.lru_cache(maxsize=None)
def square(n):
    CALLS.append(n)
    return n * n


@program(given((3,), 4), check=lambda: (CALLS, square.cache_info()))
def result_is_kept(x, n):
    return x * square(n) + square(n) + square(2)


@functools.cache
def ramp(n, start=0):
    CALLS.append("ramp")
    return torch.arange(start, n) * 1.0


KEPT = []


@program([given((3,), 3), given((3,), 3), given((3,), 5), given((3,), 5)], check=lambda: (CALLS, ramp.cache_info(), len({id(each) for each in KEPT})))
def tensor_that_is_kept(x, n):
    r = ramp(n)
    KEPT.append(r)
    return x + r[:3] + ramp(n, start=n - 1), ramp(n) is r, ramp(n=n) is r


@functools.lru_cache(maxsize=None)
def fibonacci(n):
    CALLS.append(n)
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@program([given((3,), 7), given((3,), 7), given((3,), 9)], check=lambda: (CALLS, fibonacci.cache_info()))
def recursion_with_a_cache(x, n):
    return x + fibonacci(n)


@functools.lru_cache(maxsize=3)
def small(n):
    CALLS.append(n)
    return [n]


@program([given((3,), n) for n in (1, 2, 3, 1, 4, 2, 1)], check=lambda: (CALLS, small.cache_info(), small(1), small(4)))
def results_give_way(x, n):
    found = small(n)
    found.append(x + n)
    return found[-1], small(n) is found, len(found)


@program(given((3,)), graphs=None, breaks="results may give way to new ones", check=lambda: (CALLS, small.cache_info()))
def results_give_way_in_a_call(x):
    return x + 1, [small(n) for n in (1, 2, 3, 1, 4, 2, 1)]


@functools.lru_cache(maxsize=None, typed=True)
def typed(n, *, by=1):
    CALLS.append((n, by))
    return type(n).__name__, n, by


@program(given((3,)), check=lambda: (CALLS, typed.cache_info()))
def classes_of_arguments_count(x):
    return x + 1, typed(1), typed(1.0), typed(True), typed(1, by=2), typed(1, by=2.0), typed("1"), square(2), square(2.0), square(True)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    @functools.lru_cache
    def times(self, n):
        CALLS.append(n)
        return self.factor * n

    @classmethod
    @functools.lru_cache
    def named(cls, text):
        CALLS.append(text)
        return cls, text

    @staticmethod
    @functools.lru_cache
    def plain(n=5):
        CALLS.append(n)
        return n


SCALED = Scaled(3)


@program(given((3,)), check=lambda: (CALLS, Scaled.times.cache_info(), Scaled.plain.cache_info()))
def methods_with_a_cache(x):
    return x * SCALED.times(2), SCALED.times(2), Scaled.times(SCALED, 4), Scaled.named("a"), SCALED.named("a") is Scaled.named("a"), Scaled.plain(), SCALED.plain()


@program([given((3,), 1), given((3,), 1), given((3,), 1)], check=lambda: (CALLS, square.cache_info()), between={2: lambda: square.cache_clear()})
def cleared_between_calls(x, n):
    return x + square(n)


@program(given((3,), 2), check=lambda: (CALLS, square.cache_info()))
def cleared_by_the_program(x, n):
    first = square(n)
    square.cache_clear()
    return x + square(n) + square(n), first, square.__wrapped__(3), square.__name__


@functools.lru_cache(maxsize=None)
def reciprocal(n):
    CALLS.append(n)
    return 1 / n


@program([given((3,), 2), given((3,), 0), given((3,), 0)], graphs=None, breaks="an exception is not kept", check=lambda: (CALLS, reciprocal.cache_info()))
def cached_function_raises(x, n):
    return x + 1, caught(reciprocal, n)


@program(given((3,)), graphs=None, breaks="arguments that are no constants", check=lambda: square.cache_info())
def unhashable_argument(x):
    return x + 1, caught(square, [1]), caught(square, 1, 2)


@functools.lru_cache
def doubled(t):
    return t * 2


@program(given((3,)), graphs=None, breaks="a tensor is an argument of a cached function", check=lambda: doubled.cache_info())
def tensor_as_argument_of_a_cache(x):
    return doubled(x), doubled(x) is doubled(x)


@program(given((3,), 3), graphs=None, breaks="a function with lru_cache is made")
def cache_made_inside(x, n):
    local = functools.lru_cache(lambda k: x + k)
    return local(n), local(n) is local(n)


@functools.lru_cache(maxsize=0)
def never(n):
    CALLS.append(n)
    return n


@program(given((3,)), graphs=None, breaks="a cache without room", check=lambda: (CALLS, never.cache_info()))
def cache_of_size_zero(x):
    return x + never(1) + never(1)


# ---- singledispatch ----


@functools.singledispatch
def kind(value, *rest):
    return "object", rest


@kind.register
def _(value: int, *rest):
    return "int", value + 1


@kind.register(list)
@kind.register(tuple)
def _(value, *rest):
    return "sequence", [kind(each) for each in value]


@kind.register
def _(value: torch.Tensor, scale=2):
    return value * scale


@program(given((3,)))
def dispatch(x):
    return kind(x), kind(x, scale=3), kind(1), kind(True), kind([1, x, (2.5,)]), kind("text", 1), kind(None), caught(kind)


class Shape(abc.ABC):
    pass


class Square:
    pass


@functools.singledispatch
def _area(shape):
    return 0


@_area.register(Shape)
def _(shape):
    return 1


@_area.register(collections.abc.Mapping)
def _(shape):
    return len(shape)


@program(given((3,)), between={2: lambda: Shape.register(Square)})
def dispatch_on_abstract_classes(x):
    return x + _area(Square()), _area({"a": 1}), _area(3)


@functools.singledispatch
def growing(value):
    return "object"


@program(given((3,)), between={2: lambda: growing.register(float, lambda value: "float")}, check=lambda: growing.registry.keys())
def registered_between_calls(x):
    return x + 1, growing(1.5), growing(1)


def replace(value):
    return "replaced"


@program(given((3,)), between={1: lambda: growing.register(int, lambda value: "first"), 2: lambda: growing.register(int, replace)})
def registered_again(x):
    return x + 1, growing(1)


class Formatter:
    def __init__(self, mark):
        self.mark = mark

    @functools.singledispatchmethod
    def show(self, value):
        return self.mark + "object"

    @show.register
    def _(self, value: int):
        return self.mark + str(value)

    @show.register
    def _(self, value: torch.Tensor):
        return value + len(self.mark)

    @functools.singledispatchmethod
    @classmethod
    def make(cls, value):
        return cls("object")

    @make.register
    @classmethod
    def _(cls, value: str):
        return cls(value)


@program(given((3,)))
def dispatching_methods(x):
    f = Formatter("!!")
    return f.show(x), f.show(4), f.show([]), Formatter.make("m").mark, f.make(3).mark, f.show.__name__


# ---- wraps ----


def noted(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        """The text of the inner function."""
        return function(*args, **kwargs)

    inner.calls = 1
    return inner


@noted
def outside(t: "tensor", n: int = 2) -> "tensor":
    """The text of the outer function."""
    return t * n


outside.note = "n"


@program(given((3,)))
def wrapped_inside(x):
    @noted
    def local(t, n: int = 3):
        """Text."""
        return t * n

    again = noted(outside)
    return (local(x), local.__name__, local.__doc__, local.__wrapped__(x, 1), local.__annotations__, local.__module__ == __name__, again(x), again.__name__,
            again.__qualname__, again.__doc__, again.note, again.__annotations__ is outside.__annotations__, vars(again)["calls"], caught(lambda: local.none))


@program(given((3,)), use=lambda result: (result[0](result[1]), result[0].__name__, result[0].__doc__, result[0].__dict__.keys(), result[0].__annotations__,
                                          result[2].__name__, result[2].mark, result[2].__doc__))
def wrapped_function_is_returned(x):
    def local(t, n: int = 3):
        return t * n

    local.mark = x + 1
    local.__doc__ = "set"
    return noted(outside), x, local
