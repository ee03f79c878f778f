"""OrderedDict, defaultdict, ChainMap, Counter, subclasses of dict, dicts that change while they are iterated over."""

import collections
from collections import ChainMap, Counter, OrderedDict, defaultdict

ORDERED = OrderedDict(a=1, b=2, c=3)
LISTS = defaultdict(list)


def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, error.args


@program(lambda: (torch.randn(3), OrderedDict(a=1, b=2, c=3)))
def ordered(x, d):
    d.move_to_end("a")
    before = list(d)
    d.move_to_end("c", last=False)
    first = d.popitem(last=False)
    last = d.popitem()
    d["z"] = x + 1
    d.move_to_end("z", False)
    return before, first, last, d, list(reversed(d)), caught(d.move_to_end, "none"), d.copy()


@program(given((3,)))
def order_in_comparisons(x):
    a, b = OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)
    return x + 1, a == b, a == dict(b), a != b, dict(a) == dict(b), OrderedDict(a=1) == {"a": 1}, a == OrderedDict(a)


@program(given((3,)), check=lambda: list(ORDERED.items()))
def ordered_global(x):
    ORDERED.move_to_end(next(iter(ORDERED)))
    ORDERED["n"] = len(ORDERED)
    del ORDERED["n"]
    ORDERED["n"] = x + 1
    return list(ORDERED)[0], x + 1


@program(given((3,)), check=lambda: LISTS)
def default_in_global(x):
    LISTS["a"].append(1)
    LISTS["b"].extend([x + 1])
    return len(LISTS), LISTS.default_factory, "c" in LISTS, LISTS.get("c"), caught(lambda: defaultdict()["k"])


@program([lambda: (torch.randn(3), defaultdict(int)), lambda: (torch.randn(3), defaultdict(lambda: 5)), lambda: (torch.randn(3), defaultdict(None))])
def default_as_argument(x, d):
    found = caught(lambda: d["k"])
    return x + 1, found, d, d.copy(), type(d.copy()).__name__


@program(given((3,)))
def default_that_is_made(x):
    counts, nested = defaultdict(int, a=2), defaultdict(lambda: defaultdict(list))
    for c in "abca":
        counts[c] += 1
    nested["p"]["q"].append(x + 1)
    return counts, nested["p"]["q"], dict(counts), list(nested), isinstance(counts, dict), caught(lambda: defaultdict(3))


@program(given((3,)))
def chain_map(x):
    base, over = {"a": 1, "b": x}, {"a": 2}
    both = ChainMap(over, base)
    both["c"] = 3
    child = both.new_child({"d": 4})
    return x + both["a"], both["b"] is x, over, "c" in base, child["d"], child["a"], both.get("zz", 7), caught(lambda: both["zz"])


@program(given((3,)))
def counters(x):
    c = Counter("abca")
    c.update("a")
    c["z"] -= 1
    return x + c["a"], c["none"], c.most_common(1), sorted(c.elements()), c + Counter(a=1), c == Counter(a=3, b=1, c=1, z=-1)


class Tagged(dict):
    pass


class Attribute(OrderedDict):
    kind = "class"


@program(lambda: (torch.randn(3), (lambda d: (setattr(d, "tag", 5), d)[1])(Tagged(a=1)), Attribute(b=2)))
def attributes_of_dicts(x, d, e):
    return x + d["a"], getattr(d, "tag", None), getattr(d, "none", 3), hasattr(e, "kind"), e.kind, d.copy().__class__.__name__


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}))
def size_changes_in_a_loop(x, d):
    seen = []
    try:
        for key in d:
            seen.append(key)
            d[key + key] = 1
    except RuntimeError as error:
        seen.append(str(error))
    try:
        for key in list(d):
            del d[key]
        for key in d.items():
            pass
        it = iter(d)
        d["n"] = 1
        next(it)
    except RuntimeError as error:
        seen.append(str(error))
    return x + 1, seen, d


@program(lambda: (torch.randn(3), {"a": 1}))
def size_changes_behind_the_last_key(x, d):
    seen = []
    try:
        for key in d:
            d["other"] = 2
            seen.append(key)
    except RuntimeError as error:
        seen.append(str(error))
    return x + 1, seen


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}), graphs=None, breaks="keys are replaced in a loop")
def keys_are_replaced_in_a_loop(x, d):
    seen = []
    try:
        for key in d:
            seen.append(key)
            del d[key]
            d[key + "!"] = 1
            if len(seen) > 5:
                break
    except RuntimeError as error:
        seen.append(str(error))
    return x + 1, seen


@program(lambda: (torch.randn(3), OrderedDict(a=1, b=2)))
def ordered_changes_in_a_loop(x, d):
    seen = []
    try:
        for key in d:
            seen.append(key)
            d.move_to_end("a")
    except RuntimeError as error:
        seen.append(str(error))
    return x + 1, seen


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}))
def values_change_in_a_loop(x, d):
    for key, value in d.items():
        d[key] = value + 1
        d["b"] = 7
    return x + 1, d, [v for v in d.values()]


@program(lambda: (torch.randn(3), {1: "a"}, OrderedDict({2: "b"})), graphs=None, breaks="the class of the right dict decides")
def joined_dicts(x, d, e):
    return x + 1, d | {3: "c"}, type(d | e).__name__, type(e | d).__name__, d | e


@program(given((3,)))
def views(x):
    d = {"a": x, "b": 2}
    keys, values, items = d.keys(), d.values(), d.items()
    d["c"] = x + 1
    return len(keys), "c" in d, ("b", 2) in items, "c" in keys, list(keys), type(keys).__name__, list(d.items())[1]
