"""Every method that changes a container, on containers from everywhere."""

import array
from collections import Counter, OrderedDict, defaultdict, deque


def change_list(c, n):
    c.append(n)
    c.extend((n + 1, n + 2))
    c += [5]
    c.insert(1, -n)
    c.insert(-100, 4)
    a = c.pop()
    b = c.pop(0)
    c.remove(n)
    c.sort(reverse=True)
    c.sort(key=lambda i: i % 5)
    c.reverse()
    c[0] = n * 2
    c[-1:] = [8, 9]
    c[::2] = [i + 1 for i in c[::2]]
    del c[0]
    del c[3:]
    c.__setitem__(0, 3)
    c.__iadd__([1])
    c *= 2
    return a, b, len(c)


def change_dict(c, n):
    c[n] = n
    c["k"] = c.get("k", 0) + n
    c.update({"a": n}, b=n)
    c.update([("p", 1)])
    c |= {"q": n}
    a = c.pop("p")
    b = c.pop("none", None)
    d = c.setdefault("list", [])
    d.append(n)
    c["end"] = n
    e = c.popitem()
    del c["k"]
    c.__setitem__("s", n)
    c.__delitem__("s")
    return a, b, e[0], len(c)


def change_set(c, n):
    c.add(n)
    c.add(n)
    c.update({1, 2}, (n + 1,))
    c |= {30}
    c.discard(1)
    c.discard("none")
    c.remove(30)
    c &= set(range(20))
    c -= {3}
    c ^= {4, 5}
    c.intersection_update(range(15))
    c.difference_update({5}, [6])
    c.symmetric_difference_update([6, 7])
    only = {n}
    return only.pop(), len(c), sorted(c)


def change_deque(c, n):
    c.append(n)
    c.appendleft(-n)
    c.extend([1, 2])
    c.extendleft([3, 4])
    c += (5,)
    a = c.pop()
    b = c.popleft()
    c.rotate(1)
    c.rotate(-2)
    c.append(1)
    c.remove(1)
    if len(c) < 6:
        c.insert(1, n)
    c[0] = n + 1
    c.reverse()
    del c[1]
    return a, b, list(c)


def change_ordered_dict(c, n):
    c[n] = 1
    c["first"] = n
    c.move_to_end("first", last=False)
    c["last"] = n
    c.move_to_end(n)
    a = c.popitem(last=False)
    c.update(z=n)
    del c["last"]
    c["z"] += 1
    return a, list(c)


def change_default_dict(c, n):
    c["a"].append(n)
    c[n].append(1)
    c.setdefault("b", []).append(n)
    a = len(c["new"])
    c.pop("new")
    c |= {"d": [0]}
    c["d"] += [n]
    return a, len(c), c.get("none")


def change_counter(c, n):
    c["a"] += n
    c.update("ab", b=2)
    c.subtract(["a", "c"])
    c += Counter(z=1)
    c["zero"] = 0
    del c["no such key"]
    return c.most_common(1), c["none"], c.total()


def change_bytearray(c, n):
    c.append(n)
    c.extend(b"xy")
    c += b"z"
    c.insert(0, 65)
    c[1:2] = b"QQ"
    c[0] += 1
    a = c.pop()
    del c[2]
    c.reverse()
    c.remove(c[0])
    return a, bytes(c)


KINDS = {
    "list": (change_list, lambda: [3, 1, 2]),
    "dict": (change_dict, lambda: {"x": 1, "y": [2]}),
    "set": (change_set, lambda: {1, 2, 3}),
    "deque": (change_deque, lambda: deque([7, 8], maxlen=9)),
    "ordered_dict": (change_ordered_dict, lambda: OrderedDict(u=1, v=2)),
    "default_dict": (change_default_dict, lambda: defaultdict(list, e=[1])),
    "counter": (change_counter, lambda: Counter("abb")),
    "bytearray": (change_bytearray, lambda: bytearray(b"abc")),
}
HELD = None


class Holder:
    held = None


HOLDER = Holder()
TABLE = {}


def in_argument(change, make):
    def run(x, c):
        found = change(c, 7)
        return x + len(c), found

    return run, {"calls": lambda: (torch.randn(2), make())}


def in_global(change, make):
    def run(x):
        found = change(HELD, 7)
        return x + len(HELD), found

    return run, {"setup": lambda: globals().update(HELD=make()), "check": lambda: HELD}


def in_class(change, make):
    def run(x):
        found = change(Holder.held, 7)
        return x + len(Holder.held), found

    return run, {"setup": lambda: setattr(Holder, "held", make()), "check": lambda: Holder.held}


def in_instance(change, make):
    def run(x):
        found = change(HOLDER.held, 7)
        return x + len(HOLDER.held), found

    return run, {"setup": lambda: setattr(HOLDER, "held", make()), "check": lambda: HOLDER}


def in_item(change, make):
    def run(x):
        found = change(TABLE["held"], 7)
        return x + len(TABLE["held"]), found

    return run, {"setup": lambda: TABLE.update(held=make()), "check": lambda: TABLE}


def in_cell(change, make):
    held = make()

    def run(x):
        found = change(held, 7)
        return x + len(held), found, held

    return run, {}


def in_default(change, make):
    def run(x, c=make()):
        found = change(c, 7)
        return x + len(c), found, c

    return run, {}


def in_result(change, make):
    def run(x):
        c = make()
        found = change(c, 7)
        return x + len(c), found, c

    return run, {}


def in_tuple_with_alias(change, make):
    def run(x, pair):
        found = change(pair[0], 7)
        return x + len(pair[1]), found, pair[0] is pair[1]

    return run, {"calls": lambda: (lambda c: (torch.randn(2), (c, c)))(make())}


def behind_a_break(change, make):
    def run(x, c):
        y = x + 1
        first = change(c, 7)
        print(len(c))
        second = change(c, 9)
        return y * len(c), first, second

    return run, {"calls": lambda: (torch.randn(2), make()), "graphs": 2, "breaks": "print writes"}


ORIGINS = (in_argument, in_global, in_class, in_instance, in_item, in_cell, in_default, in_result, in_tuple_with_alias, behind_a_break)
for kind, (change, make) in KINDS.items():
    for origin in ORIGINS:
        run, options = origin(change, make)
        run.__name__ = f"{kind}_{origin.__name__}"
        if kind == "bytearray":
            options.update(graphs=None, breaks="bytearray is left to Python")
        program(options.pop("calls", given((2,))), **options)(run)
del kind, change, make, origin, run, options


@program(lambda: (torch.randn(2), [1, 2]), raises="ValueError")
def half_of_the_changes_happen(x, items):
    items.append(3)
    x.add_(1)
    items.remove(99)
    items.append(4)


@program(lambda: (torch.randn(2), array.array("i", [1, 2])), graphs=None, breaks="arrays of numbers are left to Python")
def array_of_integers(x, numbers):
    numbers.append(3)
    numbers.extend([4, 5])
    numbers[0] = 9
    numbers.reverse()
    return x * numbers[0], numbers.pop(), len(numbers), numbers.tolist()
