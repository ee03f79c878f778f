"""Parts of the standard library that are written in Python: contextlib, dataclasses, copy, enum, functools, operator."""

import contextlib
import copy
import dataclasses
import enum
import functools
import math
import operator
import typing
import warnings

LOG = []


def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@contextlib.contextmanager
def logged(name):
    LOG.append("enter " + name)
    try:
        yield name
    except ValueError as error:
        LOG.append(str(error))
    finally:
        LOG.append("exit " + name)


@program(given((3,)), check=lambda: LOG)
def generator_contexts(x):
    with logged("a") as a, logged("b"):
        x = x + 1
    with logged("c"):
        x = x * 2
        raise ValueError("swallowed")
    return x, a


@program(given((3,)), check=lambda: LOG)
def exit_stacks(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(logged("one"))
        stack.callback(LOG.append, "called")
        x = x + 1
    with contextlib.suppress(ZeroDivisionError), contextlib.nullcontext(3) as n:
        x = x * n
        1 // 0
    with contextlib.closing(Closed()) as closed:
        x = x + 1
    return x, closed.closed


class Closed:
    closed = 0

    def close(self):
        self.closed += 1


@dataclasses.dataclass
class Options:
    scale: float = 2.0
    names: list = dataclasses.field(default_factory=list)
    inner: object = None


@dataclasses.dataclass(frozen=True, slots=True)
class Slots:
    a: int
    b: int = 2


@program(lambda: (torch.randn(3), Options(3.0, ["a"])))
def data_classes(x, o):
    p = dataclasses.replace(o, scale=o.scale + 1)
    return (x * p.scale, p, [f.name for f in dataclasses.fields(o)], dataclasses.is_dataclass(o), dataclasses.asdict(p), dataclasses.astuple(o),
            Slots(1), dataclasses.replace(Slots(1), b=5), Slots(1) == Slots(1, 2), caught(Slots))


@program(lambda: (torch.randn(3), [1, [2], {"a": (3, [4])}], Options(1.0, [5])))
def copies(x, items, o):
    deep, shallow, other = copy.deepcopy(items), copy.copy(o), copy.deepcopy(o)
    items[1].append(9)
    o.names.append(6)
    return x + 1, deep, shallow, other, shallow.names is o.names, other.names is o.names, copy.copy((1, x))[1] is x, copy.copy({1})


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"

    @property
    def upper(self):
        return self.value.upper()


class Bits(enum.IntFlag):
    A = 1
    B = 2


@program([lambda: (torch.randn(3), Colour.RED), lambda: (torch.randn(3), Colour.BLUE)])
def enumerations(x, c):
    return (x + len(Colour), c.upper, Colour("b") is c, Colour["RED"], [m.name for m in Colour], c in (Colour.RED,), isinstance(c, Colour),
            {Colour.RED: 1}.get(c), caught(lambda: Colour("none")), (Bits.A | Bits.B).value, Bits.A in Bits(3), Bits.A + 1, Colour.__members__["BLUE"])


@functools.lru_cache
def cached(n):
    LOG.append(n)
    return n * 2


@functools.wraps(cached)
def wrapped(n):
    return n


class Lazy:
    @functools.cached_property
    def value(self):
        LOG.append("computed")
        return 5


@program(given((3,)), check=lambda: LOG)
def cached_properties(x):
    o = Lazy()
    return x + o.value, o.value, vars(o)


@program(given((3,), 2), check=lambda: LOG, graphs=None, breaks="cache_info() counts the calls of the graph")
def cached_functions(x, n):
    return x + cached(n), cached(n), cached.cache_info().misses, wrapped.__name__


@program(given((3,)))
def partials(x):
    scale = functools.partial(operator.mul, 3)
    nested = functools.partial(functools.partial(max, 1), 2)
    return scale(x), nested(5), scale.args, functools.reduce(lambda a, f: f(a), [scale, scale], x), list(map(functools.partial(pow, 2), [1, 2]))


GET = operator.itemgetter("k", 0)
NAME = operator.attrgetter("value.upper", "name")
CALL = operator.methodcaller("mul", 2)


@program(lambda: (torch.randn(3), Colour.RED))
def getters(x, c):
    return (CALL(x), GET({"k": x, 0: 1}), caught(lambda: GET({})), operator.attrgetter("value")(c), operator.itemgetter(slice(1))([1, 2]),
            operator.methodcaller("split", sep="-")("a-b"), sorted([[2], [1]], key=operator.itemgetter(0)), caught(lambda: NAME(c)),
            operator.itemgetter(-1)(torch.tensor([1, 2, 3])))


@program(given((3,)), use=lambda made: (made[0]([1, 2]), made[1]("ab"), made[2](5)))
def getters_that_escape(x):
    y = x + 1
    return operator.itemgetter(1), operator.methodcaller("upper"), operator.attrgetter("real"), y


@program(given((3,)))
def functions_of_operator(x):
    d = {}
    items = [1, 2]
    operator.setitem(d, "k", x)
    operator.delitem(items, 0)
    return (operator.concat("a", "b"), operator.concat([x], [1]), operator.pos(x), operator.invert(5), operator.abs(-x), operator.is_not(x, x),
            operator.countOf([1, 2, 1], 1), operator.indexOf("abc", "c"), operator.call(max, 1, 2), d["k"] is x, items, operator.iconcat(items, [3]) is items,
            caught(operator.concat, 1, 2), caught(operator.indexOf, [1], 2), operator.mod(7, 3), operator.xor(5, 1))


@program([given((3,), 2.0), given((3,), 7.0)])
def mathematics(x, a):
    return (x * math.prod([a, 2], start=3), math.isclose(a, 2.0, rel_tol=0.1), math.dist((0, 0), (3, a)), math.log(8, 2), math.fsum([a] * 3),
            math.ldexp(a, 3), math.modf(a), math.gcd(12, 8), math.perm(5, 2), caught(math.sqrt, -a), caught(math.log, 0), math.nan != math.nan)


@program(given((3,)))
def typing_helpers(x):
    T = typing.TypeVar
    return x + typing.cast(int, 1), typing.TYPE_CHECKING, typing.get_type_hints is not None, typing.Optional[int] is typing.Optional[int], T is typing.TypeVar


@program(given((3,)), graphs=None, breaks="a warning is a message")
def warning(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        y = x + 1
        warnings.warn("attention")
    return y * 2, [str(w.message) for w in found]


@contextlib.contextmanager
def swallowing(log, swallow):
    log.append("in")
    try:
        yield len(log)
    except KeyError as error:
        log.append(repr(error))
        if not swallow:
            raise
    finally:
        log.append("out")


@program([lambda: (torch.randn(3), [], True), lambda: (torch.randn(3), [], False)])
def exceptions_through_contexts(x, log, swallow):
    try:
        with swallowing(log, swallow) as n:
            x = x + n
            {}["k"]
        log.append("after")
    except KeyError as error:
        log.append(("caught", error.args, error.__context__))
    try:
        with swallowing(log, True):
            raise StopIteration("s")
    except StopIteration as error:
        log.append(error.value)
    try:
        with swallowing(log, True):
            raise RuntimeError("r")
    except RuntimeError as error:
        log.append((error.args, error.__cause__))
    return x, log


def echo(log):
    try:
        while True:
            log.append((yield len(log)))
    except ValueError as error:
        log.append(str(error))
        yield "handled"


@program(lambda: (torch.randn(3), []))
def exceptions_thrown_into_generators(x, log):
    g = echo(log)
    next(g)
    g.send(x)
    found = g.throw(ValueError("v"))
    try:
        g.throw(KeyError("k"))
    except KeyError as error:
        log.append(error.args)
    return x + 1, found, len(log), next(g, "end")


class Reduced(Closed):
    def __reduce__(self):
        return Options, (7.0,)


class Stateful(Closed):
    def __getstate__(self):
        return {"closed": "state"}


class Copied(Closed):
    def __deepcopy__(self, memo):
        return "deep"

    def __copy__(self):
        return "shallow"


class Restored(Closed):
    def __setstate__(self, state):
        self.closed = state


class Slotted:
    __slots__ = ("closed",)


@program([lambda: (torch.randn(3), (lambda o: (setattr(o, "closed", [5]), o)[1])(kind())) for kind in
          (Closed, Reduced, Stateful, Copied, Restored, Slotted)], graphs=None, breaks="some classes tell in C how they are copied")
def copies_of_many_classes(x, o):
    shallow, deep = copy.copy(o), copy.deepcopy(o)
    o.closed = 9
    return x + 1, getattr(shallow, "closed", shallow), getattr(deep, "closed", deep), type(deep).__name__


@program(lambda: (torch.randn(3), (lambda a: [a, [a]])([1])))
def copies_keep_aliases(x, items):
    made = copy.deepcopy(items)
    made[0].append(2)
    return x + 1, made, made[1][0] is made[0], items


THINGS = [Closed(), Closed()]


@program([lambda: (torch.randn(3), THINGS[0], THINGS[0]), lambda: (torch.randn(3), THINGS[0], THINGS[1])])
def identities(x, a, b):
    return x + 1, id(a) == id(b), {id(a): 1}.get(id(b)), id(a) in (id(b),), id(a) != id(b)


@program(given((3,)))
def exception_that_is_handled(x):
    import sys

    found = [sys.exc_info()]
    try:
        raise KeyError("k")
    except KeyError:
        found.append(sys.exc_info()[:2])
    return x + 1, found, sys.exc_info()[1]
