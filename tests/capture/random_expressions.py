"""Expressions of all other types: numbers, strings, containers, objects, functions."""

from random_base import (ANY, COLUMN, DEQUE_INT, DEQUE_X, DICT_FLOAT, DICT_INT, DICT_LIST, DICT_NUMBERS, DICT_X, KEYS, LIST_FLOAT,
                         LIST_INT, LIST_STR, LIST_X, ONE, OTHER_KEYS, PAIR, SCALAR, SET_INT, SET_STR, TRUTH, VECTOR, WHOLE, X,
                         Function, expressions)
from random_tensors import Tensors

INT_FORMS = expressions("""
    6: ({i} + {i})
    5: ({i} - {i})
    3: ({i} * {#})
    2: ({i} // {#})
    3: ({i} % {mod})
    (-{i})
    (+{i})
    (~{i})
    (({i} % 9) << {#})
    ({i} >> {#})
    ({i} & {i})
    ({i} | {#})
    ({i} ^ {#})
    (({i} % 7) ** 2)
    ({i} * {i} % 101)
    2: len({li})
    len({s})
    len({d})
    len({si})
    len({dl}["a"])
    2: {x}.shape[0]
    {x}.shape[1]
    2: {x}.size(0)
    {x}.size(-1)
    {x}.dim()
    {x}.ndim
    {x}.numel()
    len({x})
    {x}.shape.numel()
    sum({x}.shape)
    {v}.shape[0]
    {x}.stride(0)
    {x}.element_size()
    int({b})
    int({i} / 2)
    2: sum({li})
    sum({li}, {i})
    2: max({i}, {i})
    min({i}, {i}, {#})
    max({li})
    min({li})
    abs({i})
    round({i})
    divmod({i}, {#})[1]
    2: ({i} if {b} else {i})
    ({i} or {i})
    ({i} and {i})
    {li}.count({i})
    {s}.count("a")
    {s}.find("b")
    2: {d}.get({key}, {i})
    {d}.get({otherkey}, {i})
    {dn}.get({i}, {#})
    sum({d}.values())
    sum({dn})
    sum({qi})
    max({dn})
    ord({char}[0])
    hash({i}) % 1000
    int("12")
    int(str({i} % 50))
    int({s}.isalpha())
    ({i}).bit_length()
    operator.add({i}, {i})
    operator.mul({i}, {#})
    operator.itemgetter({bit})({li})
    functools.reduce(lambda {@1}, {@2}: {@1} + {@2}, {li}, {i})
    functools.reduce(operator.add, {li})
    functools.partial(max, {i})({#})
    functools.partial(int, base=8)("17")
    math.gcd({i}, {#})
    math.floor({fixed})
    math.isqrt(abs({i}) % 90)
    math.prod(({i} % 5, {#}))
    next(iter({li}))
    next({@1} for {@1} in {li} if {@1} == {@1})
    next(itertools.count({i}))
    sum(itertools.islice({li}, 2))
    sum(itertools.chain({li}, {li}))
    sum({@1} * {#} for {@1} in {li})
    sum(1 for {@1} in {li} if {@1} > {#})
    sum([{@1} + {@2} for {@1} in {li} for {@2} in range({#})])
    sum(map(lambda {@1}: {@1} + 1, {li}))
    sum(map(abs, {li}))
    len(list(filter(None, {li})))
    len(list(filter(lambda {@1}: {@1} % 2, {li})))
    len([*zip({li}, {s})])
    len(tuple(itertools.product({li}[:2], "ab")))
    sum({@1} for {@1}, {@2} in enumerate({li}))
    sum({@1} * {@2} for {@1}, {@2} in zip({li}, {li}))
    (lambda {@1}, {@2}={#}: {@1} + {@2})({i})
    (lambda *{@1}: len({@1}))(*{li})
    (lambda **{@1}: sum({@1}.values()))(**{d})
    (lambda *{@1}, **{@2}: len({@1}) - len({@2}))({i}, *{li}, k={i})
    sum(range({#}, 9, 2))
    len(range({i} % 10))
    range(2, 20, 3)[{#}]
    slice(1, {#}).indices(5)[1]
    {li}[-1:][0]
    {li}[::2][0]
    {li}[slice(0, 1)][0]
    {p}[{bit}]
    {p}.count({i})
    sorted({li})[0]
    sorted({li}, key=lambda {@1}: -{@1})[0]
    sorted({d})[-1:] == ["c"] and {i} or {#}
    [{i}, {i}, {#}][{bit}]
    ({i}, {i})[{bit}]
    {"p": {i}, "q": {#}}["q"]
    {{#}: {i}, **{}}.popitem()[1]
    len({*{li}, {i}})
    len({**{d}, "new": {i}})
    len((*{li}, {i}))
    {y}[0]
    len({y})
    {y}.find(b"b")
    int.from_bytes({y}[:2], "little")
    getattr({x}, "ndim")
    getattr({i}, "missing", {#})
    int(isinstance({i}, int)) + {#}
    3: {data_int}
    int(complex({#}, 1).real)
    list({d}.values())[0]
    [*{d}.values()][1]
    [*{dn}.items()][0][0]
    len(list(reversed({li})))
    len(frozenset({li}) | {si})
    len({si} & {{i}, {#}})
    sum({si} - {{#}})
    collections.Counter({s})["a"]
    typing.cast(int, {i})
    len({x}.tolist())
    len(copy.copy({li}))
    [{#}, {i}].pop()
    next(reversed({li}))
    iter({li}).__next__()
    {li}.__getitem__(0)
    memoryview({y})[0]
""")
FLOAT_FORMS = expressions("""
    4: ({f} + {f})
    3: ({f} - {f})
    2: ({f} * {half})
    ({f} / 2)
    ({f} // 2.0)
    ({f} % 3.0)
    (-{f})
    2: ({f} + {i})
    ({i} * 0.25)
    (({i} % 9) / {#})
    float({i} % 1000)
    float({b})
    abs({f})
    max({f}, {half})
    min({f}, {f})
    round({f}, 1)
    sum({lf})
    {lf}[0]
    max({lf})
    {df}.get({key}, {f})
    {df}["a"]
    2: ({f} if {b} else {f})
    ({f} or {half})
    math.fabs({f})
    math.copysign({half}, {f})
    math.sqrt(abs({fixed}))
    float("1.5")
    float("-inf") if {b} else {half}
    operator.truediv({f}, 4)
    3: {data_float}
    (({i1} % 5) ** -1 if {i1} % 5 else {half})
    sum({@1} / 2 for {@1} in {li})
    complex({fixed}, {half}).imag
    (({fixed} + 2j) * 1j).real
    math.inf
    math.pi
    (1e-3 * {f})
""")
BOOL_FORMS = expressions("""
    3: ({i} < {i})
    3: ({i} > {#})
    2: ({i} == {i})
    ({i} != {#})
    ({i} <= {i})
    2: ({i} >= {#})
    2: ({i} % 2 == 0)
    ({f} < {f})
    2: ({f} > {half})
    ({s} == {s})
    ({s} < {s})
    ({s} != "ab")
    ({#} <= {i} < 9)
    ({i} < {i} <= {i} != {#})
    (0 < {i} > {i})
    3: (not {b})
    3: ({b} and {b})
    3: ({b} or {b})
    ({b} if {b} else {b})
    ({b} ^ {b})
    ({b} & {b})
    ({b} | {b})
    2: ({i} in {li})
    ({i} not in {li})
    ({key} in {d})
    ({otherkey} in {d})
    ({i} in {si})
    ("a" in {s})
    ({i} in range(5))
    ({i} not in (1, 2, {i}))
    ({i} in {1, 2, 3})
    ({any} is None)
    ({any} is not None)
    ({s} in ["a", "b", *{ls}])
    2: isinstance({any}, (int, str))
    isinstance({any}, torch.Tensor)
    isinstance({any}, list)
    isinstance({i}, bool)
    isinstance({any}, int | str)
    (type({any}) is int)
    (type({any}) == float)
    (type({i}) is type({any}))
    issubclass(bool, int)
    issubclass(type({any}), (dict, list))
    hasattr({any}, "append")
    hasattr({x}, "shape")
    callable({any})
    any({@1} > {#} for {@1} in {li})
    all({@1} > {#} for {@1} in {li})
    any([{b}, {b}])
    all(({b}, {b}))
    all(map(callable, [len, {any}]))
    bool({li})
    bool({i})
    bool({s})
    2: ({x}.dim() == 2)
    2: ({x}.shape[0] > 2)
    ({x}.shape[1] == {x}.shape[0])
    ({x}.shape == {x}.shape)
    ({x}.size() == (2, 3))
    (tuple({x}.shape) < (3, 3))
    2: ({x}.dtype == torch.float32)
    ({x}.dtype is torch.float64)
    ({k}.dtype == torch.int64)
    ({x}.dtype in (torch.float32, torch.int64))
    {x}.is_floating_point()
    {x}.requires_grad
    {x}.is_contiguous()
    ({x}.device.type == "cpu")
    ({x} is {x})
    ({x} is not {x})
    ({li} is {li})
    ({li} == {li})
    ({d} == {d})
    ({p} < {p})
    ({li} >= [1, 2])
    {s}.startswith("a")
    {s}.isdigit()
    ({si} <= {1, 2, 3, 4})
    {si}.isdisjoint({5, 6})
    math.isnan({f})
    operator.lt({i}, {i})
    operator.contains({li}, {i})
    torch.is_tensor({any})
    torch.is_grad_enabled()
    bool(None)
    (Ellipsis is ...)
    (NotImplemented is {any})
    5: {data_bool}
""")
STR_FORMS = expressions("""
    3: ({s} + {s})[:9]
    2: f"{{i}}"
    3: f"{{i}}-{{s}}"[:12]
    f"{{s}:>4}"[-8:]
    f"{{s}!r}"[:10]
    f"{{f}:.2f}"
    f"{{i}:03d}|{{f}!s:>{{#}}}"[:16]
    f"{{i}=}"[-5:]
    f"{{x}.shape[0]}x{{x}.dim()}"
    f"{type({any}).__name__}"
    {s}.upper()
    {s}.lower()
    {s}.title()
    {s}[1:]
    {s}[:2]
    {s}[::-1]
    ({s} * 2)[:8]
    2: str({i})
    str({b})
    repr({f})
    repr({s})[:9]
    repr({li})[:12]
    str({p})
    "%d:%s" % ({i}, {s}[:3])
    "%r" % ({i},)
    "{}/{}".format({i}, {s}[:4])
    "{0}{K}".format({s}[:3], K={i})
    ",".join({ls})[:12]
    "".join([{s}, {s}])[:9]
    "".join(str({@1}) for {@1} in {li})[:9]
    {s}.replace("a", "bb")[:9]
    {s}.strip("a")
    {s}.partition("b")[0]
    ({s} + " x").split()[-1]
    type({any}).__name__
    type({any}).__qualname__[:4]
    str({x}.dtype)
    str({x}.device)
    str(tuple({x}.shape))
    2: f"{{x}.shape}"
    f"{{x}.shape!r:>{{#}}}"[-9:]
    str([{x}.shape, {i}])[:24]
    "%s" % ({x}.shape,)
    "{}|{}".format({x}.shape, {li})[:24]
    "{0[0]}:{1!r:>6}".format({x}.shape, {s})
    str({x}.shape * 2)
    repr(collections.OrderedDict([({s}, {x}.shape)]))[-30:]
    str(collections.defaultdict(list, {"k": {i}}))[-9:]
    "".join(map(str, {x}.shape))
    "-".join({s}[:2] for {@1} in {x}.shape)
    str(None)
    2: ({s} if {b} else {s})
    ({s} or "empty")
    chr(97 + {i} % 26)
    format({i}, ">5")
    {ls}[0]
    {ls}[-1]
    max({ls})
    min({s}, {s})
    sorted({ls})[0]
    next(iter({ls}))
    {y}.decode()
    ["x", {s}][{bit}]
    {"k": {s}}["k"]
    (lambda {@1}: {@1}[:3])({s})
    len.__name__
    str({y})[:6]
    "a" "b"
    hex({i} % 100)
    str(slice({#}, None))
    str(range({i} % 5))
    str(torch.float32)
    ascii({s})[:5]
    {s}.zfill(3)[:6]
    list({d})[0]
    [{@1} for {@1} in {d} if {@1} != "b"][0]
    next(iter({d}))
    "".join(sorted({ss}))[:8]
    "".join(sorted(set({s})))
    str(complex(1, {#}))
    {s}.__add__("z")[:7]
""")
BYTES_FORMS = expressions("""
    ({y} + b"x")[:6]
    {s}.encode()[:4] + b"z"
    bytes([{#}, {#}])
    b"ab%d" % {#}
    b"".join([{y}, b"-"])[:7]
    bytes(bytearray({y}))
    {y}.upper()
    b"q" + {y}[1:]
""")
LIST_FORMS = expressions("""
    3: [{e}, {e}]
    2: [{e}, {e}, {e}]
    [*{=}[:3], {e}]
    [{e}, *{=}[-2:], {e}]
    ({=} + {=}[:2])
    ({=}[:2] * 2)
    list({=})
    {=}.copy()
    {=}[:]
    {=}[::-1]
    list(reversed({=}))
    [{@1} for {@1} in {=}]
    [{e} for {@1} in range({size})]
    list(map(lambda {@1}: {@1}, {=}))
    [*{=}]
    list(({e}, {e}))
    list(iter({=}))
    copy.copy({=})
    list(itertools.chain([{e}], {=}))
    [{@1} for {@1}, {@2} in zip({=}, range(9))]
    [{e}] * 2
    (lambda *{@1}: list({@1}))({e}, {e})
    list({@1} for {@1} in {=})
    list(dict(enumerate({=})).values())
    list(tuple({=}))
    [{e} if {b} else {e}, {e}]
    ({=} if {b} else {=})
    ({=} or [{e}])
    [{@2} for {@1} in [{=}] for {@2} in {@1}]
    list(collections.deque({=}))
    list(itertools.islice(itertools.cycle({=}), 3))
    copy.deepcopy({=})
    list(zip(*[({e}, 1), ({e}, 2)]))[0][:] and [{e}, {e}]
""")
SORTABLE_FORMS = expressions("""
    sorted({=})
    sorted({=}, reverse=True)
    sorted({=}, key=str)
    [{@1} for {@1} in {=} if {@1} in {=}] + [{e}, {e}]
    [min({=}), max({=})]
    [{@1} for {@1} in ({=} + {=}[:1]) if {@1} != {e}] + [{e}, {e}]
""")
LIST_INT_FORMS = expressions("""
    3: list(range({size}))
    [{@1} * {#} for {@1} in {=}]
    [{@1} + {@2} for {@1} in range(2) for {@2} in range(2)]
    list(map(int, {lf1})) if all(map(math.isfinite, {lf1})) else {=}
    list({x}.shape)
    [*range({#}, 6)]
    list({d}.values())
    list({dn})
    list(itertools.accumulate({=}))
    [len({@1}) for {@1} in {ls}]
    [{@1} for {@1}, {@2} in enumerate({s} + "ab")]
    sorted({si} | {1, 2})
    list({y} + b"ab")
    {k}.tolist()[0] + [1, 2]
    [{@1} if {@1} > {#} else -{@1} for {@1} in {=}]
    [{i} for {@1} in {x}] + [0]
""")
DICT_FORMS = expressions("""
    3: {{keya}: {e}, {keyb}: {e}, {keyc}: {e}}
    {**{=}, {otherkeyed}: {e}}
    {**{=}, {keya}: {e}}
    dict({=})
    {=}.copy()
    ({=} | {{keya}: {e}})
    {{@1}: {@2} for {@1}, {@2} in {=}.items()}
    {{@1}: {e} for {@1} in {=}}
    dict(zip(({keya}, {keyb}, {keyc}), ({e}, {e}, {e})))
    dict([({keya}, {e}), ({keyb}, {e}), ({keyc}, {e})])
    dict.fromkeys([{keya}, {keyb}, {keyc}], {e})
    dict({=}.items())
    ({=} if {b} else {=})
    copy.copy({=})
    collections.OrderedDict({=})
    collections.defaultdict(int, {=})
    dict(sorted({=}.items(), key=lambda {@1}: str({@1}[0])))
    {{keya}: {e}, {keyb}: {e}, {keyc}: {e}, {otherkeyed}: {e}}
""")
SET_FORMS = expressions("""
    {{e}, {e}}
    {{e}, {e}, {e}}
    set([{e}, {e}])
    ({=} | {{e}})
    ({=} & {=})
    ({=} - {{e}})
    ({=} ^ {{e}, {e}})
    {{@1} for {@1} in {=}}
    {*{=}, {e}}
    set({=})
    {=}.union([{e}])
    set(frozenset({=}))
    {=}.copy()
""")
DEQUE_FORMS = expressions("""
    collections.deque([{e}, {e}])
    collections.deque([{e}, {e}, {e}], maxlen=3)
    collections.deque({=})
    {=}.copy()
    collections.deque(({e}, {e}), 2)
""")


def data_int(self, kind, depth):
    """A number that is read from a tensor."""
    if not self.chance(self.data_rate):
        return str(self.between(0, 9))
    return self.fill(self.pick(DATA_INT), depth)


def data_float(self, kind, depth):
    if not self.chance(self.data_rate):
        return str(self.between(0, 9) / 4)
    return self.fill(self.pick(DATA_FLOAT), depth)


def data_bool(self, kind, depth):
    if not self.chance(self.data_rate):
        return self.fill(self.pick(BOOL_FORMS[:30]), depth)
    return self.fill(self.pick(DATA_BOOL), depth)


DATA_INT = expressions("""
    int({x}.gt({half}).sum())
    {k}.sum().item()
    {t}.sum().item()
    int({k}[0, 0])
    {k}.max().item() % 50
    {t}.long().tolist()[0][0]
    len({x}.gt(0).nonzero())
    {x}[{x}.gt(0) & False].numel() + {#}
    operator.index({k}[0][0]) % 9
""")
DATA_FLOAT = expressions("""
    {x}.sum().item()
    float({x}[0, 0])
    {x}.max().item()
    {v}.tolist()[0]
    float({c})
    {x}.mean().item()
    sum({x}.tolist()[0])
""")
DATA_BOOL = expressions("""
    bool({x}.sum() > 0)
    bool({x}.sum() > {half})
    bool({t}.any())
    {t}.all().item()
    ({c} < {half}).item()
    (float({c}) < {half})
    torch.equal({x}, {x})
    ({x}.max() > {half}).item()
    bool({c})
    bool(({k} == {#}).any())
    torch.allclose({v}, {v})
""")

ANY_TYPES = ("int", "float", "str", "bool", LIST_INT, DICT_INT, X, PAIR, SET_INT)
ANY_TEXTS = ("None", "None", "()", "...", "NotImplemented", "int", "len", "(lambda: 0)", "1j", "torch", "range(3)", "slice(2)",
             "frozenset()", "torch.float32", "torch.Size([2])", "math.floor", "b''", "Exception()", "[]", "{}", "object", "print",
             "operator.add", "torch.add", "torch.device('cpu')", "functools.partial(len)", "itertools.count")


def any_value(self, kind, depth):
    names = [name for name, its in self.scope.names.items() if its[0] not in ("module", "hidden")]
    if names and self.chance(0.7):
        return self.use(self.pick(names))
    return self.pick(ANY_TEXTS)


KEY_HOLES = {
    "key": lambda self, kind, depth: self.pick(KEYS["str"]),
    "otherkey": lambda self, kind, depth: self.pick(OTHER_KEYS["str"]),
    "keya": lambda self, kind, depth: KEYS[kind[1]][0],
    "keyb": lambda self, kind, depth: KEYS[kind[1]][1],
    "keyc": lambda self, kind, depth: KEYS[kind[1]][2],
    "otherkeyed": lambda self, kind, depth: self.pick(OTHER_KEYS[kind[1]]),
    "e": lambda self, kind, depth: self.expr(kind[-1], depth - 1),
    "keyab": lambda self, kind, depth: self.pick(('"a"', '"b"')),
    "mod": lambda self, kind, depth: self.pick(("2", "3", "5", "7")),
    "half": lambda self, kind, depth: self.pick(("0.5", "-1.5", "2.0", "0.0", "-0.0", "0.25", "1e3")),
    "fixed": lambda self, kind, depth: self.pick(("2.5", "-1.5", "4.0", "0.25", "9.0")),
    "size": lambda self, kind, depth: self.pick(("2", "3", "4", "2 + 1")),
    "char": lambda self, kind, depth: f"({self.expr('str', 0)} + 'k')",
    "any": any_value, "data_int": data_int, "data_float": data_float, "data_bool": data_bool,
}

SCALARS = {"int": INT_FORMS, "float": FLOAT_FORMS, "bool": BOOL_FORMS, "str": STR_FORMS, "bytes": BYTES_FORMS}
LITERALS = {
    "int": ("0", "1", "2", "3", "5", "7", "(-1)", "(-4)", "10", "100"),
    "float": ("0.5", "1.0", "(-1.5)", "2.0", "0.0", "(-0.0)", "3.25", "1e10"),
    "bool": ("True", "False"),
    "str": ("'a'", "'b'", "'abc'", "''", "'xyz'", "'ba ba'"),
    "bytes": ("b'ab'", "b'xyz'", "b'\\x00\\x7f'"),
}


class Expressions(Tensors):
    """Makes an expression of any type."""

    special_holes = {**Tensors.special_holes, **KEY_HOLES}
    data_rate = 0.3

    def expr(self, kind, depth):
        if type(kind) is str:
            return self.scalar(kind, depth)
        maker = self.makers.get(kind[0])
        return maker(self, kind, depth)

    def scalar(self, kind, depth):
        choice = self.random()
        if depth <= 0:
            found = self.sources(kind) if choice < 0.75 else None
            return self.pick(found) if found else self.pick(LITERALS[kind])
        if choice < 0.35:
            found = self.sources(kind)
            if found:
                return self.pick(found)
        if choice < 0.42:
            return self.pick(LITERALS[kind])
        if choice < 0.52 and depth > 1:
            found = self.call_of(kind, depth)
            if found:
                return found
        return self.fill(self.pick(SCALARS[kind]), depth, kind)

    def container(self, kind, depth):
        found = self.sources(kind)
        if found and (depth <= 0 or self.chance(0.5)):
            return self.pick(found)
        if depth > 1 and self.chance(0.1):
            call = self.call_of(kind, depth)
            if call:
                return call
        forms = {"list": LIST_FORMS, "dict": DICT_FORMS, "set": SET_FORMS, "deque": DEQUE_FORMS}[kind[0]]
        if depth <= 0:
            return self.fill(forms[0], 0, kind)
        if kind[0] == "list" and kind[1] in ("int", "str", "float"):
            choice = self.random()
            if choice < 0.15:
                forms = SORTABLE_FORMS
            elif choice < 0.4 and kind[1] == "int":
                forms = LIST_INT_FORMS
        return self.fill(self.pick(forms), depth, kind)

    def tuple_value(self, kind, depth):
        found = self.sources(kind)
        if found and (depth <= 0 or self.chance(0.4)):
            return self.pick(found)
        if kind == PAIR and depth > 0 and self.chance(0.3):
            return self.fill(self.pick(PAIR_FORMS), depth, kind)
        return "(" + ", ".join([self.expr(part, depth - 1) for part in kind[1]]) + ("," if len(kind[1]) == 1 else "") + ")"

    def object_value(self, kind, depth):
        found = self.sources(kind)
        cls = kind[1]
        if found and (depth <= 0 or self.chance(0.6) or cls.construct is None):
            return self.pick(found)
        if cls.construct is None:
            raise LookupError("no constructor")
        self.scope.cost += self.scope.multiplier * cls.cost
        return f"{cls.name}(" + ", ".join([self.expr(part, depth - 1) for part in cls.construct]) + ")"

    def optional(self, kind, depth):
        return "None" if self.chance(0.4) else self.expr(kind[1], depth)

    def any_object(self, kind, depth):
        if self.chance(0.3):
            return any_value(self, kind, depth)
        return self.expr(self.pick(ANY_TYPES), depth)

    def function_value(self, kind, depth):
        """Returns a name, or makes a lambda."""
        found = self.sources(kind)
        if found and self.chance(0.6):
            return self.pick(found)
        function = kind[1]
        names = [self.fresh("a") for _ in function.arguments]
        scope = self.scope
        saved, own = dict(scope.names), set(scope.own)
        scope.names.update(zip(names, function.arguments))
        before, scope.multiplier = scope.multiplier, 1000
        scope.own = set(names)  # the lambda may run later, so the variables that it reads are pinned
        body = self.expr(function.result, depth - 1)
        scope.names, scope.own, scope.multiplier = saved, own, before
        return f"(lambda {', '.join(names)}: {body})"

    def sources(self, kind):
        """Returns variables of this type and short expressions on variables that have it."""
        found = []
        for name, its in self.scope.names.items():
            if its == kind:
                found.append(self.use(name))
            elif type(its) is tuple:
                place = its[0]
                if place == "list" or place == "deque":
                    if its[1] == kind:
                        found.append(self.pick((name + "[0]", name + "[1]", name + "[-1]")))
                        self.use(name)
                elif place == "dict":
                    if its[2] == kind:
                        key = self.pick(KEYS[its[1]])
                        found.append(f"{name}[{key}]")
                        self.use(name)
                elif place == "tuple":
                    if kind in its[1]:
                        found.append(f"{name}[{its[1].index(kind)}]")
                        self.use(name)
                elif place == "obj":
                    for attribute, held in its[1].attributes.items():
                        if held == kind:
                            found.append(f"{name}.{attribute}")
                            self.use(name)
        return found

    def call_of(self, kind, depth):
        """Returns a call of a function or a use of an object that gives this type, or None."""
        found = []
        scope = self.scope
        room = 150 / scope.multiplier
        for name, its in scope.names.items():
            if type(its) is not tuple:
                continue
            if its[0] == "fn":
                if its[1].result == kind and its[1].cost <= room:
                    found.append((name, its[1]))
            elif its[0] == "obj" and kind in its[1].uses and its[1].cost <= room:
                found.append((name, its[1]))
        if not found:
            return None
        name, its = self.pick(found)
        self.use(name)
        scope.cost += scope.multiplier * its.cost
        if isinstance(its, Function):
            return self.call(name, its, depth)
        return self.fill(self.pick(its.uses[kind]), depth, kind, name)

    def call(self, name, function, depth):
        """Returns a call with arguments of the right types, some by name, by star or with extra ones."""
        texts = [self.expr(part, depth - 1) for part in function.arguments]
        extra = [self.fill(part, 1) for part in function.extra if self.chance(0.5)]
        if texts and not extra and self.chance(0.08):
            return f"{name}(*({', '.join(texts)},))"
        return f"{name}({', '.join(texts + extra)})"

    makers = {
        "T": Tensors.tensor, "list": container, "dict": container, "set": container, "deque": container, "tuple": tuple_value,
        "obj": object_value, "opt": optional, "any": any_object, "fn": function_value,
    }


PAIR_FORMS = expressions("""
    divmod({i}, {#})
    tuple({li}[:2])
    tuple({x}.shape)
    ({p} if {b} else {p})
    (*{p},)
    {p}[::-1]
    tuple(sorted({p}))
    next(zip({li}, {li}))
    tuple({@1} for {@1} in {p})
    {x}.size() and {p}
    (lambda *{@1}: {@1})({i}, {i})
""")
# Types that new variables get, often used ones more than once.
VARIABLE_TYPES = (X,) * 14 + (VECTOR, VECTOR, COLUMN, SCALAR, SCALAR, ONE, WHOLE, WHOLE, TRUTH, TRUTH, ("T", "f", ("m", "n")),
                              ("T", "f", ("n", 1)), ("T", "f", (1, "m"))) + ("int",) * 6 + ("float",) * 3 + ("bool",) * 3 + \
    ("str",) * 3 + ("bytes",) + (LIST_INT,) * 4 + (LIST_FLOAT, LIST_STR, LIST_STR, LIST_X, LIST_X, DICT_INT, DICT_INT, DICT_FLOAT,
                                 DICT_X, DICT_X, DICT_NUMBERS, DICT_LIST, SET_INT, SET_INT, SET_STR, DEQUE_INT, DEQUE_X, PAIR,
                                 PAIR, ("tuple", ("int", X)), ("tuple", (X, LIST_INT, "str")), ("list", PAIR), ("opt", X), ANY)
