"""Iterators of itertools over numbers, texts, tensors and generators: laziness, order, errors."""

import itertools
import operator

LOG = []


def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


def logged(items):
    for item in items:
        LOG.append(item)
        yield item


@program(given((3,)))
def endless(x):
    it = itertools.count(0.5, 0.25)
    return (x * next(it), next(it), list(itertools.islice(itertools.cycle([1, x]), 3)), list(zip(itertools.repeat(x), [1, 2])),
            list(itertools.islice(itertools.count(step=-1), 2)), list(itertools.repeat(1, times=2)), list(itertools.repeat(1, -5)),
            list(itertools.cycle([])))


@program(given((3,)), check=lambda: LOG)
def laziness(x):
    it = itertools.islice(logged(range(10)), 1, 6, 2)
    first = next(it)
    LOG.append("between")
    rest = list(it)
    taken = list(itertools.takewhile(lambda n: n < 2, logged([1, 2, 3])))
    dropped = itertools.dropwhile(lambda n: n < 2, logged([1, 2, 1]))
    LOG.append("before")
    return x + first, rest, taken, list(dropped)


@program(given((3,)), check=lambda: LOG)
def shared_source(x):
    source = logged([1, 2, 3, 4, 5])
    head = list(itertools.islice(source, 2))
    a, b = itertools.tee(source)
    first = next(a)
    c = a.__copy__() if hasattr(a, "__copy__") else a
    d, e = itertools.tee(b, 2)
    return x + first, head, list(b), list(a), list(c), list(d), list(e), itertools.tee([], 0)


@program(given((3,)))
def slices(x):
    s = itertools.islice
    return (x + 1, list(s("abcdef", None)), list(s("abcdef", 2, None)), list(s("abcdef", 1, None, 3)), list(s("ab", 0)), list(s("ab", 5, 9)),
            caught(s, "a", -1), caught(s, "a", 0, -2), caught(s, "a", 0, 1, 0), caught(s, "a", "b"))


@program(given((3,)))
def accumulations(x):
    return (list(itertools.accumulate([x, 1, 2])), list(itertools.accumulate([1, 2, 3], operator.mul)),
            list(itertools.accumulate([], initial=x)), list(itertools.accumulate([2, 1], func=lambda a, b: a * 10 + b, initial=None)),
            list(itertools.accumulate("abc")), caught(lambda: list(itertools.accumulate([1, "a"]))))


@program(given((3,)))
def groups(x):
    pairs = [("a", 1), ("a", 2), ("b", 3), ("a", 4)]
    by_name = [(k, [n for _, n in g]) for k, g in itertools.groupby(pairs, key=operator.itemgetter(0))]
    skipped = [k for k, g in itertools.groupby([1, 1, 2, 2, 1])]
    it = itertools.groupby([1000, 1000, 2])
    k, g = next(it)
    first = next(g)
    next(it)
    return x + first, by_name, skipped, list(g), k


@program(given((3,)))
def pools(x):
    it = itertools.product([x, x + 1], "ab")
    first = next(it)
    return (first, len(list(it)), list(itertools.product()), list(itertools.product([1, 2], [])), list(itertools.product([0, 1], repeat=0)),
            list(itertools.permutations([1, 2], 3)), list(itertools.permutations("ab")), list(itertools.combinations("abcd", r=3)),
            list(itertools.combinations_with_replacement([x], 2))[0][1] is x, caught(itertools.combinations, [1], -1),
            caught(lambda: itertools.product([1], repeat=-1)))


@program(given((3,)), check=lambda: LOG)
def pools_take_all_at_once(x):
    it = itertools.product(logged([1, 2]), logged("a"))
    LOG.append("made")
    return x + 1, list(it)


@program(given((3,)))
def choices(x):
    return (x + 1, list(itertools.compress([x, 1, 2], [1, 0, True])), list(itertools.filterfalse(None, [0, 1, "", 2])),
            list(itertools.filterfalse(lambda n: n % 2, range(4))), list(itertools.starmap(pow, [(2, 3), [3, 2]])),
            list(itertools.starmap(lambda *a: sum(a), [(1, 2, 3), ()])))


@program(given((3,)))
def several_at_once(x):
    x = x + 1
    return (list(itertools.zip_longest([x, 1], "abc", fillvalue=x)), list(itertools.zip_longest([1], [])), list(itertools.zip_longest()),
            list(itertools.pairwise([x])), list(itertools.pairwise([x, 1, 2])), list(itertools.chain([1], "a", (x,))), list(itertools.chain()),
            list(itertools.chain.from_iterable([n] * n for n in range(3))), type(itertools.chain([1])).__name__)


@program(given((3,)))
def nested(x):
    total = x
    for i, (a, b) in enumerate(itertools.islice(zip(itertools.count(1), itertools.cycle([1, -1])), 4)):
        total = total + a * b * i
    return total, dict(zip("ab", itertools.count())), max(itertools.accumulate([3, -1, 2])), sum(itertools.chain([1], [2]))


@program(given((3,)))
def exhausted(x):
    it = itertools.takewhile(lambda n: n < 3, [1, 5, 2])
    a = list(it)
    c = itertools.chain([1], [2])
    b = list(c)
    return x + 1, a, list(it), next(it, "end"), b, list(c), caught(next, c)


@program(given((3,)), check=lambda: LOG, raises="ZeroDivisionError", graphs=None, breaks="Python raises the error itself")
def error_of_a_function(x):
    y = x + 1
    for n in itertools.starmap(lambda a, b: a // b, [(1, 1), (1, 0)]):
        LOG.append(n)
        y.add_(n)
    return y


@program(given((3,)), graphs=None, breaks="iterators that outlive the call are Python's", use=lambda it: list(itertools.islice(it, 3)))
def escaping_iterator(x):
    return itertools.cycle([x + 1, 2])


@program(lambda: (torch.randn(3), itertools.count(5)), graphs=None, breaks="iterators that existed are Python's")
def iterators_as_arguments(x, it):
    return x + next(it), next(it)


@program(given((3,)), graphs=None, breaks="an iterator is kept while Python runs")
def break_while_iterated(x):
    seen = []
    for n in itertools.accumulate([1, 2, 3]):
        x = x + n
        print(n)
        seen.append(n)
    return x, seen
