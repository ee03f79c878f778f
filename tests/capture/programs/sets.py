"""Sets that hold tensors, objects and functions; keys that are objects."""


class Thing:
    pass


class Valued:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, Valued) and self.n == other.n

    def __hash__(self):
        return hash(self.n)


A, B = Thing(), Thing()
TABLE = {A: 1, B: 2}
SET = {1, "a"}


def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@program([lambda: (torch.randn(3), A), lambda: (torch.randn(3), B), lambda: (torch.randn(3), A)])
def objects_as_keys_of_a_global(x, key):
    return x + TABLE[key], key in TABLE, TABLE.get(key)


@program([lambda: (torch.randn(3), A), lambda: (torch.randn(3), Thing()), lambda: (torch.randn(3), B)])
def objects_that_are_no_keys(x, key):
    return x + 1, key in TABLE, TABLE.get(key, 7)


@program([lambda: (torch.randn(3), A, B), lambda: (torch.randn(3), A, A), lambda: (torch.randn(3), B, A)])
def two_objects_as_keys(x, a, b):
    d = {a: 1}
    d[b] = 2
    s = {a, b}
    return x + len(d), d[a], len(s), {a} == {b}, {a} | {b} == s


@program([lambda: (lambda x: (x, torch.randn(3)))(torch.randn(3)), lambda: (lambda x: (x, x))(torch.randn(3))])
def two_tensors_as_keys(x, y):
    d = {x: 1}
    d[y] = 2
    return x + len(d), len({x, y}), x in {y}


@program(lambda: (torch.randn(3), [torch.randn(2), torch.randn(2)]))
def seen_tensors(x, tensors):
    seen, total = set(), x.sum()
    for t in tensors + tensors:
        if t in seen:
            continue
        seen.add(t)
        total = total + t.sum()
    return total, len(seen)


@program(given((3,)))
def algebra_with_tensors(x):
    y, z = x + 1, x + 2
    a, b = {x, y, 1}, {y, z, 1}
    a.discard(x)
    a.add(x)
    b.remove(z)
    return (len(a | b), len(a & b), len(a - b), len(a ^ b), b <= a, a.isdisjoint({z}), y in (a & b), a.union([z]) == {x, y, z, 1},
            frozenset([x]) == {x}, y)


@program(given((3,)))
def sets_of_functions_and_classes(x):
    known = {len, Thing, objects_as_keys_of_a_global}
    known.add(Thing)
    return x + len(known), len in known, Valued in known


@program(given((3,)))
def set_of_one_object_is_returned(x):
    y = x + 1
    s = {y}
    s.add(3)
    return len(s), y in s, s - {y}


@program(given((3,)))
def unhashable(x):
    return (x + 1, caught(lambda: {[]}), caught(lambda: {} in SET), caught(lambda: {}[[1]]), caught(lambda: {}[1:2]), caught(set, [[1]]),
            caught(lambda: SET.add({})))


@program(given((3,)), graphs=None, breaks="only the class knows when its objects are equal")
def equal_objects(x):
    s = {Valued(1), Valued(1), Valued(2)}
    return x + len(s), Valued(2) in s, {Valued(1): 3}[Valued(1)]


@program(given((3,)))
def sets_of_constants(x):
    s = {3, 1}
    s.add((1, 2))
    s |= {None}
    t = frozenset(s)
    t |= {9}
    u = s.copy()
    u.pop()
    u.clear()
    return x + len(s), s, t, u, sorted(s & {1, 3}), {1, True, 1.0}, {1.0} | {1}, {0} & {False}


@program([lambda: (torch.randn(3), {1, 2}), lambda: (torch.randn(3), {1, 3}), lambda: (torch.randn(3), set())])
def sets_as_arguments(x, s):
    for n in s:
        x = x * n
    s.add(len(s))
    return x + 1, s, 1 in s


@program(lambda: (torch.randn(3), {1, 2}, frozenset({3})))
def methods_of_frozensets(x, s, f):
    return x + 1, f | s, s | f, f.union([7]), f.copy() is f, {f: 1}[frozenset({3})], f.isdisjoint(s), caught(lambda: f.add(1))


@program([lambda: (torch.randn(3), float("nan"), float("nan")), lambda: (lambda n: (torch.randn(3), n, n))(float("nan"))],
         graphs=None, breaks="two NaN may be one object")
def not_a_number(x, a, b):
    return x + 1, a in [b], [a].count(b), a == b, (a,) == (b,)


def large():
    s = set(range(100))
    s.difference_update(n for n in range(100) if n not in (5, 40, 72))
    return s


@program([lambda: (torch.randn(3), large()), lambda: (torch.randn(3), {40, 5, 72, 1})], graphs=None,
         breaks="the order after changes depends on elements that were taken out")
def orders_of_changed_sets(x, s):
    s.discard(72)
    s.add(3)
    made = set(range(100))
    made.intersection_update([40, 5])
    return x + 1, list(s), list(made), s, made, [n for n in s]


@program(lambda: (torch.randn(3), large()))
def order_is_kept(x, s):
    s.add(8)
    s.discard(5)
    return x + len(s), s
