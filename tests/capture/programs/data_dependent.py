"""Branches, loops and sizes that depend on the values of tensors."""

DECIDES = "the values of a tensor decide what Python does"


@program([lambda: (torch.ones(3),), lambda: (-torch.ones(3),), lambda: (torch.ones(3) * 2,)])
def branch_with_tensors_only(x):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    return y * 2


@program([lambda: (torch.ones(3), torch.ones(3)), lambda: (-torch.ones(3), torch.ones(3))])
def branch_without_else(x, y):
    if x.mean() > 0:
        y = y * 2
    return y + x


@program([lambda: (torch.ones(3),), lambda: (-torch.ones(3),)], graphs=None, breaks=DECIDES)
def branch_with_side_effects(x):
    log = []
    if (x > 0).all():
        log.append("positive")
        x = x + 1
    else:
        log.append("not")
    return x, log


@program([lambda: (torch.ones(3),), lambda: (-torch.ones(3),)], graphs=None, breaks=DECIDES)
def branch_that_returns(x):
    y = x * 3
    if y.sum() < 0:
        return y, "negative"
    return y + 1


@program([lambda: (torch.tensor(3),), lambda: (torch.tensor(0),)], graphs=None, breaks=DECIDES)
def tensor_as_condition(n):
    m = n * 2
    a = "yes" if m else "no"
    b = m and 5
    return a, b, not m, bool(m), m or 7


@program([lambda: (torch.tensor([1.0, 2.0]), 40.0), lambda: (torch.tensor([3.0, 1.0]), 100.0)])
def loop_with_tensors_only(x, limit):
    while x.sum() < limit:
        x = x * 2
    return x


@program([lambda: (torch.tensor([1.0, 2.0]),)], graphs=None, breaks=DECIDES)
def loop_that_collects(x):
    steps = []
    while x.max() < 10:
        x = x * 2
        steps.append(x)
    return steps


@program(lambda: (torch.tensor([5.0]),), graphs=None, breaks=DECIDES)
def loop_with_break_on_tensor(x):
    for i in range(10):
        x = x - 1
        if x <= 2:
            break
    else:
        i = -1
    return x, i


@program([lambda: (torch.tensor(3), torch.randn(5)), lambda: (torch.tensor(2), torch.randn(5))], graphs=None, breaks="a number is taken out of a tensor")
def item_as_number(n, x):
    k = n.item()
    return x * k, k, type(k)


@program([lambda: (torch.tensor(3),), lambda: (torch.tensor(4),), lambda: (torch.tensor(2),)], graphs=None, breaks="the size is a result of Python's")
def item_as_size(n):
    k = int(n)
    return torch.ones(k) * 2, torch.arange(n.item())


@program(lambda: (torch.tensor([1.5, -2.0]),), graphs=None, breaks="a number is taken out of a tensor")
def conversions_to_numbers(x):
    y = x * 2
    return float(y[0]), int(y[1]), bool(y[0] > 0), complex(y[0]), y.tolist(), y[0].item(), y.sum() + 1, round(y[0].item(), 2)


@program([lambda: (torch.tensor([[1, 2], [3, 4]]),), lambda: (torch.tensor([5]),)], graphs=None, breaks="a list is taken out of a tensor")
def tolist(x):
    values = (x + 1).tolist()
    return x * len(values), values


@program([lambda: (torch.tensor([1.0, 0.0, 2.0]),), lambda: (torch.zeros(3),), lambda: (torch.ones(3),)], graphs=None, breaks="elements decide about sizes")
def nonzero_elements(x):
    found = x.nonzero()
    return found, x[x > 0], torch.nonzero(x, as_tuple=True)[0]


@program([lambda: (torch.tensor([1.0, 0.0, 2.0]),), lambda: (torch.ones(3),)], graphs=None, breaks="elements decide about sizes")
def size_from_data_used_in_graph(x):
    kept = x[x > 0]
    return kept * 2 + 1, kept.sum() / kept.shape[0], torch.zeros_like(kept)


@program([lambda: (torch.tensor([1, 2, 2, 5]),), lambda: (torch.tensor([7, 7]),)])
def unique_values(x):
    values, counts = torch.unique(x, return_counts=True)
    return values * counts


@program([lambda: (torch.tensor([3, 1, 2]), torch.randn(3)), lambda: (torch.tensor([0, 0, 1]), torch.randn(3))], graphs=None, breaks=DECIDES)
def tensor_as_index_of_list(index, x):
    names = ["a", "b", "c", "d"]
    return names[index[0]], [names[i] for i in index], x[index[1]], {0: "zero"}.get(int(index[2]), "other")


@program([lambda: (torch.tensor(3), torch.randn(2)), lambda: (torch.tensor(1), torch.randn(2))], graphs=None, breaks="the number of iterations is taken out of a tensor")
def range_of_tensor(n, x):
    for i in range(n):
        x = x + i
    return x


@program([lambda: (torch.tensor([1.0, float("nan")]),), lambda: (torch.tensor([1.0, 2.0]),)], graphs=None, breaks=DECIDES, raises="ValueError")
def check_of_values(x):
    y = x + 1
    if torch.isnan(y).any():
        raise ValueError("there is a NaN")
    return y * 2


@program([lambda: (torch.tensor([1.0, 2.0]),), lambda: (torch.tensor([-1.0, 2.0]),)], graphs=None, breaks=DECIDES, raises="AssertionError")
def assertion_on_values(x):
    assert (x > 0).all(), "not positive"
    return x.log()


@program(lambda: (torch.tensor([2.0, 1.0, 3.0]),), graphs=None, breaks=DECIDES)
def builtins_that_compare_tensors(x):
    return max(x), min(x[0], x[1]), sorted([x[0], x[1], x[2]]), x[0] in [x[1], x[0]], sum(x), any(x > 2), all(x > 0)


@program([lambda: (torch.tensor([1.0, 2.0, 3.0, 4.0]), 2.5), lambda: (torch.tensor([1.0, 2.0, 3.0, 4.0]), 0.0)], graphs=None, breaks=DECIDES)
def filter_by_values(x, limit):
    return [row for row in x if row > limit]


@program([lambda: (torch.tensor([4.0]),), lambda: (torch.tensor([0.25]),)])
def nested_branches_with_tensors_only(x):
    if x > 1:
        if x > 3:
            y = x * 3
        else:
            y = x * 2
    else:
        y = -x
    return y


@program(lambda: (torch.tensor(1.0),), graphs=None, breaks="the text needs the values")
def text_of_item(x):
    y = x + 1
    return f"{y.item():.3f}", "%d" % y.item(), str(float(y))


@program([lambda: (torch.randn(3), torch.tensor(True)), lambda: (torch.randn(3), torch.tensor(False))], graphs=None, breaks=DECIDES)
def condition_is_an_argument(x, flag):
    with torch.no_grad():
        if flag:
            return x + 1
    return x - 1


@program(lambda: (torch.ones(3), torch.ones(3)), graphs=None, breaks=DECIDES)
def equality_of_tensors(x, y):
    return torch.equal(x, y), torch.allclose(x, y + 1e-9), x.equal(y + 1), x * 2


@program([lambda: (torch.ones(2, 3), torch.tensor([0])), lambda: (torch.ones(2, 3), torch.tensor([5])), lambda: (torch.ones(4, 3), torch.tensor([2, 4]))], raises="IndexError")
def index_that_nothing_uses(x, index):
    unused = x[index]
    return x + 1


@program([lambda: (torch.eye(2), torch.ones(2, 2)), lambda: (torch.zeros(2, 2), torch.ones(2, 2))])
def inverse_that_nothing_uses(x, y):
    try:
        torch.linalg.inv(x)
    except RuntimeError as error:
        return y, str(error)
    return y * 2


@program([lambda: (torch.tensor([4, 6]), torch.tensor([2, 3])), lambda: (torch.tensor([4, 6]), torch.tensor([2, 0]))], raises="RuntimeError")
def integer_quotient_that_nothing_uses(x, y):
    quotient = x // y
    x % y
    return x + y


@program(lambda: (torch.arange(50),), graphs=None, breaks="each size is found by a run of the graph")
def keys_that_elements_decide_forty_times(x):
    counts = {}
    for i in range(40):
        counts[x[x > i].size(0)] = i
    return x * 2, counts
