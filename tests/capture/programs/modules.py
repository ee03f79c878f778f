"""nn.Module: layers, containers, buffers, hooks, flags."""

MODEL = None
CALLS = []
CLOSE = 1e-5


def set_up(make):
    def run():
        global MODEL
        MODEL = make()

    return run


@program(given((2, 4)), makes=True, tolerance=CLOSE)
def linear():
    return nn.Linear(4, 3)


@program(given((2, 3, 8, 8)), makes=True, tolerance=CLOSE)
def convolution():
    return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)).eval()


@program(given((2, 3, 8, 8)), makes=True, tolerance=CLOSE)
def batch_norm_in_training():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))


@program(given((2, 4)), makes=True, tolerance=CLOSE)
def sequential_of_many():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Sequential(nn.Linear(8, 8), nn.Tanh()), nn.LayerNorm(8), nn.Identity())


class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = layer(x) + i
        for name, layer in self.named.items():
            x = layer(x)
        return x + len(self.layers) + self.layers[-1].weight[0] + self.named["a"].bias, "a" in self.named


@program(given((2, 4)), makes=True, tolerance=CLOSE)
def lists_and_dicts_of_modules():
    return Lists()


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("steps", torch.tensor(0))
        self.scale = nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.steps += 1
        self.total = self.total + x.detach().sum(0)
        return x * self.scale + self.total / self.steps


def make_buffered():
    global MODEL
    MODEL = Buffered()
    return MODEL


@program(given((2, 4)), makes=True, check=lambda: MODEL)
def buffers_and_counters():
    return make_buffered()


@program(given((2, 4)), makes=True, check=lambda: MODEL, backward=True, tolerance=CLOSE)
def gradients_of_parameters():
    global MODEL
    MODEL = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))
    return MODEL


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)
        self.other.weight = self.shared.weight

    def forward(self, x):
        return self.shared(torch.relu(self.shared(x))) + self.other(x)


@program(given((2, 4)), makes=True, backward=True, tolerance=CLOSE)
def shared_parameters():
    return Twice()


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = self.drop(x)
        if self.training:
            return y + 1
        return y - 1


def make_dropping():
    global MODEL
    MODEL = Dropping()
    return MODEL


@program(given((2, 4)), makes=True)
def dropout_in_evaluation():
    return make_dropping().eval()


@program(given((2, 4)), makes=True)
def dropout_in_training():
    return make_dropping()


@program([given((2, 4))] * 4, makes=True, between={1: lambda: MODEL.eval(), 2: lambda: MODEL.train(), 3: lambda: MODEL.drop.eval()})
def training_flag_changes():
    return make_dropping()


@program(given((2, 4)), setup=set_up(lambda: nn.Linear(4, 4)), tolerance=CLOSE)
def module_from_global(x):
    return MODEL(x) + MODEL.weight.sum() + (0 if MODEL.training else 1)


@program(lambda: (torch.randn(2, 4), MODEL), setup=set_up(lambda: nn.Linear(4, 4)), tolerance=CLOSE)
def module_as_argument(x, model):
    return model(x) * 2, model.in_features


@program([lambda: (torch.randn(2, 4), MODEL[0]), lambda: (torch.randn(2, 4), MODEL[1]), lambda: (torch.randn(2, 4), MODEL[0])],
         setup=set_up(lambda: [nn.Linear(4, 4), nn.Linear(4, 4)]), tolerance=CLOSE)
def another_module_of_the_same_class(x, model):
    return model(x)


def add_call(module, args, output=None):
    CALLS.append(type(module).__name__)


def double_output(module, args, output):
    return output * 2


def shift_input(module, args):
    return (args[0] + 1,)


@program(given((2, 4)), makes=True, check=lambda: CALLS, tolerance=CLOSE)
def hooks_from_the_start():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    model[0].register_forward_hook(double_output)
    model[0].register_forward_pre_hook(shift_input)
    model.register_forward_hook(add_call)
    return model


def add_hook():
    global _HANDLE
    _HANDLE = MODEL.register_forward_hook(double_output)


@program([given((2, 4))] * 4, makes=True, between={1: add_hook, 3: lambda: _HANDLE.remove()}, tolerance=CLOSE)
def hooks_added_and_removed_later():
    global MODEL
    MODEL = nn.Linear(4, 4)
    return MODEL


@program([given((2, 4))] * 3, setup=set_up(lambda: nn.Linear(4, 4)), between={1: lambda: setattr(MODEL, "forward", lambda x: x + 1)}, tolerance=CLOSE)
def forward_replaced_later(x):
    return MODEL(x) * 2


@program([given((2, 4))] * 3, makes=True, between={1: lambda: setattr(MODEL, "total", torch.ones(4) * 9)}, check=lambda: MODEL)
def buffer_replaced_later():
    return make_buffered()


def halve_weight():
    with torch.no_grad():
        MODEL.weight.mul_(0.5)


@program([given((2, 4))] * 4, makes=True, tolerance=CLOSE,
         between={1: lambda: setattr(MODEL, "weight", nn.Parameter(torch.ones(3, 4))), 2: halve_weight,
                  3: lambda: MODEL.load_state_dict({"weight": torch.zeros(3, 4), "bias": torch.ones(3)})})
def parameter_replaced_and_written_later():
    global MODEL
    MODEL = nn.Linear(4, 3)
    return MODEL


@program([given((2, 4))] * 3, makes=True, tolerance=CLOSE, between={1: lambda: setattr(MODEL, "0", nn.Tanh()), 2: lambda: MODEL.add_module("2", nn.ReLU())})
def submodule_replaced_later():
    global MODEL
    MODEL = nn.Sequential(nn.ReLU(), nn.Linear(4, 4))
    return MODEL


@program([given((2, 4))] * 3, makes=True, tolerance=CLOSE, between={1: lambda: MODEL.double() and None, 2: lambda: MODEL.float() and None}, raises="RuntimeError")
def dtype_of_module_changes():
    global MODEL
    MODEL = nn.Linear(4, 3)
    return MODEL


class Keywords(nn.Module):
    def __init__(self, size, *, scale=2.0):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.scale = scale
        self.hidden = None

    def forward(self, x, mask=None, *, double=False):
        y = self.layer(x)
        if mask is not None:
            y = y * mask
        if double:
            y = y * self.scale
        self.hidden = y
        return {"out": y, "shape": tuple(y.shape)}

    def extra(self, x):
        return self.forward(x, double=True)["out"] + self(x)["out"]


@program([lambda: arguments(torch.randn(2, 4)), lambda: arguments(torch.randn(2, 4), torch.ones(4)),
          lambda: arguments(x=torch.randn(2, 4), double=True)], makes=True, tolerance=CLOSE)
def module_with_keywords():
    return Keywords(4)


@program(given((2, 4)), makes=True, tolerance=CLOSE)
def other_method_of_module():
    return Keywords(4).extra


class Inherited(Keywords):
    def forward(self, x):
        base = super().forward(x, double=True)
        return base["out"] - self.layer.bias


@program(given((2, 4)), makes=True, tolerance=CLOSE)
def module_that_inherits():
    return Inherited(4, scale=3.0)


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 6)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 10, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.norm(self.embedding(tokens))
        scores = x @ x.transpose(-2, -1) / x.size(-1) ** 0.5
        mask = torch.ones(tokens.size(1), tokens.size(1)).tril() == 0
        x = scores.masked_fill(mask, float("-inf")).softmax(-1) @ x
        return self.head(x)


@program([lambda: (torch.randint(0, 10, (2, 5)),), lambda: (torch.randint(0, 10, (2, 7)),), lambda: (torch.randint(0, 10, (3, 4)),)], makes=True,
         tolerance=CLOSE)
def attention_with_tied_weights():
    return Tokens()


@program(given((2, 4)), setup=set_up(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU())), tolerance=CLOSE, graphs={"wick": 1}, breaks="PyTorch gives an OrderedDict an attribute")
def walk_over_modules(x):
    names = [name for name, _ in MODEL.named_parameters()]
    total = sum(p.sum() for p in MODEL.parameters())
    kinds = [type(m).__name__ for m in MODEL.modules()]
    return MODEL(x) + total, names, kinds, len(list(MODEL.children())), list(MODEL.state_dict())


@program(given((2, 4)), graphs=None, breaks="making a module fills its parameters", tolerance=CLOSE)
def module_made_inside(x):
    torch.manual_seed(3)
    layer = nn.Linear(4, 2)
    return layer(x)


@program(given((2, 4)), setup=set_up(lambda: nn.Linear(4, 4)), check=lambda: MODEL)
def attributes_of_module_change_inside(x):
    MODEL.counter = getattr(MODEL, "counter", 0) + 1
    MODEL.last = x + 1
    MODEL.train(MODEL.counter % 2 == 0)
    return MODEL.training, x * MODEL.counter


@program(given((2, 4)), makes=True, graphs=None, breaks="print writes", tolerance=CLOSE)
def print_in_forward():
    class Printing(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)

        def forward(self, x):
            y = self.a(x)
            print("between layers", tuple(y.shape))
            return self.b(y)

    return Printing()


@program([given((2, 4)), given((5, 4)), given((1, 4)), given((9, 4))], makes=True, tolerance=CLOSE)
def batch_size_changes():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2), nn.Softmax(dim=-1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(6, 4)

    def forward(self, steps):
        h = torch.zeros(steps.size(1), 4)
        out = []
        for step in steps:
            h = torch.tanh(self.cell(torch.cat([step, h], dim=1)))
            out.append(h)
        return torch.stack(out), h


@program([given((3, 2, 2)), given((5, 2, 2)), given((3, 1, 2))], makes=True, tolerance=CLOSE)
def recurrent_by_hand():
    return Recurrent()


class Delegating(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x):
        return self.inner(x) + self.weight.sum()


@program(given((2, 4)), makes=True, tolerance=CLOSE)
def module_with_getattr():
    return Delegating(nn.Linear(4, 4))


@program(given((2, 4)), makes=True, tolerance=CLOSE)
def losses():
    criterion = nn.MSELoss()

    def loss(x):
        return criterion(x, torch.zeros_like(x)) + F.l1_loss(x, torch.ones_like(x), reduction="sum")

    return loss


@program(lambda: (torch.randn(2, 4), [lambda t: t + 1, nn.ReLU(), torch.tanh]))
def list_of_callables(x, layers):
    for layer in layers:
        x = layer(x)
    return x
