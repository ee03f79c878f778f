"""Lists and tuples: what makes them, reads them and changes them."""

HISTORY = []
TABLE = [[1, 2], [3, 4]]


class Registry:
    items = []
    names = ["first"]


@program(given((3,)))
def literals(x):
    return [x, x + 1], (x, 2), [], (), [1, 2, 3], [*[x], 4], (*(1, 2), x), [[x], [[x * 2]]]


@program(lambda: (torch.randn(3), [1, 2, 3]))
def append_to_argument(x, items):
    items.append(x + 1)
    return len(items)


@program(lambda: (torch.randn(3), [5]))
def every_mutator_on_argument(x, items):
    items.append(3)
    items.extend([1, 4, 2])
    items.insert(1, 9)
    a = items.pop()
    b = items.pop(0)
    items.remove(4)
    items.sort()
    items.reverse()
    items[0] = 7
    items += [x * 2]
    items[1:2] = [10, 11]
    del items[0]
    items *= 2
    return a, b, items


@program(lambda: (torch.randn(3), [4, 5, 6]))
def clear_and_fill_argument(x, items):
    copied = items.copy()
    items.clear()
    items.append(x + copied[0])
    return copied


@program(given((3,)), check=lambda: HISTORY)
def append_to_global(x):
    HISTORY.append(x * 2)
    return len(HISTORY)


@program(given((3,)), check=lambda: (Registry.items, Registry.names))
def mutate_list_of_class(x):
    Registry.items.append(x + 1)
    Registry.names.extend(["more", "and more"])
    Registry.names.pop(0)
    return x + len(Registry.items)


def outside_list():
    collected = []

    def append(x):
        collected.append(x + len(collected))
        return collected

    return append


@program(given((3,)), makes=True)
def append_to_list_in_cell():
    return outside_list()


@program(given((3,)), makes=True)
def rebind_list_in_cell():
    collected = []

    def grow(x):
        nonlocal collected
        collected = collected + [x * 2]
        collected += [x]
        return collected

    return grow


@program(given((3,)), check=lambda: TABLE)
def mutate_nested_list(x):
    TABLE[0].append(TABLE[1][0])
    TABLE[1][0] += 1
    TABLE.append([x])
    return x + len(TABLE)


@program(lambda: (lambda a: (torch.randn(3), a, a))([1, 2]))
def same_list_twice(x, a, b):
    a.append(3)
    return x + b[-1], a is b, b


@program([lambda: (lambda a: (torch.randn(3), a, a))([1, 2]), lambda: (torch.randn(3), [1, 2], [1, 2]),
          lambda: (lambda a: (torch.randn(3), a, a))([1, 2])])
def same_list_or_another(x, a, b):
    a.append(3)
    return x + len(b), a == b


@program(lambda: (torch.randn(3), [1, 2]))
def list_grows_while_iterated(x, items):
    for item in items:
        if len(items) < 6:
            items.append(item + 2)
        x = x + item
    return x, items


@program(lambda: (torch.randn(3), [1, 2, 3, 4]))
def list_shrinks_while_iterated(x, items):
    for item in items:
        items.remove(item)
        x = x * item
    return x, items


@program(lambda: (torch.randn(3), [3, 1, 2]))
def questions(x, items):
    return x * len(items), 3 in items, 7 not in items, items.index(1), items.count(2), items == [3, 1, 2], items < [4], items != [3], bool([])


@program(lambda: (torch.randn(3), [1, 2, 3, 4, 5]))
def slices_of_lists(x, items):
    items[::2] = [10, 30, 50]
    del items[1:3]
    items[:0] = [0]
    return x + items[1], items[-2:], items[::-1], items[5:], items + [1], items * 2, 2 * [x]


@program([lambda: (torch.randn(3), [1, 2]), lambda: (torch.randn(3), [1, 2, 3]), lambda: (torch.randn(3), [])])
def length_changes(x, items):
    for item in items:
        x = x + item
    return x, len(items)


@program([lambda: (torch.randn(3), [1, 2.5]), lambda: (torch.randn(3), [True, None]), lambda: (torch.randn(3), [torch.ones(3), 2])])
def types_of_items_change(x, items):
    return [x + item if item is not None else x for item in items]


@program(lambda: ([torch.randn(3), torch.randn(3), torch.randn(3)],))
def list_of_tensors(items):
    total = items[0]
    for item in items[1:]:
        total = total * item
    items[0] = total
    return torch.stack(items), sum(items)


@program(lambda: (torch.randn(3), ["b", "C", "a"], [3, -1, 2]))
def sort_with_keys(x, names, numbers):
    names.sort(key=str.lower, reverse=True)
    numbers.sort(key=lambda n: n * n)
    return x + numbers[0], names, sorted(names), sorted(numbers, key=abs, reverse=True)


@program(lambda: (torch.randn(3), [1, 2]), raises="IndexError")
def index_error_after_append(x, items):
    items.append(x + 1)
    return items[9]


@program(lambda: (torch.randn(3), [1, 2]))
def errors_of_mutators(x, items):
    caught = []
    for attempt in (lambda: items.remove(7), lambda: items.index(8), lambda: [].pop(), lambda: items.insert("a", 1)):
        try:
            attempt()
        except (ValueError, IndexError, TypeError) as error:
            caught.append((type(error).__name__, str(error)))
    return x * 2, caught


@program(lambda: (torch.randn(3), (1, (2, 3))))
def tuples(x, t):
    a, (b, c) = t
    return x * a, t[1], t + (x,), t * 2, (1, 2) < (1, 3), t.index(1), t.count(9), len(t), tuple([b, c]), hash((1, 2)) == hash((1, 2))


@program(lambda: (torch.randn(3), ([], 1)))
def list_within_tuple(x, t):
    t[0].append(x + t[1])
    t[0].append(t)
    return t


@program(lambda: (torch.randn(3), (1, 2)), raises="TypeError", graphs=0, breaks="Python raises the error before the first operator has run")
def write_to_tuple(x, t):
    t[0] = x
    return t


@program(given((3,)))
def list_that_holds_itself(x):
    items = [x + 1]
    items.append(items)
    return items


@program(given((3,)))
def lists_made_and_dropped(x):
    scratch = []
    for i in range(3):
        scratch.append(x * i)
    total = sum(scratch)
    scratch.clear()
    return total


@program(given((3,)), graphs=0, breaks="it computes no tensor")
def aliases_within_result(x):
    inner = [x]
    a = [inner, inner]
    b = list(a)
    c = [inner[:]] * 2
    inner.append(1)
    return a, b, c


@program(lambda: (torch.randn(3), [1, 2, 3]))
def bound_mutator_kept(x, items):
    append = items.append
    append(4)
    remove = items.remove
    remove(1)
    return x + items[0], append


@program(lambda: (torch.randn(3), [3, 4]))
def mutator_through_class(x, items):
    list.append(items, 5)
    list.__setitem__(items, 0, 8)
    return x + items.__len__(), items.__getitem__(1), items.__contains__(5)


class Tagged(list):
    def __init__(self, items, tag):
        super().__init__(items)
        self.tag = tag

    def append(self, item):
        super().append((self.tag, item))


@program(lambda: (torch.randn(3), Tagged([1], "t")))
def subclass_of_list(x, items):
    items.append(2)
    items.extend([3])
    items.tag = "changed"
    return x + len(items), items, Tagged([x], "new")


class Pair(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    @property
    def total(self):
        return self[0] + self[1]


@program(given((3,)))
def subclass_of_tuple(x):
    pair = Pair(x, x * 2)
    return pair.total, pair, isinstance(pair, tuple)


@program([lambda: (torch.randn(3), [1, 2]), lambda: (torch.randn(3), [2, 1]), lambda: (torch.randn(3), (1, 2))])
def list_or_tuple(x, items):
    return x + items[0], isinstance(items, list), list(items), tuple(items)


@program(lambda: (torch.randn(3), [[1, 2], [3]]))
def flatten_in_loops(x, rows):
    flat = []
    for row in rows:
        for item in row:
            flat.append(item)
        row.append(0)
    return x * sum(flat), flat, rows


@program(lambda: (torch.randn(3), [1, 2, 3]))
def swap_items(x, items):
    items[0], items[-1] = items[-1], items[0]
    items[1], i = 5, 2
    i, items[i] = 0, i * 10
    return x + items[0], items


@program(lambda: (torch.randn(3), [1, 2, 3]))
def augmented_items(x, items):
    items[0] += 5
    items[1] *= 3
    items[-1] -= items[0]
    items += (7, 8)
    return x - items[-1], items


@program(lambda: (torch.randn(3), [1]))
def tuples_and_lists_do_not_join(x, items):
    found = []
    for join in (lambda: (1,) + [1], lambda: (1,) + items, lambda: items + (1,), lambda: (x,) + items, lambda: () + []):
        try:
            join()
        except TypeError as error:
            found.append(str(error))
    return x + 1, found
