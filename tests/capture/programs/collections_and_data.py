"""Sets, deques, named tuples, data classes, enumerations, ranges and slices."""

import dataclasses
import enum
from collections import deque, namedtuple
from typing import NamedTuple

SEEN = set()
QUEUE = deque(maxlen=3)
Point = namedtuple("Point", ["x", "y"])


class Shape(NamedTuple):
    rows: int
    columns: int = 4

    def area(self):
        return self.rows * self.columns


@dataclasses.dataclass
class Config:
    scale: float
    shift: int = 1
    parts: list = dataclasses.field(default_factory=list)

    def apply(self, x):
        return x * self.scale + self.shift


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: str = "b"


@dataclasses.dataclass
class Checked(Config):
    total: float = dataclasses.field(init=False, default=0.0)

    def __post_init__(self):
        self.total = self.scale + self.shift


class Colour(enum.Enum):
    RED = 1
    GREEN = 2

    def factor(self):
        return self.value * 10


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Option(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@program(lambda: (torch.randn(3), {1, 2, 3}))
def every_mutator_of_set(x, s):
    s.add(4)
    s.discard(1)
    s.discard(99)
    s.remove(2)
    s.update([7, 8], {9})
    s |= {10}
    s &= {3, 4, 7, 8, 10}
    s -= {8}
    s ^= {3, 11}
    s.difference_update([10])
    s.intersection_update({4, 7, 11})
    s.symmetric_difference_update({4, 12})
    return x + len(s), s


@program(given((3,)), check=lambda: SEEN)
def mutate_global_set(x):
    SEEN.add(len(SEEN))
    SEEN.update({"a"})
    return x * len(SEEN)


@program(lambda: (torch.randn(3), {1, 2, 3}, {3, 4}), graphs=0, breaks="it computes no tensor")
def algebra_of_sets(x, a, b):
    return (x, a | b, a & b, a - b, a ^ b, a <= b, a < {1, 2, 3, 4}, a.isdisjoint({9}), a.union(b), {1} == {1.0}, 2 in a,
            frozenset(b), {*a, *b}, {i % 2 for i in range(5)}, a.issuperset([1]), a.copy(), set("aab"))


@program(lambda: (torch.randn(3), {5}))
def pop_and_clear_set(x, s):
    n = s.pop()
    s.add(n + 1)
    taken = sorted(s)
    s.clear()
    return x + n, taken


@program(given((3,)))
def set_of_tensors(x):
    y = x + 1
    s = {x, y, x}
    return len(s), x in s, (x + 1) in s, y


@program(lambda: (torch.randn(3), deque([1, 2, 3])))
def every_mutator_of_deque(x, d):
    d.append(4)
    d.appendleft(0)
    d.extend([5, 6])
    d.extendleft([8, 9])
    a = d.pop()
    b = d.popleft()
    d.rotate(2)
    d.remove(3)
    d.insert(1, 7)
    d[0] = 21
    d.reverse()
    del d[2]
    d += [1]
    ones = d.count(1)
    d[1] = x * 2
    return a, b, d, len(d), ones, list(d)[1:]


@program(given((3,)), check=lambda: QUEUE)
def bounded_deque_in_global(x):
    QUEUE.append(x + 1)
    QUEUE.append(len(QUEUE))
    return sum(q if isinstance(q, int) else 0 for q in QUEUE), QUEUE.maxlen


@program(given((3,)))
def deque_as_window(x):
    window = deque(maxlen=2)
    for i in range(4):
        window.append(x + i)
    return torch.stack(list(window)), window


@program(lambda: (Point(torch.randn(3), 2),))
def named_tuples(p):
    moved = p._replace(y=p.y + 1)
    a, b = p
    return p.x * p.y, moved, Point(x=1, y=a), p[0] is a, p._fields, p._asdict(), isinstance(p, tuple), Point._make([1, 2]), p == moved


@program(lambda: (torch.randn(3), Shape(2)))
def typed_named_tuples(x, s):
    return x * s.area(), s.columns, Shape(5, columns=s.rows), s._replace(rows=9), s < Shape(3)


@program(lambda: (torch.randn(3), Config(2.0)))
def data_classes(x, c):
    y = c.apply(x)
    c.shift += 3
    c.parts.append(y)
    return Config(1.5, parts=[y]), dataclasses.replace(c, scale=0.5), c == Config(2.0), repr(Config(1.0))


@program(given((3,)))
def data_class_that_stays_inside(x):
    c = Config(scale=2.0, shift=5)
    c.scale *= 3
    return c.apply(x)


@program(lambda: (torch.randn(3), Frozen(1)))
def frozen_data_classes(x, f):
    caught = None
    try:
        f.a = 5
    except dataclasses.FrozenInstanceError as error:
        caught = str(error)
    return x + f.a, caught, Frozen(2) > f, hash(f) == hash(Frozen(1)), {f: 1}[Frozen(1)], dataclasses.replace(f, b="c")


@program(given((3,)))
def data_class_with_post_init(x):
    c = Checked(1.5, 2)
    return x * c.total, c, dataclasses.asdict(c), dataclasses.astuple(c), [f.name for f in dataclasses.fields(c)]


@program([lambda: (torch.randn(3), Colour.RED), lambda: (torch.randn(3), Colour.GREEN), lambda: (torch.randn(3), Colour.RED)])
def enumerations(x, colour):
    if colour is Colour.RED:
        x = x + 1
    return x * colour.factor(), colour.name, colour == Colour.GREEN, Colour(2), Colour["RED"], [c.value for c in Colour], len(Colour)


@program([lambda: (torch.randn(3), Level.LOW), lambda: (torch.randn(3), Level.HIGH), lambda: (torch.randn(3), 5)])
def integer_enumerations(x, level):
    return x * level, level > 2, level + 1, level == 5, type(level).__name__, isinstance(level, int)


@program(lambda: (torch.randn(3), Option.A | Option.B))
def flags(x, option):
    if Option.B in option:
        x = x * 2
    return x, option & Option.A, bool(option & ~Option.A), option ^ Option.B


@program(lambda: (torch.randn(3), {Colour.RED: 2, Colour.GREEN: 3}))
def enumerations_as_keys(x, table):
    return x * table[Colour.GREEN], {c: c.value for c in Colour}


@program([given((3,), 4), given((3,), 0), given((3,), 7)])
def ranges(x, n):
    r = range(1, n, 2)
    for i in r:
        x = x + i
    return (x, r, len(r), list(r), 3 in r, r == range(1, n, 2), range(10)[2:8:3], range(5)[-1], list(reversed(range(n))), r.start,
            r.step, bool(range(0)), range(10).index(4))


@program(lambda: (torch.randn(6), slice(1, 5, 2)))
def slices(x, s):
    return x[s], s.start, s.stop, s.step, [0, 1, 2, 3, 4, 5][s], s.indices(4), slice(3), s == slice(1, 5, 2), "abcdef"[s]


@program([lambda: (torch.randn(6), slice(1, 5)), lambda: (torch.randn(6), slice(0, 3)), lambda: (torch.randn(6), 2)])
def slice_changes(x, s):
    return x[s] + 1


@program(lambda: (torch.randn(3), Config(2.0)))
def object_returned_unchanged(x, c):
    c.extra = x + 1
    return c


@program(given((3,)), graphs=0, breaks="it computes no tensor")
def sets_of_strings_in_order(x):
    words = {"b", "a"}
    words.add("c")
    return x, sorted(words), len(words), max(words), "".join(sorted(words - {"a"}))


@program(lambda: (torch.randn(3), {1, 2}), raises="KeyError")
def remove_from_set_fails(x, s):
    s.add(3)
    x.add_(1)
    s.remove(99)
    return x


@program(lambda: (torch.randn(3), bytearray(b"abc"), memoryview(b"xyz")), graphs=None, breaks="buffers are left to Python")
def buffers(x, array, view):
    array.append(100)
    array[0:1] = b"ZZ"
    array.pop()
    return x * view[0], bytes(view[1:]), array, len(view)


@program(given((3,)), graphs=None, breaks="arrays of numbers are left to Python")
def array_of_numbers(x):
    import array

    numbers = array.array("d", [1.0, 2.0])
    numbers.append(3.5)
    return x * numbers[2], numbers.tolist(), len(numbers)


@program([given((3, 4)), given((2, 5))])
def constant_tuple_before_another(x):
    start = (1,)
    for i in range(2):
        start = start + (i,)
    sizes = start + tuple(x.shape)
    mixed = start + (x,)
    return x.reshape(sizes[0], -1) * sizes[2], mixed[3] + len(mixed)
