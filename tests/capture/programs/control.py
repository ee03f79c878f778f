"""Branches, loops and other statements."""

FLAG = True
LIMIT = 3


@program([given((3,), True), given((3,), False), given((3,), True)])
def branch_on_argument(x, flag):
    if flag:
        y = x + 1
    else:
        y = x - 1
    return y * 2


@program([given((3,), 1), given((3,), 2), given((3,), 3)])
def many_branches(x, n):
    if n == 1:
        return x + 1
    elif n == 2:
        x = x * 2
    elif n > 2 and x.dim() == 1:
        x = x * 3
    else:
        return None
    return x - 1 if n % 2 else x + 1


@program([given((3,), None), given((3,), 4), given((3,), None)])
def none_or_value(x, n):
    if n is None:
        n = 2
    if n is not None:
        x = x * n
    while n is not None:
        x = x + n
        n = None if n < 3 else n - 1
    return x


@program(given((3,), 5))
def while_loops(x, n):
    while n:
        n -= 1
        if n == 3:
            continue
        if n == 1:
            break
        x = x + n
    else:
        x = x * 100
    return x, n


@program([given((3,), 7), given((3,), 2)])
def loops_with_else(x, n):
    for i in range(5):
        if i == n:
            break
        x = x + i
    else:
        x = x * 2
    while n > 3:
        n -= 2
    else:
        x = x - n
    return x, i


@program(given((3,), 4))
def nested_loops(x, n):
    for i in range(n):
        for j in range(i):
            if (i + j) % 3 == 0:
                break
            if j == 1:
                continue
            x = x + i * j
        else:
            x = x * 2
    return x, i, j


@program(given((3,), 3))
def walrus(x, n):
    if (m := n * 2) > 5:
        x = x * m
    while (k := m - 1) > 3:
        m = k
        x = x + k
    print_it = (y := x + 1).sum()
    return y, print_it, k, m


@program(given((3,)))
def loop_variable_after_loop(x):
    for i in range(3):
        pass
    for k, (a, *b) in enumerate([(1, 2, 3), (4, 5)]):
        x = x + a
    return x, i, k, a, b


class Target:
    value = 0


@program(given((3,)))
def targets_of_loops(x):
    t, d, items = Target(), {}, [0, 0]
    for t.value in range(3):
        x = x + t.value
    for d["k"] in "ab":
        pass
    for items[1] in (5, 6):
        x = x * items[1]
    return x, t, d, items


@program(given((3,)), check=lambda: FLAG)
def store_global(x):
    global FLAG, MADE
    FLAG = not FLAG
    MADE = x + 1
    if FLAG:
        return MADE * 2
    return MADE


@program(given((3,)))
def delete_global(x):
    global TEMPORARY
    TEMPORARY = x + 1
    y = TEMPORARY * 2
    del TEMPORARY
    try:
        return TEMPORARY
    except NameError as error:
        return y, str(error)


@program(lambda: (torch.randn(3), Target(), [1, 2, 3], {"a": 1}))
def delete_statements(x, t, items, d):
    t.own = x
    y = t.own + 1
    del t.own, items[0], d["a"]
    del items[:1]
    z = y
    del y
    return z, items, d, hasattr(t, "own")


@program([given((3,), 3), given((3,), 5), given((3,), 4)])
def trip_count_changes(x, n):
    for i in range(n):
        x = x * 0.5 + i
    return x


@program(given((3,)))
def global_as_limit(x):
    for i in range(LIMIT):
        x = x + i
        if i >= LIMIT - 1:
            return x
    return None


@program([given((3,), 0, 0), given((3,), 0, 1), given((3,), 1, 0), given((3,), 1, 1)])
def and_or_not(x, a, b):
    if a and b:
        x = x + 1
    if a or b:
        x = x + 2
    if not a and not b:
        x = x + 3
    if not (a and b) or (b and not a):
        x = x + 4
    return x, a and b, a or b, not a or b, (a, b) == (1, 1)


@program([given((3,), "list"), given((3,), "int"), given((3,), "tensor")])
def branch_on_type(x, kind):
    value = {"list": [1], "int": 3, "tensor": x}[kind]
    if isinstance(value, (list, tuple)):
        return x + value[0]
    if type(value) is int:
        return x * value
    if isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
        return value - 1
    return None


@program([given((3,)), given((5,)), given((8,))])
def branch_on_size(x):
    if x.shape[0] > 4:
        return x[:4] * 2
    return x + x.numel()


@program([given((2, 3)), given((3, 3)), given((4, 3))])
def loop_over_size(x):
    total = torch.zeros(3)
    for i in range(x.shape[0]):
        total = total + x[i] * (i + 1)
    return total


@program([lambda: (torch.randn(3),), lambda: (torch.randn(3).double(),), lambda: (torch.arange(3),)])
def branch_on_dtype(x):
    if x.dtype == torch.float32:
        return x + 1
    if x.is_floating_point():
        return x.float() * 2
    return x // 2


@program(given((3,)))
def statements_that_do_nothing(x):
    pass
    ...
    x
    x + 1
    "text"
    if False:
        x = None
    while False:
        x = None
    assert True
    return x * 2
    x = None


@program(given((3,)))
def imports_in_function(x):
    import math
    import os.path as path
    from collections import OrderedDict as Ordered, deque
    return x * math.pi, path.join("a", "b"), Ordered(a=1), deque([1])


@program(given((3,)), graphs=None, breaks="an import runs code")
def import_that_fails(x):
    try:
        import no_such_module_here
    except ImportError as error:
        caught = type(error).__name__, str(error)
    try:
        from math import no_such_name
    except ImportError as error:
        return x + 1, caught, error.name
    return None


@program(given((3,)))
def long_chain_of_ifs_in_loop(x):
    seen = []
    for i in range(10):
        if i < 2:
            seen.append("low")
        elif i < 4:
            continue
        elif i == 6:
            seen += ["six"]
        elif i > 8:
            break
        else:
            x = x + i
    return x, seen, i


@program([given((3,), 1), given((3,), 2), given((3,), 3)], graphs=0, breaks="it computes no tensor")
def early_returns(x, n):
    if n == 1:
        return
    x = x + 1
    if n == 2:
        return x
    for _ in range(2):
        x = x * 2
        return x, n


@program(given((3,)))
def conditional_expressions(x):
    a = x + 1 if x.dim() == 1 else x - 1
    b = (1 if x.numel() > 5 else 2) if a is not None else 3
    return a * b, [i if i % 2 else -i for i in range(4)], (lambda: 1 if b == 2 else 0)()


@program(given((3,)))
def multiple_assignment(x):
    a = b = c = x + 1
    d, e = f = [1, 2]
    a, b = b * 2, a * 3
    (g, h), i = (1, 2), 3
    a, b, c, d = d, c, b, a
    return a, b, c, d, e, f, g, h, i


@program([given((3,), [1]), given((3,), [])])
def truth_of_containers(x, items):
    n = 0
    if items:
        n += 1
    if not items or "":
        n += 10
    if {} or () or set() or 0.0 or None:
        n += 100
    if x is not None and len(items) < 2 and (items or [5]):
        n += 1000
    return x * n


@program(given((3,)))
def loop_that_rebinds_its_iterable(x):
    items = [1, 2, 3]
    for i in items:
        items = [10]
        x = x + i
    return x, items


@program(given((3,), 40))
def long_loop(x, n):
    for i in range(n):
        x = x + 0.5 * i
    return x


@program(given((3,)))
def while_true(x):
    n = 0
    while True:
        n += 1
        x = x * 1.5
        if n > 4:
            break
    return x, n


@program([given((3,), "a"), given((3,), "b"), given((3,), "c")])
def dispatch_by_table(x, key):
    table = {"a": lambda t: t + 1, "b": torch.relu}
    action = table.get(key)
    if action is None:
        return x
    return action(x)
