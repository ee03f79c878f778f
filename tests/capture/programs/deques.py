"""collections.deque: all methods, limits, iteration, aliases, errors."""

import operator
from collections import deque

LOG = deque([1, 2])
BOUNDED = deque([1, 2, 3], maxlen=3)


def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)


@program(lambda: (torch.randn(3), deque([1, 2, 3, 4])))
def both_ends(x, d):
    d.append(x + 1)
    d.appendleft(0)
    last, first = d.pop(), d.popleft()
    d.extend((5, 6))
    d.extendleft("ab")
    return last, first, d, len(d), bool(d)


@program(lambda: (torch.randn(3), deque(range(5))))
def rotations(x, d):
    d.rotate()
    a = list(d)
    d.rotate(-3)
    b = list(d)
    d.rotate(12)
    d.rotate(-0)
    return x + d[0], a, b, d


@program(lambda: (torch.randn(3), deque([3, 1, 3, 2])))
def searches(x, d):
    return (x + d.count(3), d.index(3, 1), d.index(2, -1, 100), 2 in d, 9 in d, caught(d.index, 9), caught(d.index, 3, 3),
            caught(d.remove, 9))


@program(lambda: (torch.randn(3), deque([3, 1, 3, 2])))
def edits(x, d):
    d.insert(1, x * 2)
    d.insert(-1, "i")
    d.insert(99, "end")
    d.remove(3)
    d[0] = 7
    d[-1] = 8
    del d[1]
    d.reverse()
    return x + 1, d


@program(lambda: (torch.randn(3), deque([1, 2])))
def errors(x, d):
    found = [caught(lambda: d[2]), caught(lambda: d["a"]), caught(lambda: d[0:1]), caught(lambda: deque().pop()),
             caught(lambda: deque().popleft()), caught(operator.setitem, d, 5, 1), caught(operator.delitem, d, 5),
             caught(lambda: d + [1]), caught(lambda: deque([1], -1)), caught(lambda: d < [1]), caught(lambda: {d: 1}),
             caught(BOUNDED.insert, 0, 1)]
    return x + 1, found


@program(given((3,)), check=lambda: (LOG, BOUNDED))
def globals_that_grow(x):
    LOG.append(len(LOG))
    LOG.rotate(1)
    BOUNDED.append(x.sum())
    BOUNDED.appendleft(len(LOG))
    return x + len(LOG), BOUNDED.maxlen, LOG.maxlen


@program(given((3,)))
def limits(x):
    d = deque(range(10), maxlen=3)
    d.extend([x, x + 1])
    before = list(d)
    d.extendleft([1, 2])
    empty = deque([1], 0)
    empty.append(x)
    copy = d.copy()
    copy.append(9)
    return before, d, copy, copy.maxlen, len(empty), deque(maxlen=None).maxlen, deque(iterable=(1, 2), maxlen=1)


@program(given((3,)))
def operators(x):
    d = deque([1, x], 3)
    e = d
    e += [2, 3]
    f = d + deque([5])
    g = d * 2
    h = 2 * deque([1])
    d *= 2
    return x + 1, e is d, d, f, f.maxlen, g, h, deque([1, 2]) == deque([1, 2]), deque([1]) < deque([1, 0]), deque([1]) != [1]


@program(lambda: (torch.randn(3), deque([1, 2, 3])))
def iterations(x, d):
    for n in d:
        x = x + n
    for i, n in enumerate(reversed(d)):
        x = x * (i + n)
    a, *rest = d
    return x, a, rest, sorted(d, reverse=True), max(d), sum(d), list(map(str, d)), type(iter(d)).__name__, [*d, *d]


@program(lambda: (torch.randn(3), deque([1, 2, 3])))
def change_while_iterated(x, d):
    seen = []
    try:
        for n in d:
            seen.append(n)
            if n == 2:
                d.append(x + 1)
    except RuntimeError as error:
        seen.append(str(error))
    for n in d:
        d[0] = 5
    it = iter(d)
    d.reverse()
    return x + 1, seen, next(it), d


@program(lambda: (torch.randn(3), deque([torch.ones(3), torch.zeros(3)], maxlen=2)))
def history_of_tensors(x, d):
    d.append(x)
    return torch.stack(list(d)).mean(0), d[0] is x, d[-1] is x


@program([lambda: (torch.randn(3), deque([1, 2])), lambda: (torch.randn(3), deque([1, 2, 3])), lambda: (torch.randn(3), deque([1, 2], 5)),
          lambda: (torch.randn(3), deque([1, 5]))])
def guards(x, d):
    return x + len(d) + d[1], d.maxlen


@program([lambda: (lambda d: (torch.randn(3), d, d))(deque([1])), lambda: (torch.randn(3), deque([1]), deque([1]))])
def aliases(x, d, e):
    d.append(2)
    e.append(3)
    return x + len(d), d is e, e


class Queue:
    def __init__(self):
        self.items = deque(maxlen=2)

    def push(self, item):
        self.items.append(item)
        return self


QUEUE = Queue()


@program(given((3,)), check=lambda: QUEUE.items)
def in_an_object(x):
    QUEUE.push(x + 1)
    return Queue().push(x).push(2).items, len(QUEUE.items) + x


@program(given((3,)))
def breadth_first(x):
    tree = {0: [1, 2], 1: [3], 2: [], 3: []}
    waiting, order = deque([0]), []
    while waiting:
        node = waiting.popleft()
        order.append(node)
        waiting.extend(tree[node])
        x = x + node
    return x, order


@program(lambda: (torch.randn(3), deque([1])), raises="IndexError")
def effects_before_an_error(x, d):
    d.append(2)
    x.add_(1)
    d.clear()
    d.pop()
    return x


@program(given((3,)))
def clear_and_truth(x):
    d = deque([1])
    d.clear()
    if not d:
        x = x + 1
    d.clear()
    d.append(d.copy())
    return x, d, isinstance(d, deque), type(d) is deque
