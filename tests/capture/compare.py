"""Descriptions of values that can be compared: two runs of a program agree if their descriptions are equal.

A description is a list of facts, each with the path that leads to it. Objects and memory are numbered in the order in
which they are met, so that "this is the argument itself" and "these two share memory" are facts as well. A description
holds copies: it stays as it is when the program goes on.
"""

import collections
import enum
import functools
import inspect
import math
import re
import struct
import types

# Messages whose rest names tensors as the library does, or tells how deep the stack of C was.
LIBRARY_TEXTS = re.compile(r"(modified by an inplace operation|maximum recursion depth exceeded).*", re.DOTALL)

OWN_PACKAGE = "programs."  # the modules whose classes are looked into
CONSTANTS = (int, str, bytes, type(None), type(Ellipsis), type(NotImplemented))
BUILTIN_METHOD = type([].append)
WRAPPER = type((1).__add__)
SLOT_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
ITERATOR_MODULES = ("builtins", "itertools", "_collections")


class Values:
    """The elements of a tensor or of an array of numpy, copied."""

    def __init__(self, tensor):
        self.dtype = str(tensor.dtype)
        if hasattr(tensor, "detach"):
            tensor = tensor.detach().cpu().contiguous()
        self.numbers = tensor.reshape(-1).tolist()

    def __repr__(self):
        shown = ", ".join(repr(number) for number in self.numbers[:8])
        return f"[{shown}{', ...' if len(self.numbers) > 8 else ''}]"


class Number:
    """A float or complex number of Python."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return repr(self.value)


def parts_of(number):
    return (number.real, number.imag) if isinstance(number, complex) else (number,)


def same_number(a, b, tolerance):
    """Tells whether two numbers have the same bits, or differ by little. All NaNs are equal."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (bool, int, str)):
        return a == b
    for x, y in zip(parts_of(a), parts_of(b)):
        if x != x or y != y:
            if x == x or y == y:
                return False
        elif struct.pack("d", x) != struct.pack("d", y):
            if not tolerance or not math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance):
                return False
    return True


def same_fact(a, b, tolerance):
    if type(a) is not type(b):
        return False
    if isinstance(a, Values):
        return (a.dtype == b.dtype and len(a.numbers) == len(b.numbers)
                and all(same_number(x, y, tolerance) for x, y in zip(a.numbers, b.numbers)))
    if isinstance(a, Number):
        return same_number(a.value, b.value, tolerance)
    return a == b


def first_difference(expected, found, tolerance=0.0):
    """Returns a text that tells where two descriptions differ first, or None if they agree."""
    for (path, a), (other_path, b) in zip(expected, found):
        if path != other_path:
            return f"{path or 'value'} is expected here, found {other_path}"
        if not same_fact(a, b, tolerance):
            return f"{path or 'value'}: expected {a!r}, found {b!r}"
    if len(expected) != len(found):
        longer, word = (expected, "missing") if len(expected) > len(found) else (found, "too much")
        return f"{longer[min(len(expected), len(found))][0] or 'value'}: {word}"
    return None


def type_name(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


def is_own(kind):
    return str(getattr(kind, "__module__", "")).startswith(OWN_PACKAGE)


def base_address(tensor):
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()


class Describer:
    """Collects the facts about values. One describer describes what belongs together, in a fixed order."""

    def __init__(self, tensor_class):
        self.tensor_class = tensor_class
        self.facts = []
        self.numbers = {}  # id -> number of the object
        self.memory = {}  # address -> number and first data pointer
        self.kept = []  # ids stay valid
        self.tensors = []

    def add(self, path, fact):
        self.facts.append((path, fact))

    def met(self, path, value):
        """Tells whether the object was met before. Its number is a fact."""
        known = self.numbers.get(id(value))
        if known is None:
            self.numbers[id(value)] = len(self.numbers)
            self.kept.append(value)
            return False
        self.add(path, ("object", known))
        return True

    def describe(self, path, value):
        kind = type(value)
        if kind is bool or kind in CONSTANTS:
            self.add(path, (kind.__name__, value))
        elif kind is float or kind is complex:
            self.add(path, Number(value))
        elif isinstance(value, self.tensor_class):
            self.tensor(path, value)
        elif kind.__module__ == "numpy" and hasattr(value, "__array_interface__"):
            self.array(path, value)
        elif isinstance(value, type):
            self.class_(path, value)
        elif isinstance(value, enum.Enum):
            self.add(path, ("member", type_name(kind), value.name))
        elif kind in (tuple, frozenset) and self.is_constant(value):
            # An equal one that is built anew makes no difference.
            self.items(path, value) if kind is tuple else self.set_(path, value)
        elif isinstance(value, types.ModuleType):
            self.add(path, ("module", value.__name__))
        elif kind is types.MethodType:
            self.add(path, "method")
            self.describe(path + ".__func__", value.__func__)
            self.describe(path + ".__self__", value.__self__)
        elif kind is BUILTIN_METHOD or kind is WRAPPER:
            self.add(path, ("builtin", value.__qualname__))
            if not isinstance(value.__self__, types.ModuleType):
                self.describe(path + ".__self__", value.__self__)
        elif not self.met(path, value):
            self.add(path, ("is a", type_name(kind)))
            if is_own(kind):
                self.describe(path + ".__class__", kind)
            self.contents(path, value)

    def is_constant(self, value):
        return all(type(item) in (*CONSTANTS, bool, float, complex)
                   or type(item) in (tuple, frozenset) and self.is_constant(item) for item in value)

    def contents(self, path, value):
        kind = type(value)
        if isinstance(value, (list, tuple, collections.deque)):
            self.items(path, value)
            if isinstance(value, collections.deque):
                self.describe(path + ".maxlen", value.maxlen)
        elif isinstance(value, dict):
            self.mapping(path, value)
            if isinstance(value, collections.defaultdict):
                self.describe(path + ".default_factory", value.default_factory)
        elif isinstance(value, (set, frozenset)):
            self.set_(path, value)
        elif isinstance(value, BaseException):
            self.exception(path, value)
        elif isinstance(value, types.FunctionType):
            self.function(path, value)
            return
        elif isinstance(value, types.CellType):
            self.cell(path, value)
            return
        elif isinstance(value, functools.partial):
            self.parts(path, value, "func", "args", "keywords")
        elif isinstance(value, (property, functools.cached_property)):
            self.parts(path, value, *(("fget", "fset", "fdel") if isinstance(value, property) else ("func",)))
        elif isinstance(value, (staticmethod, classmethod)):
            self.parts(path, value, "__func__")
            return
        elif isinstance(value, types.GeneratorType):
            self.add(path, (value.__qualname__, inspect.getgeneratorstate(value)))
            return
        elif isinstance(value, types.MappingProxyType):
            self.mapping(path, dict(value))
            return
        elif isinstance(value, (range, slice)):
            self.parts(path, value, "start", "stop", "step")
            return
        elif kind.__module__ in ITERATOR_MODULES and hasattr(value, "__next__"):
            self.iterator(path, value)
            return
        elif isinstance(value, (int, float, complex, str, bytes, bytearray)):
            self.add(path, repr(value) if kind.__repr__ is object.__repr__ else str(value))
        elif not self.attributes_of(value):
            text = repr(value)
            self.add(path, text if " at 0x" not in text else "opaque")
        for name, attribute in self.attributes_of(value):
            self.describe(f"{path}.{name}", attribute)

    def iterator(self, path, value):
        """Describes what an iterator has left. This takes nothing from it."""
        try:
            reduced = value.__reduce__()
        except TypeError:
            self.add(path, "opaque")
            return
        self.items(path + ".__reduce__()", reduced[1:])

    def attributes_of(self, value):
        """The attributes that the object itself holds, without those that only Python's machinery sees."""
        found = []
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict):
            found += own.items()
        for base in type(value).__mro__:
            if is_own(base):
                for name, member in vars(base).items():
                    if isinstance(member, types.MemberDescriptorType) and hasattr(value, name):
                        found.append((name, getattr(value, name)))
        return found

    def parts(self, path, value, *names):
        for name in names:
            self.describe(f"{path}.{name}", getattr(value, name))

    def items(self, path, value):
        kind = type(value)
        if kind is tuple:
            self.add(path, "tuple")
        iterate = {list: list, tuple: tuple}
        for base, method in iterate.items():
            if isinstance(value, base):
                items = list(method.__iter__(value))
                break
        else:
            items = list(value)
        self.add(path, ("length", len(items)))
        for index, item in enumerate(items):
            self.describe(f"{path}[{index}]", item)

    def mapping(self, path, value):
        keys = list(collections.OrderedDict.keys(value) if isinstance(value, collections.OrderedDict)
                    else dict.keys(value))
        self.add(path, ("length", len(keys)))
        for index, key in enumerate(keys):
            self.describe(f"{path}.keys()[{index}]", key)
            shown = repr(key) if type(key) in (*CONSTANTS, bool, float) else f"key {index}"
            self.describe(f"{path}[{shown}]", dict.__getitem__(value, key))

    def set_(self, path, value):
        """Describes a set in an order that does not depend on addresses."""
        def order(item):
            inner = Describer(self.tensor_class)
            inner.describe("", item)
            return repr(inner.facts)

        self.add(path, (type(value).__name__, len(value)))
        for index, item in enumerate(sorted(value, key=order)):
            self.describe(f"{path}{{{index}}}", item)

    def exception(self, path, value):
        try:
            text = str(value)
            self.add(path, ("text", LIBRARY_TEXTS.sub(r"\1", text)))
        except Exception as error:
            text = ""
            self.add(path, ("text", type(error).__name__))
        if not LIBRARY_TEXTS.search(text):
            self.describe(f"{path}.args", value.args)
        for name in ("__cause__", "__context__", "__suppress_context__"):
            self.describe(f"{path}.{name}", getattr(value, name))
        if isinstance(value, BaseExceptionGroup):
            self.describe(path + ".exceptions", value.exceptions)

    def function(self, path, value):
        code = value.__code__
        self.add(path, ("function", value.__qualname__, code.co_qualname, code.co_firstlineno, code.co_code))
        self.parts(path, value, "__name__", "__defaults__", "__kwdefaults__", "__dict__")
        for name, cell in zip(code.co_freevars, value.__closure__ or ()):
            self.describe(f"{path}.<{name}>", cell)

    def cell(self, path, value):
        try:
            inner = value.cell_contents
        except ValueError:
            self.add(path, "empty")
        else:
            self.describe(path + ".cell_contents", inner)

    def class_(self, path, value):
        if not is_own(value):
            self.add(path, ("class", type_name(value)))
            return
        if self.met(path, value):
            return
        self.add(path, ("class", type_name(value)))
        self.items(path + ".__bases__", value.__bases__)
        for name, member in vars(value).items():
            hidden = name.startswith("__") and name.endswith("__") and not isinstance(member, types.FunctionType)
            if not hidden and name != "_abc_impl" and not isinstance(member, SLOT_DESCRIPTORS):
                self.describe(f"{path}.{name}", member)

    def tensor(self, path, value):
        if self.met(path, value):
            return
        self.tensors.append(value)
        kind = type(value)
        self.add(path, ("tensor", type_name(kind), str(value.dtype), str(value.device), tuple(value.shape)))
        self.add(path + ".stride()", tuple(s for s, n in zip(value.stride(), value.shape) if n > 1))
        self.add(path + ".requires_grad", value.requires_grad)
        self.add(path + ".is_leaf", value.is_leaf)
        if value.numel():
            base = base_address(value)
            number, first = self.memory.setdefault(base, (len(self.memory), value.data_ptr()))
            self.add(path + ".memory", (number, value.data_ptr() - first))
        self.add(path, Values(value))
        if value.is_leaf and value.requires_grad:
            self.describe(path + ".grad", value.grad)
        for name, attribute in getattr(value, "__dict__", {}).items():
            self.describe(f"{path}.{name}", attribute)

    def array(self, path, value):
        """Describes an array or a number of numpy."""
        is_number = not hasattr(value, "__setitem__")
        if not is_number and self.met(path, value):
            return
        self.add(path, ("of numpy", type_name(type(value)), value.dtype.char, tuple(value.shape)))
        self.add(path, Values(value))
        if is_number:
            return
        self.add(path + ".strides", tuple(s for s, n in zip(value.strides, value.shape) if n > 1))
        self.add(path + ".flags", (value.flags.writeable, value.flags.owndata, value.base is None))
        if value.size:
            root = value
            while hasattr(root.base, "__array_interface__"):
                root = root.base
            address = value.__array_interface__["data"][0]
            number, first = self.memory.setdefault(root.__array_interface__["data"][0], (len(self.memory), address))
            self.add(path + ".memory", (number, address - first))
