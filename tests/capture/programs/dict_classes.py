"""Counter, classes derived from dict with methods of their own, and heapq."""

import collections
import copy
import heapq
from collections import Counter

TOTAL = Counter(a=1)


def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, error.args


@program(given((3,)))
def counter_of_text(x):
    c = Counter("abracadabra")
    c.update("aab")
    c.update({"z": 5}, a=2)
    c["q"] += 1
    del c["never"]
    return x + c["a"], c, c["none"], "none" in c, len(c), c.total(), list(c.elements()), dict(c), bool(Counter())


@program(given((3,)))
def most_common(x):
    c = Counter("mississippi river")
    return x * c.most_common(1)[0][1], c.most_common(), c.most_common(2), c.most_common(100), Counter().most_common(3)


@program(given((3,)))
def counters_as_numbers(x):
    a, b = Counter(a=3, b=1, n=-2), Counter(a=1, b=2, z=4)
    c = a + b
    c += Counter(q=1)
    c -= {"a": 2}
    d = a | b
    d &= Counter(a=9, z=1)
    e = Counter(a)
    e.subtract("ab")
    e.subtract(b)
    return x + c["a"], c, a - b, a & b, d, +a, -a, e, a | {"k": 1}, {"k": 1} | a, caught(lambda: a + {}), caught(lambda: a + 1)


@program(given((3,)))
def counters_compared(x):
    a, b = Counter("ab"), Counter("abb")
    return x + 1, a == Counter(a=1, b=1, c=0), a != b, a <= b, a < b, a >= b, b > a, a == {"a": 1, "b": 1}, {"a": 1} == a, a == 1, caught(lambda: a < 1)


@program(given((3,)))
def texts_of_counters(x):
    c = Counter("abb")
    return x + 1, repr(c), str(c), f"{c} {c!r}", str(Counter()), "{}".format(c), caught(Counter.fromkeys, "ab"), caught(Counter, 1)


@program(lambda: (torch.randn(3), Counter("abca")))
def counter_as_argument(x, c):
    c["b"] += 2
    c.update(["c", "d"])
    del c["a"]
    c["a"] = 7
    d = c.copy()
    d["only"] = 1
    return x * c["b"], c["none"], c, d, copy.copy(c), type(d).__name__, c.pop("c"), c.setdefault("e", 3), list(c)


@program(given((3,)), check=lambda: TOTAL)
def counter_in_a_global(x):
    global TOTAL
    TOTAL["a"] += 1
    TOTAL += Counter(b=2)
    return x + TOTAL["b"], TOTAL.most_common(1)


@program(given((3,)))
def counter_of_tensors(x):
    c = Counter()
    c["sum"] += x
    c["sum"] += x * 2
    c["n"] += 1
    return c["sum"] / c["n"], c


class Defaults(dict):
    """Attributes are items, keys are small letters."""

    made = 0

    def __init__(self, *args, tag="none", **kwargs):
        super().__init__(*args, **kwargs)
        self.tag = tag

    def __missing__(self, key):
        return "no " + key

    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)

    def __getitem__(self, key):
        return super().__getitem__(key.lower())

    def __contains__(self, key):
        return super().__contains__(key.lower())

    def doubled(self):
        return {key: value * 2 for key, value in self.items()}


@program(given((3,)))
def derived_dict(x):
    d = Defaults({"A": 1}, tag="t", b=2)
    d["C"] = x + 1
    d.update(D=4)
    d.setdefault("E", 5)
    return d, d.tag, d["c"], d["zz"], "C" in d, "D" in d, d.get("D"), d.get("d"), len(d), list(d), d.doubled(), isinstance(d, dict), type(d)(q=1)


@program([lambda: (torch.randn(3), Defaults(a=1, b=2)), lambda: (torch.randn(3), Defaults(tag="other"))])
def derived_dict_as_argument(x, d):
    d["NEW"] = x + 1
    d.tag = d.tag + "!"
    d.other = 1
    found = d["a"], d["none"], {**d}, dict(d), list(reversed(d)), bool(d)
    del d["new"]
    return x, found, d, vars(d)


class Strange(dict):
    def __len__(self):
        return 7

    def __iter__(self):
        return iter(["x", "y"])

    def keys(self):
        return ["p"]

    def __eq__(self, other):
        return "equal"

    def __or__(self, other):
        return "or", other

    def __ror__(self, other):
        return "ror", other

    def __repr__(self):
        return "strange"

    def __getitem__(self, key):
        return "item " + key


@program(given((3,)))
def every_method_is_overridden(x):
    s = Strange(a=1)
    return (x + 1, len(s), list(s), dict(s), {**s}, s == {}, {} == s, s | {}, ({} | s), repr(s), f"{s}", sorted(s), list(s.items()),
            list(s.values()), dict.__len__(s), dict.__getitem__(s, "a"), caught(lambda: dict.__getitem__(s, "z")), "a" in s, s.get("a"), s["q"])


class Empty(dict):
    def __bool__(self):
        return False


class Plain(dict):
    pass


@program(given((3,)))
def derived_without_methods(x):
    p = Plain(a=1)
    p.attribute = x + 1
    q = p | {"b": 2}
    r = {"c": 3} | p
    p |= {"d": 4}
    return p, p.attribute, type(q), q, r, type(p).__name__, str(p), p == {"a": 1, "d": 4}, p != p.copy(), type(p.copy()), bool(Empty(a=1)), not Plain(), caught(lambda: p < q)


class Items(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


@program(lambda: (torch.randn(3), Items(a=1, b=2)))
def items_as_attributes(x, d):
    d.c = x * d.a
    del d.b
    e = Items()
    e.inner = Items(z=2)
    return d.c, d, e.inner.z, caught(lambda: d.none), hasattr(e, "inner")


class Mapping:
    def __init__(self, n):
        self.n = n

    def keys(self):
        return [str(i) for i in range(self.n)]

    def __getitem__(self, key):
        return key * 2


@program(given((3,)))
def mapping_that_is_no_dict(x):
    d = dict(Mapping(2), more=1)
    d.update(Mapping(3))
    return x + 1, d, dict(collections.ChainMap({"a": 1}, {"b": 2})), Counter(collections.ChainMap({"a": 1}, {"b": 2}))


@program(given((3,)))
def heaps(x):
    h = [5, 3, 8, 1, 9, 2]
    heapq.heapify(h)
    first = list(h)
    heapq.heappush(h, 0)
    popped = [heapq.heappop(h) for _ in range(3)]
    replaced = heapq.heapreplace(h, 7), heapq.heappushpop(h, 1), heapq.heappushpop(h, 6)
    return (x + h[0], first, popped, replaced, h, heapq.nlargest(2, [4, 1, 7, 5]), heapq.nsmallest(2, [4, 1, 7, 5]), heapq.nsmallest(3, "hello", key=ord),
            list(heapq.merge([1, 4], [2, 3])), caught(heapq.heappop, []), caught(heapq.heapreplace, [], 1))


class Task:
    def __init__(self, level, value):
        self.level, self.value = level, value

    def __lt__(self, other):
        return self.level < other.level


@program(lambda: (torch.randn(3), [(2, "b"), (5, "c")]))
def heap_of_objects(x, heap):
    tasks = [Task(n, x * n) for n in (3, 1, 2)]
    heapq.heapify(tasks)
    heapq.heappush(heap, (1, "a"))
    order = [heapq.heappop(tasks).level for _ in range(2)]
    mixed = [1, 2, 3]
    failed = caught(heapq.heappush, mixed, "text")
    return tasks[0].value, order, heap, heapq.heappop(heap), failed, mixed
