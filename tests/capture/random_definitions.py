"""The part of a program before its entry function: globals, errors, classes, contexts and helpers."""

from random_base import DICT_INT, LIST_INT, LIST_X, ONE, PAIR, SCALAR, VECTOR, X, UserClass, table
from random_control import Control

HEADER = """import abc, collections, contextlib, copy, dataclasses, enum, functools, itertools, math, operator, typing, weakref
ESCAPED = []
HOOK = lambda value: value + 1
GX = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.0, -2.0]])"""
OWN_CONTEXTS = ("""
class {name}:
    def __init__(self, label, swallow=False):
        self.label, self.swallow = label, swallow
    def __enter__(self):
        {log}.append(self.label)
        return self
    def __exit__(self, kind, value, traceback):
        {log}.append(-1 if kind is None else -2)
        return self.swallow
""", """
@contextlib.contextmanager
def {name}(label, swallow=False):
    {log}.append(label)
    try:
        yield label
    except ValueError:
        {log}.append(-3)
        if not swallow:
            raise
    finally:
        {log}.append(-4)
""")
# Classes that are kept in programs that use them.
SHARED_CLASSES = {
    "Point": ['Point = collections.namedtuple("Point", "a b")'],
    "Color": ["class Color(enum.Enum):", "    RED = 1", "    BLUE = 2"],
    "Record": ["@dataclasses.dataclass", "class Record:", "    data: torch.Tensor", "    count: int = 0"],
}
# Attributes that an object of a class may have. An object with sized ones must be made in the call.
ATTRIBUTES = ("int", "int", "float", "str", "bool", LIST_INT, DICT_INT, PAIR, ONE, SCALAR)
SIZED_ATTRIBUTES = (X, X, VECTOR, LIST_X)
# Special methods: the header and body, and the expression on an object that reaches it, with its type.
OPERATORS = (
    ("def __add__(self, other):\n    return self.{int} + other", "int", "({o} + {i})"),
    ("def __radd__(self, other):\n    return other - self.{int}", "int", "({i} + {o})"),
    ("def __mul__(self, other):\n    return other * self.{int}", X, "({o} * {x})"),
    ("def __rsub__(self, other):\n    return other * 2", "float", "({f} - {o})"),
    ("def __neg__(self):\n    return -self.{int}", "int", "(-{o})"),
    ("def __len__(self):\n    return abs(self.{int}) % 5", "int", "len({o})"),
    ("def __bool__(self):\n    return self.{int} > 1", "bool", "bool({o})"),
    ("def __eq__(self, other):\n    return isinstance(other, int) and self.{int} == other\n__hash__ = None", "bool", "({o} == {i})"),
    ("def __lt__(self, other):\n    return self.{int} < other", "bool", "({o} < {i})"),
    ("def __contains__(self, key):\n    return key == self.{int}", "bool", "({i} in {o})"),
    ("def __getitem__(self, key):\n    if isinstance(key, slice):\n        return self.{int}\n    return self.{int} + key", "int", "{o}[{i}]"),
    ("def __call__(self, value, *, times=1):\n    self.{int} += 1\n    return value * times", X, "{o}({x}, times={#})"),
    ("def __iter__(self):\n    yield self.{int}\n    yield 2", "int", "sum({o})"),
    ("def __getattr__(self, name):\n    if name.startswith('dyn'):\n        return len(name)\n    raise AttributeError(name)", "int",
     "{o}.dynamic"),
    ("def __int__(self):\n    return self.{int}", "int", "int({o})"),
    ("def __index__(self):\n    return abs(self.{int}) % 3", "int", "[5, 6, 7][{o}]"),
    ("@property\ndef doubled(self):\n    return self.{int} * 2", "int", "{o}.doubled"),
    ("@staticmethod\ndef fixed(value):\n    return value + 3", "int", "{o}.fixed({i})"),
    ("@classmethod\ndef of_class(cls, value):\n    cls.made += 1\n    return cls.made + value", "int", "{o}.of_class({i})"),
    ("def chained(self, value):\n    self.{int} = value\n    return self", "int", "{o}.chained({i}).{int}"),
    ("def __matmul__(self, other):\n    return other + self.{int} % 8", X, "({o} @ {x})"),
)
STATEMENTS = ("{o}.{int} += {#}", "{o}.extra = {i}", "{o}.__dict__['{int}'] = {i}", "{o}.__class__.made += 1", "{o}.{int} -= 1;{o}.made = 5",
              "vars({o})['{int}'] = {#}", "type({o}).rate = {i}", "{@1} = {o};{@1}.{int} = {i}")


class Definitions(Control):
    """Makes the module's part of a program."""

    globals_written = ()
    contexts = ()

    def module(self):
        """Emits everything before the entry function."""
        self.lines += HEADER.split("\n")
        self.global_variables()
        self.shared_at = len(self.lines)
        self.error_classes()
        if self.chance(0.6):
            self.own_context()
        for _ in range(self.pick((0, 1, 1, 2))):
            self.user_class()
        for _ in range(self.pick((0, 1, 1, 2))):
            self.helper()
        for cls in self.classes:
            if cls.construct is not None and not any(type(kind) is tuple and kind in SIZED_ATTRIBUTES for kind in cls.construct) \
                    and self.chance(0.6):
                name = self.fresh("OBJECT")
                self.emit(f"{name} = {cls.name}({', '.join(self.constant(kind) for kind in cls.construct)})")
                self.scope.names[name] = ("obj", cls)

    def add_shared_classes(self):
        """Puts the classes that the finished program names above the others."""
        text = "\n".join(self.lines)
        added = [line for name, lines in SHARED_CLASSES.items() if name in text for line in lines]
        self.lines[self.shared_at:self.shared_at] = added
        self.intended = {line + len(added) for line in self.intended}

    def constant(self, kind):
        """Returns an expression of constants."""
        names, self.scope.names = self.scope.names, {}
        try:
            return self.expr(kind, 1)
        finally:
            self.scope.names = names

    def global_variables(self):
        names = self.scope.names
        self.changes = []
        choices = (("int", "3", "{} += 2"), ("float", "0.5", "{} = -{}"), ("str", "'ab'", "{} = 'c'"), ("bool", "True", "{} = not {}"),
                   (LIST_INT, "[1, 2, 3]", "{}.append(7)"), (DICT_INT, '{"a": 1, "b": 2, "c": 3}', '{}["a"] += 5'),
                   (ONE, "torch.tensor([1.5])", "{} = {}.double()"), (SCALAR, "torch.tensor(0.5)", "{}.add_(1)"),
                   (PAIR, "(1, 2)", "{} = (2, 1)"), (LIST_INT, "[4, 5]", "{} = [9, 8, 7]"),
                   (("set", "int"), "{1, 2}", "{}.add(9)"), (("deque", "int"), "collections.deque([1, 2], maxlen=4)", "{}.append(3)"),
                   ("int", "7", "{} = 0"))
        written = []
        for kind, value, change in self.rng.sample(choices, self.between(2, 5)):
            name = self.fresh("G")
            self.emit(f"{name} = {value}")
            names[name] = kind
            written.append(name)
            self.changes.append((name, change.replace("{}", name)))
        self.globals_written = [name for name in written if self.chance(0.6)]
        self.log = self.fresh("LOG")
        self.emit(f"{self.log} = [0, 0]")
        names[self.log] = LIST_INT

    def error_classes(self):
        first, second = self.fresh("Error"), self.fresh("Error")
        self.emit(f"class {first}({self.pick(('Exception', 'ValueError', 'RuntimeError'))}):")
        self.emit("    code = 3")
        self.emit(f"class {second}({first}):")
        if self.chance(0.5):
            self.lines += ["    def __init__(self, *values):", "        super().__init__(*values)", "        self.count = len(values)"]
        else:
            self.emit("    pass")
        self.errors = (first, second, "ValueError", first)

    def own_context(self):
        name = self.fresh("Context")
        self.lines += self.pick(OWN_CONTEXTS).replace("{name}", name).replace("{log}", self.log).strip("\n").split("\n")
        self.contexts = [table(f"{name}({{i}})")[0], table(f"{name}({{#}}, True)")[0], table(f"{name}({{i}}, swallow={{b}})")[0]]

    def user_class(self):
        """Emits a class with attributes, methods and operators, and notes what can be done with its objects."""
        base = self.pick([cls for cls in self.classes if cls.construct is not None] or [None]) if self.chance(0.4) else None
        cls = UserClass(self.fresh("Class"), base)
        slots = base is None and self.chance(0.12)
        self.emit(f"class {cls.name}" + (f"({base.name})" if base else "") + ":")
        self.indent += 1
        if slots:
            start = len(self.lines)
        self.emit(f"made = {self.between(0, 5)}")
        inherited = list(base.construct) if base else []
        fresh = ["int"] + [self.pick(ATTRIBUTES + SIZED_ATTRIBUTES) for _ in range(self.between(1, 2))] if not base else \
            [self.pick(ATTRIBUTES) for _ in range(self.between(0, 1))]
        attributes = [(self.fresh("a"), kind) for kind in fresh]
        parameters = [self.fresh("p") for _ in inherited + fresh]
        if not base or fresh:
            self.emit(f"def __init__(self, {', '.join(parameters)}):")
            if base:
                self.emit(f"    super().__init__({', '.join(parameters[:len(inherited)])})")
            for (name, _), given in zip(attributes, parameters[len(inherited):]):
                self.emit(f"    self.{name} = {given}")
        self.emit("def __repr__(self):")
        self.emit(f"    return '{cls.name}'")
        cls.attributes.update(attributes)
        cls.construct = inherited + fresh
        number = next(name for name, kind in cls.attributes.items() if kind == "int")
        if slots:
            self.lines.insert(start, f"    __slots__ = ({', '.join(repr(name) for name in cls.attributes)},)")
        chosen = self.rng.sample(OPERATORS, self.between(1, 4))
        for text, kind, use in chosen:
            for line in text.replace("{int}", number).split("\n"):
                self.emit(line)
            cls.offer(kind, use.replace("{int}", number))
        statements = STATEMENTS if not slots else STATEMENTS[:1] + STATEMENTS[6:]
        cls.statements += [table(text.replace("{int}", number))[0] for text in statements if self.chance(0.4)]
        self.methods(cls, base)
        self.indent -= 1
        self.classes.append(cls)

    def methods(self, cls, base):
        for _ in range(self.between(0, 2)):
            name = self.fresh("method")
            result = self.pick((X, X, "int", VECTOR, "str", LIST_INT))
            sized = type(result) is tuple or any(kind in SIZED_ATTRIBUTES for kind in cls.attributes.values())
            attributes = dict(cls.attributes)
            if not sized:
                attributes = {own: kind for own, kind in attributes.items() if kind not in SIZED_ATTRIBUTES}
            seen = UserClass(cls.name)
            seen.attributes = attributes
            outer, self.scope.kind = self.scope.kind, "class"
            names = dict(self.scope.names)
            function = self.make_function(name, result, self.between(1, 2), first=(("self", ("obj", seen)),), sized=True)
            self.scope.kind, self.scope.names = outer, names
            holes = {"int": "{i}", "float": "{f}", "str": "{s}", "bool": "{b}", X: "{x}", VECTOR: "{v}", LIST_INT: "{li}",
                     LIST_X: "{lx}", DICT_INT: "{d}", PAIR: "{p}"}
            if all(kind in holes for kind in function.arguments):
                arguments = ", ".join(holes[kind] for kind in function.arguments)
                cls.offer(result, "{o}." + name + f"({arguments})")
                cls.offer(result, "getattr({o}, '" + name + f"')({arguments})")
                cls.cost = max(cls.cost, function.cost)

    def helper(self):
        """Emits a function of the module, at times with a decorator."""
        decorator = None
        if self.chance(0.25):
            decorator = self.fresh("decorator")
            self.lines += [f"def {decorator}(function):", "    @functools.wraps(function)", "    def wrapper(*arguments, **keywords):",
                           f"        {self.log}.append(len(arguments))", "        return function(*arguments, **keywords)",
                           "    return wrapper"]
        name = self.fresh("helper")
        result = self.pick((X, X, X, VECTOR, "int", "float", "str", LIST_INT, SCALAR))
        function = self.make_function(name, result, self.between(1, 4), decorator=decorator)
        if result in ("int", "str", SCALAR):
            value = {"int": "5", "str": "'new'", SCALAR: "torch.tensor(2.5)"}[result]
            self.changes.append((name, f"{name} = lambda *arguments, **keywords: {value}"))
        return function
