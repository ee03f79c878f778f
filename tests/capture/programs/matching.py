"""match statements with all patterns."""

import dataclasses
import enum


@dataclasses.dataclass
class Point:
    x: object
    y: object


class Kind(enum.Enum):
    A = 1
    B = 2


class Pair:
    __match_args__ = ("left", "right")

    def __init__(self, left, right):
        self.left = left
        self.right = right


@program([given((3,), 1), given((3,), "two"), given((3,), None), given((3,), 2.5), given((3,), True)])
def literals(x, value):
    match value:
        case 1:
            return x + 1
        case "two" | "three":
            return x + 2
        case None:
            return x + 3
        case True:
            return x + 4
        case -1 | 2.5:
            return x + 5
    return x


@program([lambda: (torch.randn(3), [1, 2]), lambda: (torch.randn(3), (1, 2, 3, 4)), lambda: (torch.randn(3), []), lambda: (torch.randn(3), "ab")])
def sequences(x, value):
    match value:
        case []:
            return x, "empty"
        case [a, b]:
            return x + a * b, "two"
        case [first, *middle, last]:
            return x + first - last, middle
        case _:
            return x * 2, "other"


@program([lambda: (torch.randn(3), {"op": "add", "n": 2}), lambda: (torch.randn(3), {"op": "mul", "n": 3, "extra": 1}), lambda: (torch.randn(3), {}),
          lambda: (torch.randn(3), [])])
def mappings(x, value):
    match value:
        case {"op": "add", "n": n}:
            return x + n
        case {"op": op, "n": n, **rest}:
            return x * n, op, rest
        case {}:
            return x, "mapping"
        case _:
            return x


@program([lambda: (torch.randn(3), Point(0, 5)), lambda: (torch.randn(3), Point(2, 2)), lambda: (torch.randn(3), Pair(1, "r")),
          lambda: (torch.randn(3), 7)])
def classes(x, value):
    match value:
        case Point(x=0, y=n):
            return x + n
        case Point(a, b) if a == b:
            return x * a
        case Pair(left, right="r"):
            return x - left
        case int(n):
            return x + n * 100
    return x


@program([lambda: (torch.randn(3), Kind.A), lambda: (torch.randn(3), Kind.B)])
def values(x, kind):
    match kind:
        case Kind.A:
            return x + 1
        case Kind.B:
            return x + 2


@program([given((3,), 5), given((3,), -5), given((3,), 0)])
def guards(x, n):
    match n:
        case int() if n > 0:
            return x * n
        case k if k < 0:
            return x - k
        case other:
            return x, other


@program([lambda: (torch.randn(3), [("add", 1), ("mul", 2), ("neg",), ("end", 1, 2)])])
def loop_with_match(x, commands):
    for command in commands:
        match command:
            case ("add", n):
                x = x + n
            case ("mul", n):
                x = x * n
            case ("neg",):
                x = -x
            case ("end", *rest):
                break
    return x, rest


@program([lambda: (torch.randn(3), {"a": [Point(1, [2, 3]), 4]}), lambda: (torch.randn(3), {"a": [1, 2]})])
def nested_patterns(x, value):
    match value:
        case {"a": [Point(x=n, y=[_, last]) as point, int() | float() as number]}:
            return x * n + last, point, number
        case {"a": [*items]}:
            return x + sum(items)


@program([lambda: (torch.randn(3),), lambda: (torch.randn(2, 2),)])
def match_on_tensors_and_types(value):
    match value:
        case torch.Tensor(shape=(n,)):
            return value + n
        case torch.Tensor(ndim=2):
            return value.t()
    return None


@program(lambda: (torch.randn(3), (1, [2, {"k": 3}])))
def capture_everything(x, value):
    match value:
        case (a, [b, {"k": c}]) as whole:
            return x + a + b + c, whole


@program(given((3,)))
def no_case_fits(x):
    match 5:
        case 6:
            x = x + 1
        case str() | bytes():
            x = x + 2
    return x * 2


class Wrong:
    __match_args__ = ("a",)
    a = 1


@program(given((3,)), raises="TypeError")
def too_many_positions(x):
    x.add_(1)
    match Wrong():
        case Wrong(1, 2):
            return x


@program([lambda: (torch.randn(3), (2, 3)), lambda: (torch.randn(3), range(2)), lambda: (torch.randn(3), {1, 2}), lambda: (torch.randn(3), b"ab")])
def kinds_of_sequences(x, value):
    match value:
        case (a, b):
            return x + a * b
        case set(s):
            return x + len(s)
        case bytes():
            return x - 1


@program(lambda: (torch.randn(3), {"a": 1, 2: "b", "c": None}))
def keys_of_mappings(x, value):
    match value:
        case {"missing": _}:
            return x
        case {"a": 1 as one, 2: "b", "c": None, **rest}:
            return x + one, rest
