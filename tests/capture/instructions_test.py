"""Each instruction of CPython is captured in a function below, or docs/compile.md tells why it ends a graph."""

import dis
import os
import re
import types
import unittest

import wick
import wick.compiler
from wick import torch

# Parts of other instructions or of other kinds of code: no instruction of a function that runs by itself.
SILENT = {"CACHE", "EXTENDED_ARG", "PRINT_EXPR", "IMPORT_STAR"}


class Pair:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


COUNT = 0


def arithmetic(x):
    a, b = 5, 3
    b += a
    items = [a, b]
    items[0] = -a
    del items[1]
    return x * +a + ~b, not a, a < b, a in items, a is None, f"{a!r:>4}{b}", items[0]


def containers(x):
    a, *rest = 1, 2, 3
    b, c = rest
    parts = [a, *rest]
    found = {a, *rest}
    names = {"k": a, **{"m": b}}
    constant = {"p": a, "q": b}
    return x + a, parts, (*parts, c), found, names, constant, parts[a:b], {i: i for i in parts}, {i for i in parts}, [i for i in parts], {a: b}


def jumps(x):
    n = 0
    while n < 3:
        n += 1
        if n == 2 and x is not None or n > 5:
            continue
    while n is not None:
        n = None
    while n is None:
        n = 1
    while not n == 2:
        n = 2
    for i in range(2):
        x = x + i
    y = None
    if y is None:
        y = 1
    if y is not None:
        y = n or 3
    assert y
    if not y:
        return x
    z = y if y else n
    do = 0
    while True:
        do += 1
        if do > 3:
            break
    return x + z, (n and y)


def calls(x, *args, **kwargs):
    def inner(a, b=2, *, c: int = 3):
        return a + b + c

    part = lambda: x
    return inner(1, b=3) + inner(*[1], **{"c": 2}), part(), x.relu(), max(1, 2)


def closures(x):
    total = 1

    def add(n):
        nonlocal total
        total += n
        return total

    add(2)
    value = total
    del total
    return x + value


def globals_and_attributes(x):
    global COUNT, FRESH
    COUNT = COUNT + 1
    FRESH = 2
    del FRESH
    pair = Pair(1, 2)
    pair.a = 5
    del pair.b
    n = pair.a
    del n
    return x + pair.a


def exceptions(x):
    try:
        with Pair(1, 2) as pair:
            x = x + pair.a
            raise ValueError("in with")
        try:
            raise KeyError("k") from None
        finally:
            x = x + 1
    except (KeyError, ValueError) as error:
        return x, type(error).__name__


def generators(x):
    def numbers(n):
        got = yield n
        yield from (n, got)
        return 5

    def outer():
        yield (yield from numbers(1))

    return x + 1, list(outer()), sum(i for i in range(3))


def patterns(x, subject):
    match subject:
        case {"k": value, **rest}:
            return x + value, rest
        case [a, b]:
            return x + a + b
        case Pair(a=1, b=other):
            return x + other
        case _:
            return x


def imports(x):
    import math
    from os import path

    return x * math.floor(2.5), path is os.path


def wide(x):
    a, b, c = 1, 2, 3
    a, b = b, a
    a, b, c = c, a, b
    x[0:1]
    x + 1
    return x + a, b, c, __name__


X = torch.tensor([1.0, 2.0])
CALLS = [(arithmetic,), (containers,), (jumps,), (calls,), (closures,), (globals_and_attributes,), (exceptions,), (generators,),
         (patterns, {"k": 1, "m": 2}), (patterns, [1, 2]), (patterns, Pair(1, 3)), (imports,), (wide,)]


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def documented():
    """Instruction -> reason, from the table of docs/compile.md."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "..", "docs", "compile.md")) as file:
        text = file.read().split("### Instructions that end a graph")[1].split("\n#")[0]
    found = {}
    for row in re.findall(r"^\| (`.*`) \| (.+) \|$", text, re.M):
        for name in re.findall(r"`([A-Z_]+)`", row[0]):
            found[name] = row[1]
    return found


class Instructions(unittest.TestCase):
    def test_each_is_captured_or_has_a_reason(self):
        captured = set()
        for function, *more in CALLS:
            captured |= {i.opname for code in codes(function.__code__) for i in dis.get_instructions(code)}
        reasons = documented()
        self.assertEqual(set(), set(dis.opmap) - captured - set(reasons) - SILENT)
        self.assertEqual(set(), captured & set(reasons))
        self.assertEqual(set(), (set(reasons) | SILENT) - set(dis.opmap))

    def test_functions_are_whole_graphs(self):
        for function, *more in CALLS:
            with self.subTest(function.__name__):
                global COUNT
                wick.compiler.reset()
                COUNT = 0
                expected = repr(function(X, *more))
                COUNT = 0
                compiled = wick.compile(function, fullgraph=True)
                for _ in range(2):
                    self.assertEqual(repr(compiled(X, *more)), expected)
                self.assertEqual(COUNT, 2 if function is globals_and_attributes else 0)

    def test_others_end_the_graph(self):
        async def coroutine():
            return 1

        def asynchronous(x):
            return x + 1, coroutine().close()

        def defines_a_class(x):
            class Inner:
                n = 3

            return x + Inner.n

        def group(x):
            try:
                raise ExceptionGroup("many", [ValueError("v")])
            except* ValueError:
                x = x + 1
            return x

        for function in (asynchronous, defines_a_class, group):
            with self.subTest(function.__name__):
                self.assertEqual(repr(wick.compile(function)(X)), repr(function(X)))
                self.assertGreater(wick.compiler.explain(function)(X).graph_break_count, 0)


if __name__ == "__main__":
    unittest.main()
