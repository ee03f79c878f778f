"""Functions whose code the tests take apart, each with arguments to call it with."""

import asyncio
import contextlib


def loops(n):
    total = 0
    for i in range(n):
        if i == 2:
            continue
        if i > 7:
            break
        total += i
    else:
        total = -total
    while total > 3 and n:
        total -= 2
    return total, [j for j in range(n) if j % 2], {k: k * k for k in range(n)}, {m for m in "ab"}, not n or total


def nothing(a, b=None):
    if a is None:
        return b
    while b is not None:
        b = None
    return a if b is None else b


def handlers(kind):
    log = []
    try:
        try:
            log.append("begin")
            if kind == 1:
                raise ValueError("one")
            if kind == 2:
                return log
            if kind == 3:
                {}["missing"]
            if kind == 4:
                1 / 0
        except ValueError as error:
            log.append(str(error))
            raise TypeError("two") from error
        except (KeyError, IndexError):
            log.append("lookup")
        else:
            log.append("else")
        finally:
            log.append("finally")
    except TypeError as error:
        log.append(repr(error.__cause__))
    return log


def nested_finally(n):
    log = []
    for i in range(n):
        try:
            try:
                if i == 1:
                    continue
                if i == 3:
                    break
                log.append(i)
            finally:
                log.append("inner")
        finally:
            log.append("outer")
    return log


def groups(n):
    log = []
    try:
        errors = [ValueError(i) for i in range(n)] + [KeyError("k")]
        raise ExceptionGroup("many", errors)
    except* ValueError as error:
        log.append(len(error.exceptions))
    except* KeyError:
        log.append("key")
    return log


class Manager:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(getattr(kind, "__name__", None))
        return self.swallow

    async def __aenter__(self):
        await asyncio.sleep(0)
        return self.__enter__()

    async def __aexit__(self, *about):
        await asyncio.sleep(0)
        return self.__exit__(*about)


def managers(kind):
    log = []
    with Manager(log, True) as outer, Manager(log):
        if kind == 1:
            raise ValueError
        if kind == 2:
            return log, outer.swallow
        with contextlib.suppress(KeyError):
            {}["x"]
        log.append("body")
    with Manager(log):
        if kind == 3:
            raise IndexError("leaves")
    return log


def closures(n):
    total = n

    def add(value, /, *more, scale=1, **named):
        nonlocal total
        total += (value + sum(more)) * scale + len(named)
        return total

    def both():
        return add(1, 2, scale=3), add(4, x=1), total

    class Local:
        attribute = total

        def method(self):
            return __class__.__name__, super().__init__(), n

    return both(), Local.attribute, Local().method()


def calls(*args, **named):
    def show(*a, **k):
        return a, sorted(k.items())

    text = f"{len(args)!r:>4}{named}" "tail"
    first, *rest = (*args, 1, 2)
    return show(*args, 3, **named, z=1), show(1, k=2), show(*args), text, first, rest, max(args, default=0), "a".upper()


def matching(value):
    match value:
        case 0 | 1:
            return "small"
        case [first, *rest]:
            return first, rest
        case {"key": found, **others}:
            return found, others
        case complex(real=real):
            return real
        case str() as text if text:
            return text
        case _:
            return "other"


def operators(a, b):
    c = a
    c += b
    c -= 1
    items = [a, b, c]
    items[0], items[1] = items[1], items[0]
    items[1:2] = [5, 6]
    del items[0]
    return (a + b, a - b, a * b, a // b, a % b, a**2, a & b, a | b, a ^ b, a << 1, a >> 1, -a, +a, ~a, not a,
            a < b <= c, a in items, a is not b, items, {**{"a": a}, "b": b}, [*items, a], {*items}, (a, b) == (b, a),
            a and b or c)


def counting(n):
    total = 0
    try:
        for i in range(n):
            sent = yield i
            total += sent or 0
    finally:
        total += 1
    return total


def delegating(log):
    def inner():
        try:
            got = yield "first"
            yield "got", got
        except KeyError:
            log.append("KeyError")
            try:
                yield "caught"
            finally:
                log.append("closed")
        return "result"

    result = yield from inner()
    yield result


def chained(n):
    got = yield from counting(n)
    yield ("end", got)
    yield from (k * 2 for k in range(n))


async def waiting(n):
    log = []

    async def numbers(count):
        for i in range(count):
            await asyncio.sleep(0)
            yield i

    async for i in numbers(n):
        log.append(i)
    async with Manager(log, True) as manager:
        if n == 2:
            raise ValueError
        log.append(manager.swallow)
    found = [j async for j in numbers(n) if j]
    gathered = await asyncio.gather(asyncio.sleep(0, "a"), asyncio.sleep(0, "b"))
    return log, found, gathered, {k: v async for k, v in pairs(n)}


async def pairs(n):
    for i in range(n):
        yield i, await asyncio.sleep(0, i)


def raising(n):
    assert n != 1, "is one"
    if n == 2:
        raise KeyError
    try:
        return unknown_name + n
    except NameError as error:
        if n == 3:
            raise
        return type(error).__name__
    finally:
        del n


def importing():
    import os.path as path
    from math import floor, pi

    return path.basename("a/b"), floor(pi), (lambda x, y=2: x * y)(4)


def deleting(mapping):
    global made_here
    made_here = 1
    del mapping["a"], made_here
    return mapping


SAMPLES = [
    (loops, (0,), (3,), (12,)),
    (nothing, (None,), (1,), (1, 2)),
    (handlers, (0,), (1,), (2,), (3,), (4,)),
    (nested_finally, (1,), (3,), (6,)),
    (groups, (0,), (2,)),
    (managers, (0,), (1,), (2,), (3,)),
    (closures, (1,), (5,)),
    (calls, (), (1, 2)),
    (matching, (0,), ([1, 2, 3],), ({"key": 1, "b": 2},), (1j,), ("text",), ("",)),
    (operators, (7, 3), (1, 1), (5, 0)),
    (counting, (0,), (3,)),
    (chained, (0,), (3,)),
    (waiting, (0,), (2,), (3,)),
    (raising, (0,), (1,), (2,), (3,)),
    (importing, ()),
    (deleting, ({"a": 1, "b": 2},), ({},)),
]
