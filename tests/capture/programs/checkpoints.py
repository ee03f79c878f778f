"""Parts of a computation that a backward pass computes again: torch.utils.checkpoint."""

import importlib

checkpointing = importlib.import_module(torch.__name__.removesuffix(".torch") + ".utils.checkpoint")
checkpoint = checkpointing.checkpoint
SEEN = []


def leaf(*sizes):
    return torch.randn(*sizes, requires_grad=True)


def block(x, w):
    return (x @ w).relu() + x


@program(lambda: (torch.randn(2, 3), leaf(3, 3)), backward=True)
def part_is_computed_again(x, w):
    y = checkpoint(block, x, w, use_reentrant=False)
    return checkpoint(block, y, w) * 2


@program(lambda: (leaf(4, 4),), backward=True)
def part_with_random_numbers(x):
    y = checkpoint(lambda a: F.dropout(a * 2, 0.5), x, use_reentrant=False)
    return checkpoint(lambda a: F.dropout(a, 0.25), y) + torch.rand(4)


@program(lambda: (leaf(3), leaf(3)), backward=True)
def several_results_and_nesting(x, y):
    def inner(a, b):
        return a * b, checkpoint(torch.exp, a, use_reentrant=False)

    a, b = checkpoint(inner, x, y, use_reentrant=False)
    return a + 1, b * y


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        return checkpoint(self.layers, x, use_reentrant=False)

    def normalized(self, x):
        return checkpoint(self.norm, x, use_reentrant=False)


MODEL = None


def make():
    global MODEL
    MODEL = Layers()


@program(lambda: (torch.randn(4, 3),), backward=True, setup=make, check=lambda: [p.grad for p in MODEL.parameters()], tolerance=1e-5)
def module_is_computed_again(x):
    return MODEL(x)


@program(lambda: (leaf(4, 3),), backward=True, setup=make, check=lambda: list(MODEL.buffers()), graphs=None, breaks="statistics are written twice", tolerance=1e-5)
def statistics_of_a_part(x):
    return MODEL.normalized(x)


def noted(x):
    SEEN.append(len(SEEN))
    return x * 2


@program(lambda: (leaf(3),), backward=True, check=lambda: SEEN, graphs=None, breaks="the list changes twice")
def effects_of_a_part(x):
    return checkpoint(noted, x, use_reentrant=False) + 1


@program(lambda: (leaf(3),), check=lambda: SEEN)
def effects_without_gradients(x):
    with torch.no_grad():
        return checkpoint(noted, x, use_reentrant=False) + 1


@program(lambda: (leaf(3),), backward=True, graphs=None, breaks="other random numbers are drawn again")
def random_numbers_are_not_kept(x):
    return checkpoint(lambda a: a * 2, x, use_reentrant=False, preserve_rng_state=False)


def fails(x):
    if x.shape[0] == 3:
        raise ValueError("three")
    return x


@program(lambda: (leaf(3),))
def part_raises(x):
    try:
        return checkpoint(fails, x, use_reentrant=False)
    except ValueError as error:
        return x.detach() + 1, str(error)
