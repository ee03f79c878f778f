"""functools, itertools, operator, math, collections, copy, typing and others of the standard library."""

import collections
import contextlib
import copy
import functools
import itertools
import math
import operator
import typing
from typing import Any, Generic, Optional, TypeVar

T = TypeVar("T")
CALLS = []


@functools.lru_cache(maxsize=None)
def slow_square(n):
    CALLS.append(n)
    return n * n


@functools.singledispatch
def kind_of(value):
    return "object"


@kind_of.register
def _(value: int):
    return "int"


@kind_of.register(list)
def _(value):
    return "list"


@program(given((3,)))
def reduce(x):
    return functools.reduce(operator.add, [1, 2, 3], x), functools.reduce(lambda a, b: a * b, [x, x + 1, x + 2])


@program(given((3,), 4), check=lambda: CALLS, graphs=None, breaks="cache_info() counts the calls of the graph")
def cached_function(x, n):
    return x * slow_square(n) + slow_square(n), slow_square.cache_info().hits


@program(given((3,), 4))
def single_dispatch(x, n):
    return x + 1, kind_of(n), kind_of([]), kind_of(2.5)


@program(given((3,)), graphs=None, breaks="defining a class runs a class body")
def functools_tools(x):
    class Number:
        def __init__(self, n):
            self.n = n

        def __eq__(self, other):
            return self.n == other.n

        def __lt__(self, other):
            return self.n < other.n

    ordered = functools.total_ordering(Number)
    key = functools.cmp_to_key(lambda a, b: b - a)
    return x + 1, ordered(1) >= ordered(0), sorted([1, 3, 2], key=key)


class Cached:
    def __init__(self, x):
        self.x = x
        self.times = 0

    @functools.cached_property
    def total(self):
        self.times += 1
        return self.x.sum()

    add_two = functools.partialmethod(lambda self, n: self.x + n, 2)


@program(lambda: (Cached(torch.randn(3)),))
def cached_property(c):
    return c.total + c.total, c.times, c.add_two()


@program(given((3,)))
def endless_iterators(x):
    counted = list(itertools.islice(itertools.count(3, 2), 3))
    cycled = [n for n, _ in zip(itertools.cycle("ab"), range(5))]
    return x * counted[-1], cycled, list(itertools.repeat(x, 2)), list(itertools.islice(range(10), 1, 8, 3))


@program(lambda: (torch.randn(3), [3, 1, 2]), graphs=0, breaks="it computes no tensor")
def finite_iterators(x, items):
    a, b = itertools.tee(items)
    groups = [(k, list(g)) for k, g in itertools.groupby([1, 1, 2, 3, 3], key=lambda n: n % 2)]
    return (x, list(itertools.chain(items, "a", [x])), list(itertools.chain.from_iterable([[1], [2, 3]])), list(itertools.accumulate(items)),
            list(itertools.accumulate(items, max, initial=2)), list(itertools.takewhile(lambda n: n > 2, items)),
            list(itertools.dropwhile(lambda n: n > 2, items)), list(itertools.compress("abc", [1, 0, 1])),
            list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.zip_longest("ab", [1], fillvalue=0)),
            list(itertools.filterfalse(None, [0, 1])), list(itertools.pairwise(items)), list(a), next(b), groups)


@program(lambda: (torch.randn(3), [1, 2, 3]))
def combinations(x, items):
    total = x
    for a, b in itertools.product(items, "xy"):
        total = total + a
    return (total, list(itertools.permutations(items, 2)), list(itertools.combinations(items, 2)), list(itertools.product([0, 1], repeat=2)),
            list(itertools.combinations_with_replacement([1, 2], 2)))


@program(lambda: ([torch.randn(2), torch.randn(2), torch.randn(2)],))
def iterators_over_tensors(tensors):
    sums = list(itertools.accumulate(tensors))
    pairs = [a * b for a, b in itertools.combinations(tensors, 2)]
    return sums, pairs, sum(itertools.starmap(torch.mul, zip(tensors, tensors[1:])))


@program(lambda: (torch.randn(3), torch.randn(3)))
def operators_as_functions(x, y):
    return (operator.add(x, y), operator.mul(x, 2), operator.neg(x), operator.getitem(x, 1), operator.lt(1, 2), operator.truth([]),
            operator.contains([1], 1), operator.index(3), operator.not_(0), operator.is_(x, x), operator.concat([1], [2]), operator.sub(3, x),
            operator.matmul(x, y), operator.pow(x.abs(), 2), operator.truediv(x, 2), operator.iadd([1], [2]))


@program(lambda: (torch.randn(3), [3, 1, 2], {"k": 5}))
def getters(x, items, d):
    first = operator.itemgetter(0)
    both = operator.itemgetter(0, 2)
    shape = operator.attrgetter("shape")
    call = operator.methodcaller("mul", 3)
    operator.setitem(items, 0, 9)
    operator.delitem(d, "k")
    return first(items), both(items), shape(x), call(x), sorted([(2, "a"), (1, "b")], key=operator.itemgetter(1)), d, items


@program([given((3,), 2.0), given((3,), 0.5), given((3,), 100.0)])
def mathematics(x, a):
    return (x * math.sqrt(a), math.floor(a), math.ceil(a), math.exp(-a), math.log(a), math.log2(8), math.pi, math.isnan(a), math.inf > a,
            math.gcd(12, 18), math.prod([1, 2, 3]), math.hypot(3, 4), math.fsum([0.1] * 10), math.isclose(a, a + 1e-12), math.comb(5, 2),
            math.factorial(5), math.trunc(-a), math.fmod(a, 3), math.copysign(1, -0.0), math.sin(a), math.atan2(a, 1), math.isqrt(17))


@program([given((4, 16)), given((2, 64)), given((3, 16))])
def mathematics_of_sizes(x):
    return x / math.sqrt(x.size(-1)), math.prod(x.shape), math.ceil(x.size(0) / 2)


@program(given((3,), -1.0), raises="ValueError")
def error_of_mathematics(x, a):
    y = x + 1
    return y * math.sqrt(a)


@program(lambda: (torch.randn(3), [1, [2, 3]], {"a": [4]}), graphs={"wick": 1}, breaks="PyTorch copies tensors by their storages")
def copies(x, items, d):
    shallow, deep = copy.copy(items), copy.deepcopy(items)
    items[1].append(9)
    e = copy.copy(d)
    e["a"].append(x)
    return shallow, deep, e, shallow[1] is items[1], deep[1] is items[1], copy.copy(x) is x


class Node:
    def __init__(self, value, other=None):
        self.value = value
        self.other = other


@program(lambda: (Node(torch.randn(3), Node(2)),), graphs=None, breaks="deep copies of tensors copy their memory")
def copies_of_objects(node):
    shallow = copy.copy(node)
    deep = copy.deepcopy(node)
    node.value.add_(1)
    node.other.value = 7
    return shallow.value, deep.value, shallow.other is node.other, deep.other.value


def typed(x: "Tensor", n: Optional[int] = None, *rest: Any) -> dict[str, T]:
    found: typing.List[int] = []
    total: int
    found.append(n or 0)
    return {"x": x + found[0]}


class Box(Generic[T]):
    def __init__(self, item: T):
        self.item = item


@program(given((3,)))
def annotations(x):
    box = Box[int](3)
    value = typing.cast(int, box.item)
    return typed(x, 2), x + value, typed.__annotations__["n"], Box[int], type(box).__name__, Optional[int] == typing.Union[int, None]


@program(given((3,)))
def local_annotations(x):
    y: int = 3
    z: "undefined_name"
    w: list[int] = [y]
    return x + w[0]


@program(given((3,), 7))
def isinstance_with_types_of_typing(x, n):
    return x + isinstance(n, int | str), isinstance(n, collections.abc.Hashable), isinstance([], typing.Sequence), issubclass(bool, int), callable(n)


@program(given((3,)))
def suppress_and_nullcontext(x):
    with contextlib.suppress(KeyError, ValueError):
        x = x + 1
        {}["k"]
        x = x + 100
    with contextlib.nullcontext(5) as n:
        x = x * n
    return x


@program(given((3,)), graphs=None, breaks="the stack of contexts is Python's")
def exit_stack(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "called")
        stack.enter_context(contextlib.nullcontext())
        x = x * 2
    return x, log


@program(given((3,)), graphs=None, breaks="modules of the standard library run as plain Python")
def text_and_data_modules(x):
    import json
    import re

    return x + 1, json.loads('{"a": [1, 2]}'), json.dumps({"b": 1}), re.sub(r"\d", "#", "a1b2"), re.match(r"(\w)", "x").group(1)


@program(given((3,)))
def names_of_types(x):
    return type(x).__name__, type(1) is int, type([]) == list, type(x) is type(x + 1), type(None), int.__name__, x.__class__.__name__, x + 1


@program(given((3,)))
def builtins_of_many_kinds(x):
    return (x * abs(-2), divmod(7, 2), round(2.567, 1), bool([]), int("7"), float(3), complex(1, 2), str(1), repr("a"), list("ab"), tuple([1]),
            dict(a=1), set([1]), frozenset([2]), sum([1, 2]), pow(2, 3), ord("a"), chr(97), hex(10), hash(5), id(x) == id(x), callable(len),
            isinstance(1, (int, str)), issubclass(int, object), slice(1), range(2), bytes(2), all([1]), any([0]), sorted([2, 1]), type(x) is torch.Tensor,
            list(map(str, [1])), next(iter([1])), format(3.14159, ".2f"), len("abc"), min(1, 2), max([3]), iter([]).__class__.__name__)


@program(given((3,)))
def vars_and_dir(x):
    node = Node(x)
    vars(node)["added"] = 3
    return x * node.added, sorted(vars(node)), "value" in dir(node), "no" in dir(node), node.__dict__["value"] is x


@program(given((3,)), graphs=None, breaks="eval and exec make code")
def eval_and_exec(x):
    n = eval("1 + 2")
    names = {}
    exec("m = 5", names)
    return x * n + names["m"]


@program(given((3,)), graphs=None, breaks="locals() shows the frame")
def locals_and_globals(x):
    y = x + 1
    found = locals()
    return sorted(found), found["y"] is y, "Node" in globals(), globals()["CALLS"] is CALLS


@program(given((3,)), graphs=2, breaks="print writes")
def print_in_the_middle(x):
    y = x + 1
    print("between", 5, [1], sep="|", end="!\n")
    return y * 2


@program(given((3,)), graphs=1, breaks="print writes")
def print_at_the_start(x):
    print("start")
    return x * 2


@program(given((3,)), graphs=None, breaks="the text of a tensor needs its values")
def print_of_tensor(x):
    y = (x > 100) + 1
    print(y, y.shape)
    return y + 1


@program(given((3,)), graphs=None, breaks="print writes")
def print_in_a_callee_in_a_loop(x):
    def show(i):
        y = x + i
        print("i", i)
        return y

    return [show(i) for i in range(2)]


@program(given((3,)))
def user_collections(x):
    d = collections.UserDict(a=1)
    d["b"] = x
    items = collections.UserList([1])
    items.append(2)
    return x * len(items), d.data, items.data, list(d)


@program(given((3,)), graphs=None, breaks="weak references see when objects die")
def weak_references(x):
    import weakref

    node = Node(x + 1)
    ref = weakref.ref(node)
    before = ref() is node
    value = node.value
    del node
    return before, ref() is None, value


@program(lambda: (torch.randn(3), [2, 5, 9]), graphs=None, breaks="functions of C change the lists")
def bisect_and_heap(x, items):
    import bisect
    import heapq

    bisect.insort(items, 4)
    heap = []
    for n in (3, 1, 2):
        heapq.heappush(heap, n)
    return x * bisect.bisect(items, 5), heapq.heappop(heap), heap, heapq.nlargest(2, items)


@program(lambda: ([torch.randn(3), torch.randn(3)],), graphs=None, breaks="copies are kept by the ids of their originals")
def copies_with_one_memo(tensors):
    memo = {}
    first = copy.deepcopy(tensors[0], memo)
    second = copy.deepcopy(tensors[1], memo)
    return first + 1, second, first is second


@program(given((3,)), graphs=None, breaks="an id is looked up in a dict that exists")
def ids_in_a_dict_that_exists(x):
    seen = {id(x): [0]}
    print(len(seen))
    for value in (x, seen, x):
        if id(value) in seen:
            seen[id(value)].append(1)
        else:
            seen[id(value)] = [0]
    return x + 1, id(x) in seen, sorted(seen.values(), key=len)


@program(given((3,)), graphs=None, breaks="an id is looked up among numbers")
def ids_among_numbers(x):
    numbers = {1, 2}
    numbers.add(id(x))
    print(len(numbers))
    return id(x) in numbers, x + 1, len(numbers), 2 in numbers
