"""Dictionaries and their relatives."""

from collections import ChainMap, Counter, OrderedDict, defaultdict

CACHE = {}
SETTINGS = {"scale": 2, "nested": {"deep": [1]}}


class Store:
    table = {"a": 1}


@program(given((3,)))
def literals(x):
    a = "key"
    return {}, {"a": x, "b": x + 1}, {a: 1, "b": 2}, {**{"x": 1}, "y": x}, dict(a=1, b=x), dict([("c", 3)]), {1: "i", 2.5: "f", (1, 2): "t", None: x}


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}))
def every_mutator_on_argument(x, d):
    d["c"] = x + 1
    d["a"] += 5
    del d["b"]
    a = d.pop("a")
    b = d.pop("missing", 7)
    c = d.setdefault("s", [])
    c.append(1)
    d.update({"u": 1}, v=2)
    d |= {"w": 3}
    last = d.popitem()
    return a, b, last, d


@program(lambda: (torch.randn(3), {"a": 1}))
def clear_and_copy(x, d):
    e = d.copy()
    d.clear()
    d["new"] = x * e["a"]
    return e


@program(given((3,)), check=lambda: CACHE)
def mutate_global(x):
    n = CACHE.setdefault("count", 0) + 1
    CACHE["count"] = n
    CACHE[n] = x * n
    return x + n


@program(given((3,)), check=lambda: Store.table)
def mutate_dict_of_class(x):
    Store.table["a"] += 1
    Store.table[len(Store.table)] = x + 1
    return x * Store.table["a"]


@program(given((3,)), makes=True)
def mutate_dict_in_cell():
    counts = {}

    def count(x):
        counts["calls"] = counts.get("calls", 0) + 1
        counts.update(last=x + counts["calls"])
        return counts

    return count


@program(given((3,)), check=lambda: SETTINGS)
def mutate_nested(x):
    SETTINGS["nested"]["deep"].append(len(SETTINGS["nested"]["deep"]))
    SETTINGS["nested"]["more"] = {"x": x}
    return x * SETTINGS["scale"]


@program(lambda: (torch.randn(3), {"a": 1, "b": 2, "c": 3}))
def iterate_in_all_ways(x, d):
    keys = [k for k in d]
    for key, value in d.items():
        x = x + value
    for value in d.values():
        x = x * value
    for key in d.keys():
        keys.append(key + "!")
    return x, keys, list(d), list(reversed(d)), sorted(d.items(), reverse=True), list(zip(d, d.values()))


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}))
def questions(x, d):
    return (x + len(d), "a" in d, "z" not in d, d.get("z"), d.get("a", 5), d == {"b": 2, "a": 1}, bool(d), d.keys() & {"a"},
            "b" in d.keys(), 2 in d.values(), ("a", 1) in d.items(), d.keys() == {"a", "b"}, d | {"c": 3})


@program(lambda: (torch.randn(3), {"a": 1}), raises="KeyError")
def missing_key(x, d):
    d["before"] = x + 1
    return d["missing"]


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}), raises="RuntimeError")
def grows_while_iterated(x, d):
    for key in d:
        d[key + key] = x + 1
    return d


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}))
def values_change_while_iterated(x, d):
    for key in d:
        d[key] = x + d[key]
    return d


@program([lambda: (torch.randn(3), {"a": 1, "b": 2}), lambda: (torch.randn(3), {"b": 2, "a": 1}),
          lambda: (torch.randn(3), {"a": 1, "b": 2, "c": 3})])
def order_of_keys_changes(x, d):
    for key, value in d.items():
        x = x * value + (1 if key == "a" else 0)
    return x, list(d)


@program([lambda: (torch.randn(3), {"a": 1}), lambda: (torch.randn(3), {"a": 1, "b": 7}), lambda: (torch.randn(3), {"b": 3})])
def presence_of_key_changes(x, d):
    if "b" in d:
        return x + d["b"]
    return x + d.get("a", 0)


@program(lambda: ({"x": torch.randn(3), "y": torch.randn(3)},))
def tensors_in_dict(d):
    d["sum"] = d["x"] + d["y"]
    d["x"].add_(1)
    return {key: value * 2 for key, value in d.items()}


@program(lambda: (torch.randn(3), torch.randn(3)))
def tensors_as_keys(x, y):
    d = {x: 1, y: 2}
    d[x] += 10
    return x + d[x], d[y], x in d


@program(lambda: (torch.randn(3), {1: "int", "1": "str"}), graphs=0, breaks="it computes no tensor")
def keys_that_are_equal(x, d):
    d[True] = "bool"
    d[1.0] = "float"
    return x, d, d[1], d.get(True)


@program(lambda: (torch.randn(3), OrderedDict(a=1, b=2, c=3)))
def ordered_dicts(x, d):
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    first = d.popitem(last=False)
    d["d"] = x + 1
    return first, list(d), OrderedDict([("x", x)]), list(reversed(d))


@program(lambda: (torch.randn(3), defaultdict(list)))
def default_dicts(x, d):
    d["a"].append(x + 1)
    d["a"].append(2)
    n = len(d["b"])
    counts = defaultdict(int, start=3)
    counts["start"] += 1
    counts["other"] += 1
    return n, counts, "c" in d, d.default_factory is list


@program(lambda: (torch.randn(3), Counter("abca")))
def counters(x, c):
    c["a"] += 5
    c.update("bb")
    c.subtract({"c": 1})
    return x * c["b"], c["none"], c.most_common(1), c + Counter(a=1), sorted(c.elements()), sum(c.values())


@program(lambda: (torch.randn(3), {"a": 1}, {"a": 2, "b": 3}))
def chained_maps(x, a, b):
    chain = ChainMap(a, b)
    chain["c"] = 5
    return x + chain["a"] + chain["b"], a, list(chain), chain.get("z", 0)


@program(lambda: (torch.randn(3), [("a", 1), ("b", 2)]))
def made_from_other_values(x, pairs):
    return dict(pairs), dict(zip("xy", [x, x + 1])), dict.fromkeys(["p", "q"], 0), {k: v for k, v in pairs}, {v: k for k, v in pairs}


class Attributes(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


@program(lambda: (torch.randn(3), Attributes(scale=3)))
def attributes_are_items(x, d):
    d.shift = x + d.scale
    return d.shift, d, hasattr(d, "none"), getattr(d, "none", 4)


class Missing(dict):
    def __missing__(self, key):
        value = self[key] = key * 2
        return value


@program(lambda: (torch.randn(3), Missing(a=1)))
def missing_method(x, d):
    return x + d[3], d["a"], d, d.get(9)


@program(lambda: (torch.randn(3), {"b": 2, "a": 1}))
def keywords_from_dict(x, d):
    def f(x, a, b=0, **rest):
        return x * a + b, rest

    return f(x, **d), f(x, **{**d, "c": 3}), f(x, **{"a": 5}, **{"z": 1})


@program(lambda: (torch.randn(3), {"a": {"b": {"c": 1}}}))
def walk_nested(x, d):
    node = d
    depth = 0
    while isinstance(node, dict):
        node = next(iter(node.values()))
        depth += 1
    return x * depth + node


@program(lambda: (lambda d: (torch.randn(3), d, d))({"n": 1}))
def same_dict_twice(x, a, b):
    a["n"] = 5
    b["m"] = x
    return x + b["n"], a is b


@program(lambda: (torch.randn(3), {"a": 1, "b": 2}))
def views_follow_changes(x, d):
    keys, items = d.keys(), d.items()
    d["c"] = 3
    return x + len(keys), list(keys), list(items), type(keys).__name__


@program(lambda: (torch.randn(3), {"a": 1}), graphs=0, breaks="it computes no tensor")
def delete_and_insert_again(x, d):
    d["b"] = 2
    d["a"] = d.pop("a")
    del d["b"]
    d["b"] = x
    return list(d)


@program(lambda: (torch.randn(3), {"a": 4, "b": 3, "c": 2}), graphs=None, breaks="the dict changes while it is iterated over")
def keys_come_back_while_iterated(x, d):
    seen = []
    try:
        for key in d:
            seen.append(key)
            for _ in range(3):
                d["a"] = d.pop("b")
                d["b"] = 5
    except RuntimeError as error:
        seen.append(str(error))
    return x + 1, seen, list(d.items())


def keys_in_turn(d, number):
    for _ in range(number):
        d["b"] = d.pop("b")
        d["t"] = 0
        del d["t"]


@program(lambda: (torch.randn(3), {"a": 4, "b": 3, "c": 2}), graphs=None, breaks="an iterator from outside")
def keys_change_under_an_iterator(x, d):
    results = []
    for number in range(4):
        keys = iter(d)
        seen = [next(keys)]
        keys_in_turn(d, number)
        try:
            seen += list(keys)
        except RuntimeError as error:
            seen.append(str(error))
        results.append((seen, list(d)))
    return x + 1, results


def refilled(d):
    kept = dict(d)
    d.clear()
    d.update(kept)


@program(lambda: (torch.randn(3), {"a": 4, "b": 3, "c": 2}), graphs=None, breaks="the dict changes while it is iterated over")
def dict_is_refilled_while_iterated(x, d):
    seen = []
    try:
        for key, value in d.items():
            seen.append(key)
            refilled(d)
    except RuntimeError as error:
        seen.append(str(error))
    return x + 1, seen, list(d.items())


@program(lambda: (torch.randn(3), {"a": 4, "b": 3}))
def dict_is_cleared_and_filled(x, d):
    d["c"] = 1
    d.clear()
    d["b"] = 2
    d["a"] = x
    d["z"] = 3
    d.pop("z")
    return x + 1, list(d), len(d)


@program(given((3,)))
def large_dict_literal(x):
    table = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 10, "k": 11, "l": 12, "m": 13, "n": 14,
             "o": 15, "p": 16, "q": 17, "r": 18, "s": x, "t": x}
    return x * len(table), table["r"]


@program(lambda: (torch.randn(3), {"a": 1}))
def errors_of_dicts(x, d):
    caught = []
    for attempt in (lambda: d["z"], lambda: d.pop("z"), lambda: {}.popitem(), lambda: d.__delitem__("z"), lambda: {[]: 1}):
        try:
            attempt()
        except (KeyError, TypeError) as error:
            caught.append((type(error), error.args))
    return x + 1, caught
