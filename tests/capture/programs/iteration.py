"""Unpacking, comprehensions, generators and iterators."""

import itertools


@program(lambda: (torch.randn(3), [1, 2, 3, 4]))
def star_unpacking(x, items):
    first, *middle, last = items
    *start, end = items
    head, *rest = "abc"
    (a, (b, *c)), d = (1, (2, 3, 4)), 5
    [e, f] = (8, 9)
    return x * first, middle, last, start, end, head, rest, a, b, c, d, e, f


@program(lambda: (torch.randn(3), [1, 2, 3]), raises="ValueError", graphs=0, breaks="Python raises the error before the first operator has run")
def unpacking_too_many(x, items):
    a, b = items
    return x + a + b


@program(lambda: (torch.randn(3), [1]))
def unpacking_errors(x, items):
    caught = []
    try:
        a, b = items
    except ValueError as error:
        caught.append(str(error))
    try:
        a, b, *c = items
    except ValueError as error:
        caught.append(str(error))
    try:
        a, b = 5
    except TypeError as error:
        caught.append(str(error))
    return x + 1, caught


@program(lambda: (torch.randn(3), [1, 2], {"a": 3}), graphs=0, breaks="it computes no tensor")
def star_in_displays_and_calls(x, items, d):
    def f(*args, **kwargs):
        return args, kwargs

    return [*items, x, *(5, 6)], {*items, 9}, {**d, "b": 1}, f(*items, x, *"ab", **d, k=2), (*items,), print is not None


@program(lambda: (torch.randn(3), [1, 2, 3]))
def comprehensions(x, items):
    a = [x * i for i in items if i != 2]
    b = {i: x + i for i in items}
    c = {i * i for i in items}
    d = [(i, j) for i in items for j in range(i) if (i + j) % 2]
    e = [[j for j in range(i)] for i in items]
    return a, b, c, d, e


@program(lambda: (torch.randn(3), [1, 2, 3]))
def comprehension_with_cells(x, items):
    y = x + 1
    i = 100
    made = [y * i + x for i in items]
    functions = [lambda: i * 2 for i in items]
    return made, i, [f() for f in functions]


@program(lambda: (torch.randn(3), [1, 2, 3]))
def walrus_in_comprehension(x, items):
    kept = [last := i * 2 for i in items if (half := i / 2) > 0.5]
    return x * last, kept, half


@program(lambda: (torch.randn(3), [1, 2, 3]))
def generator_expressions(x, items):
    total = sum(x * i for i in items)
    return total, max(i * i for i in items), list(i + 1 for i in items), tuple(x for _ in items), any(i > 2 for i in items), dict((i, i) for i in items)


def count_up(x, n):
    for i in range(n):
        yield x + i
    return "done"


@program([given((3,), 3), given((3,), 1), given((3,), 0)])
def generator_consumed_inside(x, n):
    total = x * 0
    for value in count_up(x, n):
        total = total + value
    return total, [v.sum() for v in count_up(x, n)]


def averages():
    total, count = 0.0, 0
    result = None
    while True:
        value = yield result
        if value is None:
            return total
        total = total + value
        count += 1
        result = total / count


@program(given((3,)))
def generator_with_send(x):
    g = averages()
    first = next(g)
    a = g.send(x)
    b = g.send(x * 2)
    try:
        g.send(None)
    except StopIteration as stop:
        return first, a, b, stop.value
    return None


def guarded(log):
    try:
        while True:
            try:
                yield len(log)
            except ValueError as error:
                log.append(str(error))
    finally:
        log.append("closed")


@program(lambda: (torch.randn(3), []))
def generator_with_throw_and_close(x, log):
    g = guarded(log)
    next(g)
    n = g.throw(ValueError("thrown"))
    g.close()
    return x * n, log, next(g, "empty")


def delegate(x):
    result = yield from count_up(x, 2)
    yield result
    yield from [1, 2]


@program(given((3,)))
def generator_delegates(x):
    return list(delegate(x))


@program(given((3,)), use=lambda g: [next(g), list(g)], graphs=None, breaks="the generator escapes")
def generator_escapes(x):
    y = x + 1
    return (y * i for i in range(3))


@program(given((3,)), use=lambda r: (next(r[0]), r[0].send(5), list(r[1])), graphs=None, breaks="the generators escape")
def started_generator_escapes(x):
    def echo():
        got = x + 1
        while True:
            got = yield got * 2 if got is not None else None

    g = echo()
    next(g)
    h = count_up(x, 3)
    next(h)
    return g, h


@program(given((3,)), use=list, graphs=0, breaks="a generator's frame is not compiled")
def generator_function_itself(x):
    y = x + 1
    yield y
    yield y * 2


@program(lambda: (torch.randn(3), count_up(torch.ones(3), 4)), graphs=None, breaks="the generator comes from outside")
def generator_as_argument(x, g):
    return x + next(g), next(g)


@program(lambda: (torch.randn(3), iter([1, 2, 3, 4])))
def iterator_as_argument(x, it):
    a = next(it)
    for b in it:
        if b == 3:
            break
    return x * a + b, it


@program(lambda: (torch.randn(3), [1, 2, 3]))
def iterators_by_hand(x, items):
    it = iter(items)
    a = next(it)
    items.append(4)
    b = next(it)
    rest = list(it)
    end = next(it, "end")
    return x * a * b, rest, end, iter(it) is it


@program(given((3,)), raises="StopIteration")
def exhausted_iterator(x):
    it = iter([1])
    next(it)
    x.add_(1)
    return next(it)


@program(lambda: (torch.randn(3), [3, 1, 2], "abc"))
def builtins_over_iterables(x, items, text):
    for i, (n, c) in enumerate(zip(items, text), start=1):
        x = x * n + i
    return (x, list(map(lambda a, b: a + b, items, items)), list(filter(None, [0, 1, 2])), list(filter(lambda n: n > 1, items)),
            sorted(items), list(reversed(items)), min(items), max(items, default=0), sum(items), all(items), any([]), list(zip()),
            list(enumerate(text)), dict(zip(text, items)), list(zip(items, itertools.count())), max([], default=None))


@program(lambda: (torch.randn(3), [1, 2, 3]))
def strict_zip(x, items):
    try:
        list(zip(items, "ab", strict=True))
    except ValueError as error:
        return x + 1, str(error)
    return x


@program(lambda: (torch.randn(3), [1, 2, 3]))
def iterators_escape(x, items):
    z = zip(items, "abc")
    next(z)
    r = reversed(items)
    next(r)
    e = enumerate(items)
    next(e)
    i = iter(items)
    next(i)
    return x + 1, z, r, e, i, iter(range(3)), iter({"a": 1}), map(str, items)


@program(lambda: (torch.randn(3), [1, 2, 3, 4, 5, 6]))
def iterator_shared_by_two_loops(x, items):
    it = iter(items)
    pairs = []
    for a in it:
        pairs.append((a, next(it)))
    grouped = list(zip(*[iter(items)] * 3))
    return x * len(pairs), pairs, grouped


@program(given((3,)))
def iterate_until_sentinel(x):
    numbers = [1, 2, 0, 3]
    found = list(iter(lambda: numbers.pop(0), 0))
    return x * len(found), found, numbers


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


@program(lambda: (torch.randn(3), Countdown(3)))
def iterator_class(x, countdown):
    for n in countdown:
        x = x + n
    return x, list(Countdown(2)), countdown.n, sum(Countdown(4))


class Pages:
    def __init__(self, tensors):
        self.tensors = tensors

    def __iter__(self):
        for t in self.tensors:
            yield t * 2

    def __reversed__(self):
        return iter(self.tensors[::-1])


@program(lambda: (Pages([torch.randn(2), torch.randn(2)]),))
def iter_is_a_generator(pages):
    a, b = pages
    return a + b, [p + 1 for p in pages], list(reversed(pages))


class Sequence:
    def __getitem__(self, index):
        if index >= 3:
            raise IndexError(index)
        return index * 10


@program(given((3,)))
def iterate_by_getitem(x):
    for n in Sequence():
        x = x + n
    return x, list(Sequence()), 20 in Sequence()


@program(given((3,)), graphs=None, breaks="a generator is left within a `with`")
def generator_left_unfinished(x):
    log = []

    def produce():
        try:
            yield x + 1
            yield x + 2
        finally:
            log.append("finally")

    for value in produce():
        break
    return value, log


@program(given((3,)))
def generator_with_state(x):
    state = {"n": 0}

    def step():
        while state["n"] < 3:
            state["n"] += 1
            yield x * state["n"]

    return [v for v in step()], state


@program(given((3,)), raises="RuntimeError", graphs=0, breaks="Python raises the error before the first operator has run")
def stop_iteration_in_generator(x):
    def bad():
        yield x
        raise StopIteration

    return list(bad())


@program(given((2, 3)))
def rows_by_enumerate_and_zip(x):
    made = []
    for i, (row, other) in enumerate(zip(x, x + 1)):
        made.append(row * other + i)
    return torch.stack(made)


def primes():
    found = []
    for n in itertools.count(2):
        if all(n % p for p in found):
            found.append(n)
            yield n


@program(given((3,)))
def endless_generator(x):
    return x * sum(itertools.islice(primes(), 5)), list(itertools.takewhile(lambda p: p < 20, primes()))


def tree(depth):
    if depth:
        yield from tree(depth - 1)
        yield depth
        yield from tree(depth - 1)


@program(given((3,)))
def recursive_generator(x):
    return x + sum(tree(3)), list(tree(2))


@program(given((3,)))
def generator_methods_as_values(x):
    g = (i * x for i in range(4))
    advance = g.__next__
    a = advance()
    b = advance()
    return a + b, list(g)
