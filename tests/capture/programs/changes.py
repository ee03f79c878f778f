"""Globals, attributes, types and code that change between calls: nothing of an earlier call may stay."""

import types

SCALE = 2
TABLE = {"a": 1}
SETTINGS = None


def helper(x):
    return x + 1


def helper_two(x):
    return x * 100


def with_default(x, n=1):
    return x * (n + 1)


class Config:
    scale = 2

    def __init__(self):
        self.shift = 1

    def apply(self, x):
        return x * self.scale + self.shift


class Child(Config):
    pass


CONFIG = Config()
CHILD = Child()
LISTED = [1, 2]
TENSOR = torch.ones(3)
MODE = "add"
STEPS = [torch.relu, torch.neg]


def rebind(**names):
    return lambda: globals().update(names)


X = given((3,))


@program([X] * 4, between={1: rebind(SCALE=5), 2: rebind(SCALE=5.0), 3: rebind(SCALE=True)})
def number_in_global(x):
    return x * SCALE, SCALE


@program([X] * 4, between={1: rebind(helper=helper_two), 3: rebind(helper=helper)})
def function_in_global(x):
    return helper(x)


@program([X] * 3, between={1: lambda: setattr(helper, "__code__", helper_two.__code__)})
def code_of_function(x):
    return helper(x)


@program([X] * 4, between={1: lambda: setattr(with_default, "__defaults__", (7,)), 2: lambda: setattr(with_default, "__defaults__", (7.0,)),
                           3: lambda: setattr(with_default, "__defaults__", ("a",))}, raises="TypeError")
def defaults_of_function(x):
    return with_default(x) + 1, with_default(2)


@program([X] * 3, between={1: lambda: setattr(Config, "scale", 9), 2: lambda: setattr(CONFIG, "scale", 1)})
def attribute_of_class(x):
    return CONFIG.apply(x)


@program([X] * 4, between={1: lambda: setattr(Child, "scale", 3), 2: lambda: setattr(Child, "apply", lambda self, x: x - 1),
                           3: lambda: delattr(Child, "apply")})
def attribute_of_subclass(x):
    return CHILD.apply(x)


@program([X] * 3, between={1: lambda: setattr(Config, "apply", lambda self, x: x - 50)})
def method_of_class(x):
    return CONFIG.apply(x)


@program([X] * 3, between={1: lambda: setattr(Config, "__getattribute__", lambda self, name: 3 if name == "shift" else object.__getattribute__(self, name))})
def special_method_added_later(x):
    return x + CONFIG.shift


@program([X] * 3, between={1: lambda: delattr(CONFIG, "shift"), 2: lambda: setattr(CONFIG, "shift", 8)}, raises="AttributeError")
def attribute_deleted(x):
    return CONFIG.apply(x)


@program([X] * 3, between={1: lambda: setattr(CONFIG, "__class__", Child), 2: lambda: setattr(Child, "scale", 100)})
def class_of_object(x):
    return CONFIG.apply(x), type(CONFIG).__name__


@program([X] * 4, between={1: lambda: TABLE.update(a=4), 2: lambda: TABLE.update(b=1), 3: lambda: TABLE.clear()}, raises="KeyError")
def items_of_dict(x):
    return x * TABLE["a"] + len(TABLE)


@program([X] * 4, between={1: lambda: LISTED.append(3), 2: lambda: LISTED.__setitem__(0, 10), 3: lambda: LISTED.reverse()})
def items_of_list(x):
    for n in LISTED:
        x = x * n
    return x


@program([X] * 4, between={1: lambda: TENSOR.add_(1), 2: rebind(TENSOR=torch.zeros(3)), 3: rebind(TENSOR=torch.ones(1, 3))})
def tensor_in_global(x):
    return x + TENSOR


@program([X] * 3, between={1: rebind(MODE="mul"), 2: lambda: globals().pop("MODE")}, raises="NameError")
def global_deleted(x):
    return x + 1 if MODE == "add" else x * 2


@program([X] * 3, between={1: rebind(len=lambda value: 50), 2: lambda: globals().pop("len")})
def builtin_hidden_by_global(x):
    return x * len(LISTED)


@program([X] * 3, between={1: lambda: STEPS.pop(), 2: lambda: STEPS.insert(0, torch.exp)})
def functions_in_list(x):
    for step in STEPS:
        x = step(x)
    return x


@program([X] * 3, between={1: rebind(Config=Child), 2: lambda: setattr(Child, "extra", 5)})
def class_in_global(x):
    made = Config()
    return made.apply(x), type(made).__name__, getattr(made, "extra", None)


@program([X] * 3, between={1: rebind(CONFIG=Child()), 2: rebind(CONFIG=types.SimpleNamespace(apply=lambda x: x * 7))})
def type_of_global(x):
    return CONFIG.apply(x), type(CONFIG)


_CELL = None


@program([X] * 4, makes=True, between={1: lambda: _CELL.__closure__[0].cell_contents and setattr(_CELL.__closure__[0], "cell_contents", 5),
                                       2: lambda: setattr(_CELL.__closure__[0], "cell_contents", "not a number"),
                                       3: lambda: setattr(_CELL.__closure__[0], "cell_contents", 2)}, raises="TypeError")
def contents_of_cell():
    global _CELL
    factor = 3

    def f(x):
        return x * (factor + 1)

    _CELL = f
    return f


@program([X] * 3, between={1: lambda: setattr(Config, "shift", property(lambda self: 30)), 2: lambda: delattr(Config, "shift")})
def property_hides_attribute(x):
    return x + CONFIG.shift


@program([lambda: (torch.randn(3, requires_grad=True),)] * 3, between={1: lambda: torch.set_grad_enabled(False)})
def gradient_mode_outside(x):
    y = x * 2
    return y.requires_grad, y


@program([X] * 3, between={1: lambda: torch.set_default_dtype(torch.float64)})
def default_dtype_outside(x):
    return torch.ones(3) + x, torch.tensor(1.5)


@program([lambda: (torch.randn(3), 1), lambda: (torch.randn(3), 1.0), lambda: (torch.randn(3), True), lambda: (torch.randn(3), torch.tensor(1)), lambda: (torch.randn(3), None)],
         raises="TypeError")
def types_of_argument(x, n):
    return x * n


@program([lambda: (torch.randn(2, 3),), lambda: (torch.randn(3),), lambda: (torch.randn(2, 2, 2),), lambda: (torch.tensor(2.0),)])
def number_of_dimensions(x):
    return x.sum(-1) if x.dim() else x, x.dim()


@program([lambda: (torch.randn(5),), lambda: (torch.randn(1),), lambda: (torch.randn(0),), lambda: (torch.randn(7),), lambda: (torch.randn(1),)])
def sizes_zero_and_one(x):
    return x + torch.ones(1), x.sum(), x.numel() == 1, x.expand(3) if x.numel() == 1 else x


@program([lambda: (torch.randn(4, 6), torch.randn(6, 2)), lambda: (torch.randn(5, 3), torch.randn(3, 2)), lambda: (torch.randn(6, 6), torch.randn(6, 6)),
          lambda: (torch.randn(4, 3), torch.randn(3, 4))])
def sizes_that_become_equal(x, y):
    z = x @ y
    if x.size(0) == y.size(1):
        return z + z.t()
    return z * x.size(0)


@program([lambda: (torch.randn(6),), lambda: (torch.randn(8),), lambda: (torch.randn(9),), lambda: (torch.randn(10),)])
def sizes_and_divisibility(x):
    n = x.numel()
    if n % 2 == 0:
        return x.view(2, n // 2).sum(0)
    return x.view(3, -1).sum(0) + n // 3


@program([lambda: (torch.randn(3), [1, "a", None]), lambda: (torch.randn(3), [1, "b", None]), lambda: (torch.randn(3), (1, "a", None)), lambda: (torch.randn(3), [1, "a", 0])])
def contents_of_argument(x, items):
    return x * items[0], items[1] == "a", items[2] is None, type(items) is list


@program([lambda: (torch.randn(3), types.SimpleNamespace(n=1)), lambda: (torch.randn(3), types.SimpleNamespace(n=2)), lambda: (torch.randn(3), types.SimpleNamespace(n=2, m=1))])
def attributes_of_argument(x, o):
    o.seen = hasattr(o, "m")
    return x * o.n


@program([lambda: (torch.randn(3), "x"), lambda: (torch.randn(3), b"x"), lambda: (torch.randn(3), "y")])
def kind_of_text(x, s):
    return x + (s == "x"), s[0]


@program([lambda: (torch.randn(3), 10 ** 30), lambda: (torch.randn(3), -1), lambda: (torch.randn(3), 2 ** 63 - 1)])
def very_large_numbers(x, n):
    return x * (n % 7), n + 1, n * n


@program([lambda n=n: (torch.randn(3), n) for n in range(12)])
def many_values_of_an_argument(x, n):
    return x * n, n + 1


@program([lambda n=n: (torch.randn(n, 2),) for n in range(2, 14)])
def many_sizes(x):
    return x * x.size(0), x.sum(0)


@program([lambda n=n: (torch.randn(3), f"name{n}") for n in range(10)])
def many_strings(x, name):
    return x + len(name), name.upper()


LEARNING_RATE = 0.1


def decay():
    global LEARNING_RATE
    LEARNING_RATE *= 0.5


@program([X] * 5, between={1: decay, 2: decay, 3: decay, 4: decay})
def float_in_global_that_falls(x):
    return x - LEARNING_RATE * x


@program([X] * 4, between={1: rebind(F=types.SimpleNamespace(relu=lambda x: x - 5)), 3: rebind(F=nn.functional)})
def module_in_global(x):
    return F.relu(x)


def swap_items():
    LISTED[0], LISTED[1] = LISTED[1], LISTED[0]


@program([X] * 4, between={1: swap_items, 2: lambda: LISTED.__setitem__(slice(None), [4.0, True]), 3: lambda: LISTED.clear()}, raises="IndexError")
def list_under_the_same_name(x):
    return x * LISTED[0] + LISTED[1]
