"""Tensors that share memory: all pairs of arguments, all ways to write and to return them."""

import copy

CLOSE = 1e-5


def same(t):
    return t, t


def view(t):
    return t, t.view(-1)[:4].view(2, 2)


def overlapping(t):
    flat = t.view(-1)
    return flat[:4], flat[2:6]


def disjoint_parts(t):
    flat = t.view(-1)
    return flat[:4], flat[4:]


def separate(t):
    return t, t.clone()


def transposed(t):
    return t, t.t()


def read_only(x, y):
    return x + 1, y * 2


def write_first(x, y):
    x.add_(1)
    return y * 2


def write_second(x, y):
    z = x * 2
    y.mul_(3)
    return z, x + z.sum()


def write_both(x, y):
    x.add_(1)
    y.mul_(2)
    x.sub_(3)
    return y + 1


def write_and_return(x, y):
    y.fill_(5)
    return x, y, y[0]


def write_item(x, y):
    x[0] = 9
    return y, x * 2


def return_both(x, y):
    return y, x, [x.view(-1)]


def write_view(x, y):
    v = x[:1]
    v.zero_()
    return v, y + 0


PAIRS = (same, view, overlapping, disjoint_parts, separate, transposed)
ACTIONS = (read_only, write_first, write_second, write_both, write_and_return, write_item, return_both, write_view)


def with_all_pairs(action):
    """The calls have every relation in turn, and the first one again."""
    def run(x, y):
        return action(x, y)

    run.__name__ = action.__name__
    return run, [lambda pair=pair: pair(torch.arange(8.0).view(2, 4)[:, :4].reshape(2, 4)) for pair in (*PAIRS, PAIRS[0])]


for action in ACTIONS:
    run, calls = with_all_pairs(action)
    program(calls)(run)
    run, calls = with_all_pairs(action)
    run.__name__ += "_without_gradients"

    def in_no_grad(x, y, action=action):
        with torch.no_grad():
            return action(x, y)

    in_no_grad.__name__ = run.__name__
    program([lambda call=call: tuple(t.requires_grad_(t.is_leaf and not t._is_view()) for t in call()) for call in calls], worlds=["torch"])(in_no_grad)
del action, run, calls, in_no_grad


def leaf(*sizes):
    return torch.randn(*sizes, requires_grad=True)


@program(lambda: (leaf(4) * 1,), backward=True, graphs={"wick": 1}, breaks="an input that requires a gradient is written to")
def write_to_non_leaf_view(x):
    v = x[1:3]
    v.mul_(2)
    return x * 2, v


@program(lambda: (leaf(4) * 2, leaf(4)), backward=True, graphs={"wick": 1}, breaks="an input that requires a gradient is written to")
def write_argument_into_argument(x, y):
    x.copy_(y * 3)
    return x + y


@program(lambda: (leaf(4) * 1,))
def write_under_no_grad_into_tape(x):
    with torch.no_grad():
        x.mul_(2)
    return x * 3, x.requires_grad


@program(lambda: (leaf(4) * 1,), graphs={"wick": 1}, breaks="an input that requires a gradient is written to")
def write_through_detached(x):
    x.detach().zero_()
    return x + 1


@program(lambda: (leaf(4),), raises="RuntimeError")
def write_to_view_of_leaf(x):
    x[0:2].zero_()
    return x


@program(lambda: (leaf(4),), use=lambda y: y.add_(1).sum().backward())
def returned_view_is_written_later(x):
    return (x * 2)[1:]


@program(lambda: (leaf(4) * 1,), use=lambda y: y.mul_(3).sum().backward())
def returned_view_of_argument_is_written_later(x):
    return x[1:]


@program(lambda: (leaf(4),), raises="RuntimeError", use=lambda pair: (pair[1].add_(1), pair[0].sum().backward()))
def saved_tensor_is_written_later(x):
    y = x.exp()
    return y * 2, y


def twice(pair):
    x, y = pair
    first, = torch.autograd.grad(y.sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    return first, second


@program(lambda: (leaf(4),), use=twice, tolerance=CLOSE)
def second_derivative_outside(x):
    return x, x * x * x


@program(lambda: (leaf(4),), use=lambda y: [y.backward(), y.backward()], raises="RuntimeError")
def backward_twice_fails(x):
    return (x * x).sum()


@program(lambda: (leaf(4),), use=lambda y: [y.backward(retain_graph=True), y.backward()][:0])
def backward_twice_with_kept_graph(x):
    return (x * x).sum()


@program(lambda: (leaf(4), leaf(4)), use=lambda pair: pair[0].sum().backward())
def unused_output(x, y):
    return x * 2, y * 3


@program(given((4,)))
def results_share_memory(x):
    y = x + 1
    return y[:2], y[2:], y.view(2, 2), y.detach()


@program(given((4, 4)))
def writes_through_many_views(x):
    a, b = x.chunk(2)
    c = a.t()
    d = c[1:3, 0]
    d.add_(100)
    b.copy_(a)
    x.diagonal().fill_(-1)
    return a, c + 0, d


@program(lambda: ({"w": torch.ones(3)}, [torch.ones(3)]))
def tensors_in_containers_are_written(d, items):
    d["w"].add_(1)
    items[0] += d["w"]
    items.append(items[0])
    d["same"] = items[0]
    return d["w"] * 2


@program(lambda: (lambda t: ({"w": t}, [t[1:]], t))(torch.ones(3)))
def tensors_in_containers_share_memory(d, items, t):
    d["w"].mul_(2)
    items[0].add_(1)
    return t * 10


@program(given((4,)))
def resized_and_replaced(x):
    y = torch.zeros(2)
    z = x.new_empty(3).fill_(1)
    y, z = z, y
    z.add_(1)
    return y, z


@program(given((4,)), graphs=None, breaks="the memory of an argument is replaced")
def memory_of_argument_is_replaced(x):
    x.data = torch.ones(4) * 3
    return x + 1


@program(given((4,)), graphs=None, breaks="the size of an argument changes")
def argument_is_resized(x):
    x.resize_(2)
    return x + 1


def view_of_leaf(t):
    return t.requires_grad_().t()


def one_of_several(t):
    return (t.requires_grad_() * 2).chunk(2)[0]


def view_without_gradients(t):
    with torch.no_grad():
        return (t.requires_grad_() * 2).t()


def plain_view(t):
    return (t.requires_grad_() * 2).t()


COUNT = torch.zeros(())


VIEWS = (view_of_leaf, one_of_several, view_without_gradients, plain_view)


@program([lambda make=make: (make(torch.randn(4, 4)),) for make in VIEWS], graphs=None, breaks="a write that may raise")
def write_behind_another_one(x):
    COUNT[...] = 0
    COUNT.add_(1)
    told = x.requires_grad, x.is_leaf
    try:
        raise ValueError("first")
    except ValueError:
        try:
            x.masked_fill_(x > 0, 2)
        except RuntimeError as error:
            return told, str(error), type(error.__context__), COUNT + 1
    return told, x * 2, COUNT + 1


LAYOUTS = (
    lambda t: t.t(),
    lambda t: t[1:, ::2],
    lambda t: t.t()[1],
    lambda t: t[:, :1].expand(4, 3),
    lambda t: t[:0],
)


@program([lambda make=make: (make(torch.randn(4, 4).requires_grad_() * 2),) for make in LAYOUTS], graphs=None, breaks="views of inputs",
         backward=True)
def layouts_of_results(x):
    return x * 2, x.stride(), x.is_contiguous(), x.is_leaf, x.requires_grad


def leaf_that_is_a_view(t):
    return t.t().requires_grad_()


@program([lambda: (leaf_that_is_a_view(torch.randn(2, 3)),), lambda: (torch.randn(2, 3).requires_grad_(),)], graphs=None,
         breaks="writes to leaves", worlds=("wick",))
def views_of_a_leaf_that_is_a_view(x):
    with torch.no_grad():
        told = x.t().requires_grad, x.t().t().requires_grad
        x.t().add_(1)
    return told, x * 2, x.is_leaf


class Held:
    def __init__(self, value):
        self.value = value


@program(given((2,)))
def tuples_in_two_places(x):
    return x + 1, compare_places(Held(PLACED), Held(PLACED)), PLACES[0].value is PLACES[1].value, [PLACES[0].value] == [PLACES[1].value]


@program(lambda: (torch.randn(2), [Held(PLACED), Held(PLACED), Held((1, (2,)))]))
def ids_of_tuples_in_two_places(x, held):
    parts = [each.value for each in held]
    copied = copy.deepcopy([Held(parts[0]), parts[1], held[0]])
    return x + 1, {id(each): None for each in parts} == {id(each): None for each in parts[1:]}, copied[0].value, copied[1:2]


@program([lambda: (torch.randn(2), PLACED, PLACED), lambda: (torch.randn(2), PLACED, (1, (2,)))], graphs=None, breaks="another call")
def ids_of_tuples_that_come_apart(x, a, b):
    return x + 1, len({id(a), id(b)}), id(a) == id(b)


PLACED = (1, (2,))
PLACES = [Held(PLACED), Held(PLACED)]


def compare_places(a, b):
    return a.value is b.value, (a.value, 1) == (b.value, 1), a.value == b.value
