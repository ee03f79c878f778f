"""Groups of statements with classes, for random_features.py: (name, type of the variable {o} or None, template)."""

from random_base import LIST_INT, LIST_STR, X

TEXTS = [
    ("class in function", "int", """
class {@1}:
    rate: int = {#}
    total = rate + {i}
    def scaled(self, {@2}):
        return self.total * {@2} + self.rate
{o} = {@1}().scaled({#})
"""),
    ("class that reads a variable", "int", """
{@3} = {i}
class {@1}:
    base = {@3} + 1
    other = [{#}]
    del other
    def value(self):
        return __class__.base + {@3}
{o} = {@1}().value() + {@1}.base
"""),
    ("class with __slots__", X, """
class {@1}:
    __slots__ = ("held", "count")
    def __init__(self, held):
        self.held, self.count = held, {#}
{@2} = {@1}({x})
{@2}.count += {i}
{o} = {@2}.held + {@2}.count % 8
"""),
    ("metaclass", "str", """
class {@1}(type):
    def __new__(meta, name, bases, space, **options):
        return super().__new__(meta, name + "X", bases, {**space, "extra": options.get("extra", {#})})
    def __call__(cls, *arguments):
        return super().__call__(*arguments)
class {@2}(metaclass={@1}, extra={i}):
    pass
{o} = {@2}.__name__ + str({@2}().extra)[:4]
"""),
    ("type()", "int", """
{@1} = type("Made", (), {"value": {i}, "twice": lambda self: self.value * 2})
{o} = {@1}().twice()
"""),
    ("bound method", "int", """
{@1} = {li}.append
{@1}({i})
{o} = {@1}.__self__[-1]
"""),
    ("bound method escapes", None, """
class {@1}:
    def __init__(self):
        self.held = {i}
    def bump(self, by=1):
        self.held += by
        return self.held
{o} = {@1}().bump
ESCAPED.append({o})
{o}({#})
"""),
    ("deleted attribute", "bool", """
class {@1}:
    shared = {i}
{@2} = {@1}()
{@2}.shared = {#}
del {@2}.shared
{o} = {@2}.shared == {@1}.shared
"""),
    ("custom iterator", "int", """
class {@1}:
    def __init__(self, {@2}):
        self.left = {@2}
    def __iter__(self):
        return self
    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left
{o} = sum({@1}({#}))
"""),
    ("old iteration", LIST_INT, """
class {@1}:
    def __getitem__(self, {@2}):
        if {@2} > {#}:
            raise IndexError
        return {@2} * 2
{o} = list({@1}()) + [{i}, {i}]
"""),
    ("missing keys", "int", """
class {@1}(dict):
    def __missing__(self, key):
        self[key] = {#}
        return {i}
{@2} = {@1}(a=1)
{o} = {@2}["a"] + {@2}["zz"] + {@2}["zz"]
"""),
    ("list subclass", LIST_INT, """
class {@1}(list):
    def append(self, value):
        super().append(value + {#})
{@2} = {@1}([{i}])
{@2}.append({i})
{o} = [*{@2}, len({@2})]
"""),
    ("named tuple", "int", """
{@1} = Point({i}, {x})
{@2} = {@1}._replace(a={#})
{@3}, {@4} = {@2}
{o} = {@1}.a + {@2}[0] + {@3}
"""),
    ("enumeration", "str", """
{@1} = Color(1 + {i} % 2)
match {@1}:
    case Color.RED:
        {o} = {@1}.name
    case _:
        {o} = str({@1}.value)
"""),
    ("data class", X, """
{@1} = Record({x}, {i})
{@1}.count += 1
{@2} = dataclasses.replace({@1}, count={#})
{o} = {@2}.data + {@1}.count % 8 if {@1} != {@2} or True else {x}
"""),
    ("class pattern", "int", """
match {any}:
    case Point(a=0):
        {o} = 1
    case Point({@1}, _) if {@1} > {#}:
        {o} = {@1}
    case Record(count={@2}):
        {o} = {@2}
    case {"a": _} | [_, *_]:
        {o} = -1
    case _:
        {o} = -2
"""),
    ("property", X, """
class {@1}:
    def __init__(self, value):
        self._value = value
        self.reads = 0
    @property
    def value(self):
        self.reads += 1
        return self._value
    @value.setter
    def value(self, new):
        self._value = new + 1
    @value.deleter
    def value(self):
        self._value = self._value * 0
{@2} = {@1}({x})
{@2}.value = {@2}.value + {#}
{@3} = {@2}.value
del {@2}.value
{o} = {@3} + {@2}.value + {@2}.reads
"""),
    ("descriptor", "int", """
class {@1}:
    def __set_name__(self, owner, name):
        self.name = "_" + name
    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name, {#})
    def __set__(self, instance, value):
        setattr(instance, self.name, value + 1)
class {@2}:
    field = {@1}()
{@3} = {@2}()
{o} = {@3}.field
{@3}.field = {i}
{o} += {@3}.field
"""),
    ("__getattr__", "int", """
class {@1}:
    def __getattr__(self, name):
        if name == "gone":
            raise AttributeError(name)
        return len(name) + {#}
{@2} = {@1}()
{@2}.held = {i}
{o} = {@2}.held + {@2}.other + getattr({@2}, "gone", {#}) + hasattr({@2}, "gone")
"""),
    ("__setattr__", LIST_STR, """
class {@1}:
    names = ["a", "b"]
    def __setattr__(self, name, value):
        type(self).names.append(name)
        object.__setattr__(self, name, value)
    def __delattr__(self, name):
        self.names.append("-" + name)
        super().__delattr__(name)
{@2} = {@1}()
{@2}.z = {i}
del {@2}.z
{o} = list({@2}.names)
"""),
    ("static and class methods", "int", """
class {@1}:
    rate = {#}
    @staticmethod
    def plus({@2}):
        return {@2} + 1
    @classmethod
    def made(cls, {@2}):
        return cls.rate * {@2}
class {@3}({@1}):
    rate = {i} % 10
{o} = {@3}.plus({i}) + {@3}.made({#}) + {@1}().made(2)
"""),
    ("super", "str", """
class {@1}:
    def name(self):
        return "base"
class {@2}({@1}):
    def name(self):
        return "left" + super().name()
class {@3}({@1}):
    def name(self):
        return "right" + super(type(self), self).name() if type(self) is {@3} else "r"
class {@4}({@2}, {@3}):
    pass
{o} = {@4}().name() + {@3}().name()
"""),
    ("operators of a class", "int", """
class {@1}:
    def __init__(self, v):
        self.v = v
    def __add__(self, other):
        return {@1}(self.v + getattr(other, "v", {#})) if other is not None else NotImplemented
    __radd__ = __add__
    def __iadd__(self, other):
        self.v += 1
        return self
    def __neg__(self):
        return {@1}(-self.v)
    def __lt__(self, other):
        return self.v < other.v
    def __eq__(self, other):
        return isinstance(other, {@1}) and self.v == other.v
    def __hash__(self):
        return self.v % 10
    def __matmul__(self, other):
        return {@1}(self.v * 2)
{@2}, {@3} = {@1}({i}), {@1}({#})
{@2} += {@3}
{@4} = 1 + (-{@2} + {@3}) @ {@3}
{o} = {@4}.v + ({@2} < {@3}) + ({@2} == {@3}) + ({@2} != 1) + len({{@2}, {@3}}) + max({@2}, {@3}).v
"""),
    ("container of a class", "int", """
class {@1}:
    def __init__(self):
        self.held = {"a": {i}}
    def __len__(self):
        return len(self.held)
    def __getitem__(self, key):
        return self.held[key]
    def __setitem__(self, key, value):
        self.held[key] = value
    def __delitem__(self, key):
        del self.held[key]
    def __contains__(self, key):
        return key in self.held
    def __iter__(self):
        return iter(self.held)
    def __bool__(self):
        return False
    def __call__(self, *keys):
        return [self.held.get(key) for key in keys]
{@2} = {@1}()
{@2}["b"] = {#}
{@2}["b"] += {i}
{o} = {@2}["b"] + len({@2}) + ("a" in {@2}) + len([*{@2}]) + (1 if {@2} else 2) + {@2}("a")[0]
del {@2}["a"]
"""),
    ("text of a class", "str", """
class {@1}:
    def __repr__(self):
        return "R"
    def __str__(self):
        return "S" + str({i})[:3]
    def __format__(self, spec):
        return "F" + spec
{@2} = {@1}()
{o} = f"{{@2}}{{@2}!r}{{@2}!s}{{@2}:x}"
"""),
    ("abstract class", "str", """
class {@1}(abc.ABC):
    @abc.abstractmethod
    def work(self): ...
class {@2}({@1}):
    def work(self):
        return {s}
try:
    {@1}()
except TypeError:
    {o} = {@2}().work()
"""),
    ("cached property", "int", """
class {@1}:
    calls = 0
    @functools.cached_property
    def value(self):
        type(self).calls += 1
        return {i}
{@2} = {@1}()
{o} = {@2}.value + {@2}.value + {@1}.calls
"""),
    ("__new__", "int", """
class {@1}:
    made = 0
    def __new__(cls, *arguments):
        cls.made += 1
        return super().__new__(cls)
    def __init__(self, v):
        self.v = v
{o} = {@1}({i}).v + {@1}({#}).v + {@1}.made
"""),
    ("weak reference", "bool", """
class {@1}: pass
{@2} = {@1}()
{@3} = weakref.ref({@2})
{o} = {@3}() is {@2}
del {@2}
{o} = {o} and {@3}() is None
"""),
    ("__del__", LIST_INT, """
{o} = [{i}, {#}]
class {@1}:
    def __del__(self):
        {o}.append(5)
{@2} = {@1}()
{o}.append(6)
{@2} = None
{o}.append(7)
"""),
    ("context with own class", LIST_STR, """
{o} = ["x", {s}]
class {@1}:
    def __enter__(self):
        {o}.append("in")
        return {#}
    def __exit__(self, kind, value, traceback):
        {o}.append("out" if kind is None else kind.__name__)
        return {b}
try:
    with {@1}() as {@2}, {@1}():
        if {b}:
            raise KeyError({i})
        {o}.append("body")
except KeyError:
    {o}.append("left")
"""),
    ("function attributes", "int", """
def {@1}():
    {@1}.count += 1
    return {@1}.count
{@1}.count = {i}
{o} = {@1}() + {@1}()
"""),
    ("neural module", X, """
class {@1}(torch.nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate
        self.calls = 0
    def forward(self, value):
        self.calls += 1
        return value * self.rate if self.training else value
{@2} = {@1}({#})
{o} = {@2}({x}) + {@2}.eval()({x}) + {@2}.calls
"""),
    ("methods of classes", "str", """
{o} = str.upper({s}) + list.__len__({li}).__str__()
{@1} = map(str.strip, [{s}, " b "])
{o} = ({o} + "".join({@1}))[:11]
"""),
]
