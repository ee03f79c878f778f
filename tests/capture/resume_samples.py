"""Functions that the tests of continuations split, each with arguments to call it with."""

import sys

from bytecode_samples import SAMPLES as OTHERS
from bytecode_samples import Manager


def handled():
    """The exceptions that are handled now and outside."""
    error, chain = sys.exc_info()[1], []
    while error is not None:
        chain.append(repr(error))
        error = error.__context__
    return chain


def nested_handlers(kind):
    log = [handled()]
    try:
        try:
            if kind == 0:
                raise ValueError("first")
            if kind == 1:
                raise KeyError("first")
            log.append("fine")
        except ValueError as error:
            log.append(handled())
            try:
                raise TypeError("second")
            except TypeError as inner:
                log.append((handled(), error is inner.__context__))
                try:
                    [].pop()
                except IndexError:
                    log.append(handled())
                log.append(handled())
            log.append(handled())
            raise
        except KeyError:
            log.append(handled())
        log.append(handled())
    except ValueError as error:
        log.append((handled(), str(error)))
    log.append(handled())
    return log


def raised_in_handler(kind):
    try:
        int("x")
    except ValueError as error:
        if kind == 0:
            raise KeyError("from") from error
        if kind == 1:
            raise KeyError("implicit")
        if kind == 2:
            raise
        if kind == 3:
            raise error
    raise KeyError("outside")


def returns_in_finally(kind):
    for i in range(4):
        try:
            if kind == 0:
                raise ValueError(i)
            if kind == 1:
                return "try"
            if i == 1:
                continue
        except KeyError:
            return "never"
        finally:
            if kind in (0, 1, 2) and i == 2:
                return "finally", i, handled()
            if kind < 2:
                continue
    return "end", handled()


def leaves_finally(log):
    try:
        log.append(1)
        try:
            log.append({}["k"])
        finally:
            log.append(handled())
    finally:
        log.append(handled())
        log.append(sys._getframe().f_lineno)


def unbound(kind):
    if kind == 0:
        x = 1
    cell = kind
    if kind == 1:
        del cell
    get = lambda: cell  # noqa: E731
    if kind == 2:
        del kind
        return kind
    if kind < 2:
        return x, cell, get()
    del cell
    return get()


def exception_variable(kind):
    error = "before"
    try:
        if kind:
            raise ValueError(kind)
    except ValueError as error:
        kept = error
    if kind < 2:
        return error, kept
    return repr(kept)


def counter(start, step=1, *more, scale, **named):
    total = start

    def add(n):
        nonlocal total, step
        total += n * step * scale
        step += 1
        return total

    def show():
        return total, step, more, sorted(named.items()), start

    first = add(1)
    second = [add(i) + step for i in range(3)]
    step = 10
    named["z"] = add(2)
    return first, second, show(), locals().keys() - {"add", "show"}


def call_counter(kind):
    if kind == 0:
        return counter(1, scale=2)
    return counter(1, 2, 3, 4, scale=1, a=5)


def names_of_variables(self, b, *c, d=1, **e):
    x, y = 1, d
    if self:
        y = 2
    del y
    z = lambda: (self, x)  # noqa: E731
    return list(locals()), z()[1]


class Base:
    def __init__(self, log):
        self.log = log

    def work(self, n):
        self.log.append(("base", n))
        return n + 1


class Derived(Base):
    def work(self, n):
        for _ in range(2):
            n = super().work(n) + super(Derived, self).work(n)
        return n, __class__.__name__


class Capturing(Base):
    def work(self, n):
        again = [super(Capturing, self).work(i) for i in range(n)]
        later = lambda: self.log  # noqa: E731
        return super().work(n), again, later(), list(locals())


def uses_super(kind):
    log = []
    made = Derived(log) if kind else Capturing(log)
    return made.work(2), log


def methods_of_builtins(text, n):
    parts = text.upper().split("A")
    parts.append("x".join([str(n), text.strip()]))
    parts.sort(key=len, reverse=bool(n))
    return parts, "{} {a}".format(text, a=n), {"k": 1}.get("k", parts.index(parts[0]))


def conditions(a, b):
    x = (a if a > b else b) + (a and b or 7) + (not a)
    y = a < b < 10 != 3
    z = [i if i else None for i in (a, b)]
    while a:
        a -= 1
        if a == b:
            break
    else:
        x += 100
    return x, y, z, max(*z, key=lambda v: v or 0), f"{x!r:>5}{y}{a:{b + 1}}", print(*z, sep=str(a), file=Sink())


class Sink:
    def write(self, text):
        pass


class Point:
    __match_args__ = "x", "y"

    def __init__(self, x, y):
        self.x, self.y = x, y


def matches(value):
    match value:
        case Point(0, y=q) if q:
            return "point", q
        case Point(x, y):
            return x, y
        case {"a": [first, *_], **rest}:
            return first, rest
        case [(1 | 2) as head, *tail]:
            return head, tail
        case _:
            return None


def call_matches(kind):
    return matches([Point(0, 2), Point(1, 2), {"a": [5, 6], "b": 1}, [2, 3], [3, 4], "s"][kind])


def manager_stack(kind):
    log = []
    with Manager(log, True) as first:
        for i in range(3):
            with Manager(log, kind == 2), Manager(log) as second:
                if i == 1 and kind:
                    raise ValueError(i, handled())
                if i == 2:
                    break
                log.append((i, second is first))
        log.append(handled())
        if kind == 3:
            return log
    log.append(handled())
    try:
        with Manager(log):
            try:
                raise KeyError("k")
            finally:
                log.append(handled())
    except KeyError as error:
        log.append((str(error), handled()))
    return log, handled()


def split_groups(n):
    log = []
    try:
        try:
            raise ExceptionGroup("all", [ValueError(i) for i in range(n)] + [KeyError("k"), TypeError("t")])
        except* ValueError as error:
            log.append((len(error.exceptions), handled()))
        except* KeyError:
            log.append(handled())
            if n == 2:
                raise IndexError("new")
    except ExceptionGroup as left:
        log.append((left.message, [repr(e) for e in left.exceptions]))
    log.append(handled())
    return log


def called_in_handler(function, *args):
    """The outcome of a function that is called while another exception is handled."""
    try:
        raise RuntimeError("outer")
    except RuntimeError:
        result = function(*args)
        return result, handled()


def in_handler(kind):
    return called_in_handler(nested_handlers, kind)


def unpacking(items):
    a, (b, *c), *d = items
    a, b = b, a
    first, second, third = (b, *c, 9, 9)[:3]
    del first
    c[0:1], c[-1] = [a, b], {**{"k": third}}
    del c[0]
    return a, b, c, d, second, third, {*d, a}, [*d, *c], dict(a=a, **{"z": b})


def big(extra):
    """Writes a function with more than 300 variables, names, constants and arguments."""
    names = [f"v{i}" for i in range(300)]
    lines = [f"def f({', '.join(names)}, *rest, **named):"]
    lines += [f"    w{i} = v{i} + {1000 + i} + g{i}" for i in range(0, 300, 7)]
    lines += ["    total = 0", "    i = k = None", "    for i in range(4):", "        if i == 2:"]
    lines += ["            total += w0 - w7"] * 60
    lines += ["        try:", "            if i == v1:", "                raise ValueError(i)"]
    lines += [f"            total += w{extra}", "        except ValueError as error:"]
    lines += ["            total += error.args[0] + (lambda: v299 + total)()"]
    lines += ["    k = max(" + ", ".join(names) + ")", "    return total, k, rest, named, w294"]
    world = {f"g{i}": i for i in range(300)}
    exec(compile("\n".join(lines), "<big>", "exec"), world)
    return world["f"]


def many_cells():
    names = [f"c{i}" for i in range(300)]
    lines = ["def f(a, c5):", "    " + " = ".join(n for n in names if n != "c5") + " = a"]
    lines += ["    def inner():", "        nonlocal c299, c5", "        c299 += 1; c5 += 1"]
    lines += ["        return " + " + ".join(names), "    x = inner()", "    y = inner()", "    return x, y, c5, c299"]
    world = {}
    exec(compile("\n".join(lines), "<cells>", "exec"), world)
    return world["f"]


# The second element tells whether each LOAD_METHOD finds a method.
OWN = [
    (nested_handlers, False, (0,), (1,), (2,)),
    (raised_in_handler, False, (0,), (1,), (2,), (3,), (4,)),
    (returns_in_finally, False, (0,), (1,), (2,), (3,)),
    (leaves_finally, True, ([],)),
    (unbound, False, (0,), (1,), (2,), (3,)),
    (exception_variable, False, (0,), (1,), (2,)),
    (call_counter, False, (0,), (1,)),
    (names_of_variables, False, (0, 1), (1, 2)),
    (uses_super, False, (0,), (1,)),
    (methods_of_builtins, True, ("banana", 0), ("", 3)),
    (conditions, False, (0, 1), (3, 1), (5, 2)),
    (call_matches, False, (0,), (1,), (2,), (3,), (4,), (5,)),
    (manager_stack, True, (0,), (1,), (2,), (3,)),
    (split_groups, True, (0,), (1,), (2,)),
    (in_handler, False, (0,), (1,), (2,)),
    (unpacking, False, ([1, [2, 3, 4], 5, 6],), ([1],), ([1, []],)),
]
GENERATORS = 0x2A0  # flags
SAMPLES = OWN + [(function, False, *calls) for function, *calls in OTHERS
                 if not function.__code__.co_flags & GENERATORS]
# Functions whose code is looked at, too, when one of the samples is split.
INNER = {call_counter: [counter], uses_super: [Derived.work, Capturing.work], call_matches: [matches],
         in_handler: [nested_handlers]}
