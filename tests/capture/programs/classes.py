"""Classes and objects of the user."""

import abc


class Plain:
    shared = [1]
    count = 0

    def __init__(self, a, b=2):
        self.a = a
        self.b = b

    def total(self, x):
        return x * self.a + self.b

    def count_up(self):
        self.count += 1
        return self


class WithProperty:
    def __init__(self, n):
        self._n = n
        self.reads = 0

    @property
    def n(self):
        self.reads += 1
        return self._n

    @n.setter
    def n(self, value):
        self._n = value * 2

    @n.deleter
    def n(self):
        self._n = None


@program(lambda: (torch.randn(3), Plain(3)))
def read_attributes(x, p):
    return p.total(x), p.a + p.b, p.shared[0], hasattr(p, "c"), getattr(p, "c", 9), p.__class__ is Plain


@program(lambda: (torch.randn(3), Plain(3)))
def write_attributes(x, p):
    p.a = x + 1
    p.b += 5
    p.new = p.a
    setattr(p, "named", 3)
    del p.b
    p.count_up().count_up()
    return p.count, Plain.count


@program(lambda: (torch.randn(3), Plain(3)), raises="AttributeError")
def missing_attribute(x, p):
    p.a = 7
    x.mul_(2)
    return p.missing


@program(lambda: (torch.randn(3), Plain(3)), raises="AttributeError", graphs=0, breaks="Python raises the error before the first operator has run")
def deleted_attribute(x, p):
    del p.a
    return p.a


@program(given((3,)), check=lambda: (Plain.count, Plain.shared))
def write_class_attributes(x):
    Plain.count += 1
    Plain.shared.append(Plain.count)
    return x * Plain.count, Plain(1).count


@program(given((3,)))
def object_stays_inside(x):
    p = Plain(2)
    p.a += 1
    p.extra = x
    return p.total(x) + p.extra


@program(given((3,)))
def object_escapes(x):
    p = Plain(x + 1, b=x * 2)
    p.next = Plain(p)
    return p.next, [p]


@program(lambda: (lambda p: (torch.randn(3), p, p))(Plain(1)))
def same_object_twice(x, p, q):
    p.a = 5
    return x * q.a, p is q


@program(lambda: (torch.randn(3), WithProperty(4)))
def properties(x, w):
    y = x * w.n
    w.n = 5
    z = y + w.n
    del w.n
    return z, w.n, w.reads


class Typed:
    """A descriptor with data."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        setattr(instance, self.name, value + 1)

    def __delete__(self, instance):
        delattr(instance, self.name)


class Doubler:
    """A descriptor without data: the instance's dict comes first."""

    def __get__(self, instance, owner=None):
        return ("class", owner.__name__) if instance is None else instance.value * 2


class Described:
    value = Typed()
    double = Doubler()


@program(given((3,)))
def descriptors(x):
    d = Described()
    first = d.value
    d.value = 4
    y = x * d.value + d.double
    d.__dict__["double"] = 100
    z = y + d.double
    del d.value
    return z, first, d.value, Described.double, isinstance(Described.value, Typed)


class Base:
    label = "base"

    def __init__(self, n):
        self.n = n

    def apply(self, x):
        return x + self.n

    @classmethod
    def make(cls, n):
        return cls(n * 10)

    @staticmethod
    def helper(x, n=1):
        return x * n

    def __repr__(self):
        return f"{type(self).__name__}({self.n})"


class Derived(Base):
    label = "derived"

    def __init__(self, n, m=1):
        super().__init__(n)
        self.m = m

    def apply(self, x):
        return super().apply(x) * self.m

    def up(self):
        return super(Derived, self).label, super().__class__.__name__


class Left(Base):
    def apply(self, x):
        return super().apply(x) * 2


class Right(Base):
    def apply(self, x):
        return super().apply(x) - 3


class Diamond(Left, Right):
    pass


@program(lambda: (torch.randn(3), Derived(2, 5)))
def inheritance_and_super(x, d):
    return d.apply(x), Base.apply(d, x), d.label, d.up(), isinstance(d, Base), issubclass(Derived, Base), repr(d), Derived.__mro__[1] is Base


@program(given((3,)))
def several_bases(x):
    return Diamond(1).apply(x), [c.__name__ for c in Diamond.__mro__]


@program(given((3,)))
def class_and_static_methods(x):
    d = Derived.make(2)
    return d.apply(x), Base.helper(x, 3), d.helper(x), type(d) is Derived, d.make(1).n, Base.make(1)


@program([lambda: (torch.randn(3), Base(2)), lambda: (torch.randn(3), Derived(2)), lambda: (torch.randn(3), Left(2)),
          lambda: (torch.randn(3), Base(2))])
def type_of_object_changes(x, o):
    return o.apply(x), type(o).__name__


class Dynamic:
    known = 1

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        self.asked.append(name)
        return len(name)


class Watched:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        object.__setattr__(self, "last", name)

    def __delattr__(self, name):
        object.__delattr__(self, name)
        object.__setattr__(self, "last", "deleted " + name)

    def __getattribute__(self, name):
        if name == "magic":
            return 42
        return object.__getattribute__(self, name)


@program(lambda: (torch.randn(3), Dynamic()))
def getattr_method(x, d):
    return x * d.abc + d.known, d.asked, hasattr(d, "_x"), getattr(d, "_y", None), hasattr(d, "z")


@program(lambda: (torch.randn(3), Watched()))
def setattr_method(x, w):
    w.a = x + 1
    first = w.last
    w.b = 2
    del w.b
    return first, w.last, w.a * w.magic


class Vector:
    def __init__(self, data):
        self.data = data

    def __add__(self, other):
        return Vector(self.data + (other.data if isinstance(other, Vector) else other))

    def __radd__(self, other):
        return Vector(other - self.data)

    def __mul__(self, n):
        return NotImplemented if isinstance(n, str) else Vector(self.data * n)

    def __rmul__(self, n):
        return Vector(self.data * n * 10)

    def __iadd__(self, other):
        self.data = self.data + 100
        return self

    def __neg__(self):
        return Vector(-self.data)

    def __invert__(self):
        return "inverted"

    def __abs__(self):
        return self.data.abs()

    def __matmul__(self, other):
        return (self.data * other.data).sum()

    def __getitem__(self, key):
        return self.data[key] if not isinstance(key, tuple) else key

    def __setitem__(self, key, value):
        self.data[key] = value

    def __delitem__(self, key):
        self.deleted = key

    def __len__(self):
        return 3

    def __contains__(self, item):
        return item == 7

    def __call__(self, *args, **kwargs):
        return self.data + sum(args), kwargs

    def __divmod__(self, other):
        return "divmod", other

    def __pow__(self, n, modulo=None):
        return "pow", n, modulo

    def __index__(self):
        return 2

    def __float__(self):
        return 2.5

    def __format__(self, spec):
        return f"<{spec}>"

    def __hash__(self):
        return 5

    def __eq__(self, other):
        return "equal" if isinstance(other, Vector) else NotImplemented

    def __lt__(self, other):
        return "less"

    def __reversed__(self):
        return iter([1])

    def __round__(self, n=None):
        return "round", n


@program(lambda: (Vector(torch.randn(3)), Vector(torch.randn(3))))
def operators(v, w):
    return (v + w).data, (v + 1).data, (1 + v).data, (v * 2).data, (2 * v).data, (-v).data, abs(v), v @ w, ~v, divmod(v, 3), v ** 2, pow(v, 2, 3)


@program(lambda: (Vector(torch.randn(3)), Vector(torch.randn(3))))
def special_methods(v, w):
    v[0] = 5.0
    del v["k"]
    v += 1
    return (v[1], v[1, 2], v.deleted, len(v), 7 in v, 8 in v, v(1, 2, k=3), [0, 1, 4][v], float(v), f"{v:>3}", v == w, v != w, v < w, v > w,
            hash(v), v.data, v == 3, bool(v), list(reversed(v)), round(v), round(v, 1), {v: 1}[v])


@program(lambda: (Vector(torch.randn(3)),))
def operator_not_implemented(v):
    return v.data + 1, v * "text"


class Truth:
    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def __bool__(self):
        self.asked += 1
        return self.answer


class Sized:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


@program([lambda: (torch.randn(3), Truth(True), Sized(0)), lambda: (torch.randn(3), Truth(False), Sized(2))])
def truth_of_objects(x, t, s):
    if t:
        x = x + 1
    if not s:
        x = x * 2
    while s and s.n < 5:
        s.n += 1
        x = x - 1
    return x, t and 5, t or 6, t.asked, not t, bool(s)


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@program(lambda: (torch.randn(3), Slots(2)))
def slots(x, s):
    s.a += 1
    had = hasattr(s, "b")
    s.b = x * s.a
    made = Slots(x)
    try:
        made.c = 1
    except AttributeError as error:
        return had, made, str(error)
    return None


class SlotsAndMore(Slots):
    pass


@program(lambda: (torch.randn(3), SlotsAndMore(2)), graphs=None, breaks="the __dict__ of an object is kept")
def dict_beside_slots(x, s):
    made = SlotsAndMore(x)
    vars(made)["a"] = 2
    vars(s)["a"] = 3
    held = made.__dict__
    held["c"] = 4
    return made.a, made.c, made.__dict__, vars(made) is held, s.a, vars(s)


class Meta(type):
    made = []

    def __call__(cls, *args):
        instance = super().__call__(*args)
        cls.made.append(cls.__name__)
        return instance

    def __len__(cls):
        return 77

    @property
    def title(cls):
        return cls.__name__.upper()


class Managed(metaclass=Meta):
    def __init__(self, n):
        self.n = n


@program(given((3,)), check=lambda: Meta.made)
def metaclasses(x):
    m = Managed(3)
    return x * m.n, len(Managed), Managed.title, type(Managed) is Meta, m


class Single:
    instance = None

    def __new__(cls, n):
        if cls.instance is None:
            cls.instance = super().__new__(cls)
        return cls.instance

    def __init__(self, n):
        self.n = n


@program(given((3,)), check=lambda: Single.instance)
def new_method(x):
    a, b = Single(1), Single(2)
    return x * a.n, a is b


class Registered:
    registry = {}

    def __init_subclass__(cls, tag=None):
        super().__init_subclass__()
        cls.registry[tag] = cls.__name__

    def __class_getitem__(cls, item):
        return cls.__name__, item


class First(Registered, tag="first"):
    pass


@program(given((3,)))
def hooks_of_classes(x):
    return x * len(Registered.registry), Registered.registry["first"], First[int]


@program(given((3,)), graphs=None, breaks="defining a class runs a class body")
def class_defined_inside(x):
    scale = 3

    class Local(Base):
        factor = scale * 2
        items: list = [factor]

        def apply(self, y):
            return super().apply(y) * self.factor + scale

    return Local(1).apply(x), Local.__name__, Local.items


@program(given((3,)), graphs=None, breaks="type() makes a class")
def class_made_by_type(x):
    made = type("Made", (Base,), {"n": 4, "__init__": lambda self: None})
    return made().apply(x), made.__name__


class Abstract(abc.ABC):
    @abc.abstractmethod
    def apply(self, x):
        ...


class Concrete(Abstract):
    def apply(self, x):
        return x - 1


@program(given((3,)))
def abstract_classes(x):
    try:
        Abstract()
    except TypeError as error:
        return Concrete().apply(x), str(error).split(" ")[0], isinstance(Concrete(), Abstract)
    return None


class Ordered:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, Ordered) and self.n == other.n

    def __lt__(self, other):
        return self.n < other.n

    def __hash__(self):
        return hash(self.n)


@program(lambda: (torch.randn(3), [Ordered(3), Ordered(1), Ordered(2)]))
def objects_in_containers(x, items):
    items.sort()
    table = {o: o.n for o in items}
    return (x * items[0].n, Ordered(2) in items, table[Ordered(3)], items.index(Ordered(2)), max(items).n, Ordered(1) == 1, len({Ordered(1), Ordered(1)}),
            Ordered(1) in table, sorted(items, reverse=True)[0].n)


@program(lambda: (torch.randn(3), Plain(1)))
def methods_as_values(x, p):
    f = p.total
    p.a = 10
    g = Plain.total
    return f(x), g(p, x), f.__self__ is p, f.__func__ is g, f == p.total, p.count_up


@program(lambda: (torch.randn(3), Plain(1)))
def method_set_on_instance(x, p):
    p.total = lambda y: y - 100
    return p.total(x)


@program(lambda: (torch.randn(3), Plain(Plain(Plain(2)))))
def chains_of_attributes(x, p):
    p.a.a.a += 5
    p.a.b = x * p.a.a.a
    return p.a.a.total(x) + p.a.b


class Linked:
    def __init__(self, value, next=None):
        self.value = value
        self.next = next


@program(lambda: (torch.randn(3), Linked(1, Linked(2, Linked(3)))))
def linked_list(x, node):
    while node is not None:
        x = x + node.value
        node.value = -node.value
        node = node.next
    return x


@program(given((3,)))
def cycle_of_objects(x):
    a = Linked(x)
    b = Linked(x + 1, a)
    a.next = b
    return a


@program(lambda: (torch.randn(3), Plain(1)))
def private_names_and_dict(x, p):
    p.__dict__["hidden"] = 4
    p.__dict__.update(more=5)
    return x * p.hidden + p.more, p.__dict__.pop("more"), sorted(p.__dict__), "more" in p.__dict__


class Counted:
    alive = 0

    def __init__(self):
        type(self).alive += 1

    def __del__(self):
        type(self).alive -= 1


@program(given((3,)), check=lambda: Counted.alive, graphs=None, breaks="__del__ runs when an object dies")
def finalizers(x):
    a = Counted()
    b = Counted()
    n = Counted.alive
    del a
    return x * n, Counted.alive


@program(lambda: (torch.randn(3), Plain(1)))
def change_class_of_object(x, p):
    p.n = 3
    p.__class__ = Derived
    p.m = 2
    return p.apply(x), type(p) is Derived
