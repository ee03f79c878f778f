"""Methods, properties, indexing, views of tensors, and writes to them."""


@program(given((3, 4)))
def chain_of_methods(x):
    return x.relu().sum(dim=1, keepdim=True).sqrt().mul(2).add(1, alpha=3)


@program([given((3, 4)), given((2, 5)), given((1, 1))])
def properties(x):
    return x.shape, x.dtype, x.device, x.ndim, x.requires_grad, x.is_leaf, x.T.shape, x.layout, x + 1


@program([given((3, 4)), given((6, 2)), given((5, 4))])
def sizes_in_arithmetic(x):
    rows, columns = x.shape
    return x.reshape(columns, rows) / (rows * columns), x.size(0) + x.size(-1), x.numel(), len(x), x.dim()


@program([given((3, 4)), given((5, 4)), given((7, 6))])
def views_by_size(x):
    return x.view(-1), x.view(x.size(1), -1), x.reshape(1, x.shape[0], -1), x.expand(2, *x.shape)


@program(given((4, 5, 6)))
def indexing_by_numbers(x):
    return x[0], x[-1, 2], x[1, 2, 3], x[..., 0], x[0, ..., 1], x[None, 0], x[:, None, 1]


@program(given((6, 8)))
def slicing(x):
    return x[1:4], x[:, ::2], x[-3:, :-1], x[2:, 3], x[:0], x[10:], x[slice(1, 3)], x[slice(None, None, 2), 1]


@program([given((6, 8), 2, 5), given((6, 8), 0, 3), given((6, 8), -4, 6)])
def slicing_by_arguments(x, a, b):
    return x[a:b], x[:a], x[b:, a], x[a]


@program(lambda: (torch.randn(5, 4), torch.tensor([0, 3, 3]), torch.tensor([True, False, True, True, False])), graphs=None, breaks="elements decide about sizes")
def indexing_by_tensors(x, index, mask):
    return x[index], x[index, 1], x[:, index], x[[0, 2]], x[index[:, None], torch.tensor([1, 2])], x[mask].sum()


@program(given((5, 4)), raises="IndexError", graphs=0, breaks="Python raises the error before the first operator has run")
def index_out_of_range(x):
    return x[7]


@program(given((5, 4)), raises="ValueError", graphs=0, breaks="Python raises the error before the first operator has run")
def slicing_step_below_zero(x):
    return x[::-1]


@program(given((3, 4)))
def write_to_argument(x):
    x.add_(1)
    return x * 2


@program(given((3, 4)))
def write_to_argument_and_return_it(x):
    x.mul_(2)
    return x


@program(given((4, 4)))
def write_by_index(x):
    x[0] = 5.0
    x[1:3, 2] = torch.ones(2)
    x[:, -1] += 1
    x[x > 2] = 0
    return x.sum()


@program(given((4, 4)))
def write_to_view(x):
    row = x[1]
    row.zero_()
    x.t()[0].fill_(7)
    return row, x


@program(given((4, 4)))
def write_through_base_seen_in_view(x):
    row = x[1]
    before = row.clone()
    x.add_(10)
    return row - before


@program([lambda: (torch.randn(3),) * 2, given((3,), (3,)), lambda: (torch.randn(3),) * 2])
def same_tensor_twice(x, y):
    x.add_(1)
    return y * 2, x is y


@program([lambda: (lambda t: (t, t[1:]))(torch.randn(5)), given((5,), (4,)), lambda: (lambda t: (t, t[:4]))(torch.randn(5))])
def overlapping_arguments(x, y):
    y.mul_(3)
    return x + 1, y


@program(given((3, 4)))
def views_of_argument(x):
    return x.t(), x[1], x.view(12), x.unsqueeze(0), x.diagonal(), x.detach()


@program(given((3, 4)))
def views_of_result(x):
    y = x + 1
    return y, y[0], y.t(), y.flatten()


@program(given((3, 4)), graphs=0, breaks="it computes no tensor")
def argument_as_result(x):
    return x


@program(given((3, 4)))
def argument_in_containers(x):
    return [x, x], {"x": x, "y": x + 1}, (x,)


@program(given((3, 4)))
def write_to_view_of_result(x):
    y = x * 2
    y[0].fill_(1)
    y[:, 1].add_(y[:, 0])
    return y


@program(given((3, 4), (3, 4)))
def copy_into(x, y):
    x.copy_(y)
    y.zero_()
    return x + y


@program(given((3, 4)))
def out_argument(x):
    target = torch.empty(3, 4)
    returned = torch.add(x, 1, out=target)
    return returned is target, target


@program(given((3, 4)))
def factories(x):
    return (torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 7.5), torch.arange(5), torch.eye(2), torch.empty(0),
            torch.tensor([[1, 2], [3, 4]]), x.new_zeros(3), torch.linspace(0, 1, 5))


@program([given((3,), 1.5, 2), given((3,), 2.5, 3), given((3,), -0.0, 4)])
def tensor_of_numbers(x, a, n):
    return torch.tensor([a, 1.0]) + x[:2], torch.tensor(n), torch.full((n,), a), torch.arange(n)


@program(given((2, 3), (2, 3)))
def joins(x, y):
    a, b = torch.cat([x, y]).chunk(2)
    first, *rest = torch.stack((x, y), dim=1).unbind(0)
    return a, b, first, rest, torch.split(x, 1), torch.hstack([x, y])


@program(given((4, 5)))
def reductions(x):
    values, indices = x.max(dim=1)
    pair = x.sort(dim=0)
    return values, indices, pair.values, pair[1], x.min(), x.argmax(), x.var(), x.prod(0), x.all(), x.any(), x.std(1)


@program(given((4, 5)))
def result_with_names(x):
    found = torch.max(x, 1)
    return found.values + found.indices, found[0] is found.values, len(found)


@program(given((2, 3, 4)))
def permutations(x):
    return x.permute(2, 0, 1), x.transpose(0, -1), x.contiguous() is x, x.mT, x.flip(0), x.roll(1, 2), x.squeeze()


@program(given((4, 4)))
def iterate_over_rows(x):
    total = torch.zeros(4)
    for row in x:
        total = total + row * 2
    return total, list(x), [r.sum() for r in x]


@program(given((3, 2)))
def unpack_rows(x):
    a, b, c = x
    (d, e), *_ = x
    return a + b * c, d, e


@program(given((3, 4)))
def named_functions(x):
    return torch.sum(x, dim=0), torch.relu(x), F.softmax(x, dim=1), torch.where(x > 0, x, -x), torch.clamp(x, -1, 1)


@program(given((3, 4)), tolerance=1e-5)
def functions_with_options(x):
    return (F.gelu(x), F.layer_norm(x, (4,)), F.pad(x, (1, 1)), F.one_hot(torch.tensor([0, 2]), 3), F.cross_entropy(
        x, torch.tensor([0, 1, 2])), torch.einsum("ij,kj->ik", x, x))


@program(given((3, 4), "sigmoid"))
def method_by_name(x, name):
    return getattr(x, name)(), getattr(torch, "tanh")(x), hasattr(x, "relu"), hasattr(x, "no_such_method")


@program(given((3, 4)), raises="AttributeError", graphs=0, breaks="Python raises the error before the first operator has run")
def method_that_is_missing(x):
    return x.no_such_method()


@program(given((3, 4)))
def unbound_method(x):
    f = torch.Tensor.add
    g = x.mul
    return f(x, 1), g(2), torch.Tensor.sum(x)


@program(given((3, 4)))
def membership_and_identity(x):
    y = x
    z = x + 0
    return y is x, z is x, z is not x, any(t is x for t in [z, y]), x


@program(given((2, 2)))
def several_results_with_the_same_tensor(x):
    y = x.exp()
    return y, y, [y], {"y": y}


@program(lambda: (torch.randn(6, 4).t(), torch.randn(3, 1).expand(3, 4)))
def strides_of_arguments(x, y):
    return x + 1, y * 2, x.contiguous(), x.is_contiguous(), y.stride(), x.stride()


@program([lambda: (torch.randn(4, 4),), lambda: (torch.randn(4, 4).t(),), lambda: (torch.randn(8, 4)[::2],)])
def strides_change_between_calls(x):
    return x.is_contiguous(), x.stride(), x.view(16) if x.is_contiguous() else x.reshape(16), x + 1


@program(given((3, 4)))
def write_after_use(x):
    y = x * 2
    x.zero_()
    z = x + 1
    return y, z


@program(given((3, 4)), raises="RuntimeError")
def write_that_fails(x):
    x.add_(1)
    x.add_(torch.ones(7))
    return x


@program(given((3,)), worlds=["torch"])
def set_attribute_of_tensor(x):
    x.label = "input"
    y = x + 1
    y.label = x.label + "+1"
    return y, x.label


@program(given((3, 4)))
def swap_rows(x):
    x[0], x[1] = x[1].clone(), x[0].clone()
    return x


@program(given((3, 4)))
def conversions_of_shape(x):
    return tuple(x.shape), list(x.size()), x.shape[0] * x.shape[1], x.shape == (3, 4), torch.Size([1, 2]), x.shape + (5,), x * 1


@program(given((3, 4)))
def comparison_of_shapes(x):
    if x.shape == torch.Size((3, 4)) and x.shape[-1] == 4 and x.size() != (1,):
        return x + 1
    return x - 1


@program([lambda: (torch.randn(3, 1).t(), torch.ones(1)), lambda: (torch.randn(4, 1).t(), torch.ones(1, 1)),
          lambda: (torch.randn(2, 1, 3).transpose(0, 1), torch.ones(1))])
def strides_of_dimensions_of_one_element(x, y):
    made = x + y, y * x, x - y, x * x, x.exp(), x.flip(0), x.flip(-1), -x
    return made, [t.stride() for t in made]
