"""Outcomes of calls in a form that can be compared with ==.

A form is made of strings and tuples. Numbers are their repr(), so True, 1 and 1.0 differ, -0.0 differs from 0.0, and NaN
equals itself. An object that can be told from an equal one has a number, given at its first visit; later visits are
("same", number). Gradients of a call are those of the sum of all its tensors. All parts of one call are formed together, so forms differ when the objects share in another way.
Tensors have dtype, shape, strides, elements, and the number of their storage, so views and copies differ.
Sign and payload of a NaN are not compared, and neither is the identity of numbers, strings and empty tuples.
"""

import collections
import contextlib
import enum
import functools
import io
import itertools
import math
import re
import sys
import types

FLOAT = re.compile(r"-?\d+(?:\.\d*(?:e[-+]?\d+)?|e[-+]?\d+)")
ADDRESS = re.compile(r"0x[0-9a-f]{4,}")
PARTS = ("result", "exception", "printed", "arguments", "globals", "modes", "gradients")
# A generator or iterator is read up to this number of items.
LONGEST_READ = 12

CELL = type((lambda x: lambda: x)(0).__closure__[0])
ITERATORS = tuple({type(iter(example)) for example in ([], (), {}, {}.values(), {}.items(), set(), "", b"", range(1),
                                                       range(2 ** 70), reversed([]), reversed({}))} |
                  {zip, map, filter, enumerate, reversed, itertools.chain, itertools.count, itertools.cycle,
                   itertools.islice, itertools.accumulate, itertools.product, itertools.repeat, itertools.starmap,
                   itertools.takewhile, itertools.dropwhile, itertools.zip_longest, itertools.pairwise,
                   itertools.permutations, itertools.combinations, itertools.compress, type(iter(lambda: 0, 0))})


def text_of(value):
    """Returns the text of an exception or number, without addresses. Leaves out which of several tensors that were
    written to a backward pass names, and the rest of messages about missing derivatives."""
    try:
        text = ADDRESS.sub("0x", str(value))
        if isinstance(value, RuntimeError):
            text = re.sub(r"(has been modified by an inplace operation: ).*|(derivative for \S+ is not implemented).*", r"\1\2", text, flags=re.S)
        return text
    except Exception as error:
        return f"no text: {type(error).__name__}"


def lines_of(error, filename):
    """Returns (function, line) of the program's frames in a traceback. The last of neighbours of one function is kept:
    a compiled function may run as several frames."""
    lines = []
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == filename:
            if lines and lines[-1][0] == code.co_name:
                lines.pop()
            lines.append((code.co_name, traceback.tb_lineno))
        traceback = traceback.tb_next
    return tuple(lines)


class Former:
    """Makes forms of values that may share objects. `seen` counts the types of the values, and texts for kinds of tensors."""

    def __init__(self, world, filename, module_name, seen=None):
        self.tensor_type = world.Tensor
        self.filename = filename
        self.module_name = module_name
        self.numbers = {}
        self.storages = {}
        self.kept = []
        self.seen = seen
        self.with_gradients = []

    def form(self, value):
        kind = type(value)
        if self.seen is not None:
            self.seen[kind] += 1
        if kind in ATOMS:
            return repr(value) if kind is not int or value.bit_length() < 9999 else hex(value)
        if kind is tuple and not value:
            return "()"
        number = self.numbers.get(id(value))
        if number is not None:
            return ("same", number)
        self.numbers[id(value)] = number = len(self.kept)
        self.kept.append(value)
        handler = HANDLERS.get(kind)
        if handler is not None:
            return handler(self, value, number)
        if isinstance(value, self.tensor_type):
            return self.tensor(value, number)
        return self.other(value, kind, number)

    def forms(self, values):
        return tuple([self.form(value) for value in values])

    def tensor(self, value, number):
        try:
            start = value.data_ptr() - value.storage_offset() * value.element_size()
            storage = self.storages.setdefault(start, len(self.storages)) if start else None
            place = (storage, value.storage_offset())
        except (AttributeError, RuntimeError):
            place = None
        kind = type(value).__name__
        if value.requires_grad:
            self.with_gradients.append(value)
        if self.seen is not None:
            self.seen[f"tensor of {value.dtype}"] += 1
            if value.requires_grad:
                self.seen["tensor that requires a gradient"] += 1
        return (kind, number, str(value.dtype), tuple(value.shape), tuple(stride if size > 1 else 0 for size, stride in zip(value.shape, value.stride())), value.requires_grad, place,
                repr(value.tolist()), self.form(vars(value)) if getattr(value, "__dict__", None) else None)

    def gradients(self):
        """Adds up all tensors with a history, and returns the gradients of those without one that were visited."""
        leaves = [value for value in self.with_gradients if value.is_leaf]
        results = [value for value in self.with_gradients if not value.is_leaf]
        try:
            if results:
                sum([value.sum() for value in results]).backward()
        except Exception as error:
            return (type(error).__name__, text_of(error))
        return tuple([None if leaf.grad is None else (str(leaf.grad.dtype), repr(leaf.grad.tolist())) for leaf in leaves])

    def pairs(self, items):
        return tuple([(self.form(key), self.form(value)) for key, value in items])

    def elements(self, value, number):
        return (type(value).__name__, number, self.forms(value))

    def mapping(self, value, number):
        return (type(value).__name__, number, self.pairs(value.items()))

    def unordered(self, value, number):
        ordered = sorted(value, key=lambda element: (type(element).__name__, repr(element)))
        return (type(value).__name__, number, self.forms(ordered))

    def default_dict(self, value, number):
        return ("defaultdict", number, self.form(value.default_factory), self.pairs(value.items()))

    def bounded(self, value, number):
        return ("deque", number, value.maxlen, self.forms(value))

    def slice(self, value, number):
        return ("slice", self.form(value.start), self.form(value.stop), self.form(value.step))

    def function(self, value, number):
        if value.__code__.co_filename != self.filename:
            return ("function", value.__module__, value.__qualname__)
        if value.__defaults__ is None and value.__kwdefaults__ is None and value.__closure__ is None and not value.__dict__:
            return ("function", number, value.__qualname__, value.__code__.co_firstlineno)
        return ("function", number, value.__qualname__, value.__code__.co_firstlineno, self.form(value.__defaults__),
                self.form(value.__kwdefaults__), self.forms(value.__closure__ or ()),
                self.pairs((k, v) for k, v in vars(value).items() if k != "__wrapped__"))

    def cell(self, value, number):
        try:
            return ("cell", number, self.form(value.cell_contents))
        except ValueError:
            return ("cell", number, "empty")

    def method(self, value, number):
        return ("method", self.form(value.__func__), self.form(value.__self__))

    def builtin(self, value, number):
        owner = value.__self__
        owned = None if owner is None or isinstance(owner, (types.ModuleType, type)) else self.form(owner)
        return ("builtin", value.__qualname__, owned)

    def partial(self, value, number):
        return ("partial", number, self.form(value.func), self.form(value.args), self.form(value.keywords))

    def module(self, value, number):
        return ("module", value.__name__)

    def read(self, value, number):
        """Reads an iterator or a generator, which changes it."""
        found = []
        try:
            for item in itertools.islice(value, LONGEST_READ):
                found.append(self.form(item))
        except Exception as error:
            found.append((type(error).__name__, text_of(error)))
        return (type(value).__name__, getattr(value, "__qualname__", None), number, tuple(found))

    def coroutine(self, value, number):
        value.close()
        return (type(value).__name__, value.__qualname__)

    def exception(self, error, number):
        chain = tuple([self.form(other) for other in (error.__cause__, error.__context__)])
        return (type(error).__qualname__, number, text_of(error), self.form(error.args), lines_of(error, self.filename),
                chain, error.__suppress_context__, self.pairs(vars(error).items()))

    def user_class(self, value, number):
        held = [(name, held) for name, held in vars(value).items() if name[:2] != "__" and name not in HIDDEN_IN_CLASSES]
        return ("class", number, value.__qualname__, tuple([base.__qualname__ for base in value.__mro__]), self.pairs(held))

    def other(self, value, kind, number):
        if isinstance(value, BaseException):
            return self.exception(value, number)
        if isinstance(value, type):
            if value.__module__ == self.module_name:
                return self.user_class(value, number)
            return ("type", value.__module__, value.__qualname__)
        if isinstance(value, enum.Enum):
            return ("enum", type(value).__qualname__, value.name)
        if isinstance(value, ITERATORS):
            return self.read(value, number)
        parts = ["object", number, kind.__qualname__]
        for base, handler in CONTAINERS:
            if isinstance(value, base):
                parts.append(handler(self, value, None))
        if kind.__module__ == self.module_name or len(parts) > 3:
            attributes = getattr(value, "__dict__", None)
            if attributes is not None:
                parts.append(self.form(attributes))
            for base in kind.__mro__:
                for name in base.__dict__.get("__slots__", ()):
                    parts.append((name, self.form(getattr(value, name, "<no value>"))))
        elif kind in (property, staticmethod, classmethod, functools.cached_property):
            function = value.fget if kind is property else value.func if kind is functools.cached_property else value.__func__
            parts.append(self.form(function))
        else:
            parts.append(text_of(value))  # a dtype, a device, ...
        return tuple(parts)


ATOMS = frozenset([int, bool, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range])
HANDLERS = {
    list: Former.elements, tuple: Former.elements, dict: Former.mapping, set: Former.unordered,
    frozenset: Former.unordered, collections.deque: Former.bounded, collections.OrderedDict: Former.mapping,
    collections.defaultdict: Former.default_dict, collections.Counter: Former.mapping, slice: Former.slice,
    types.FunctionType: Former.function, CELL: Former.cell, types.MethodType: Former.method,
    types.BuiltinFunctionType: Former.builtin, functools.partial: Former.partial, types.ModuleType: Former.module,
    types.GeneratorType: Former.read, types.CoroutineType: Former.coroutine, type({}.keys()): Former.elements,
    type({}.values()): Former.elements, type({}.items()): Former.elements, bytearray: Former.elements,
}
CONTAINERS = [(list, Former.elements), (tuple, Former.elements), (dict, Former.mapping), (set, Former.unordered),
              (str, lambda self, value, number: str.__repr__(value)), (int, lambda self, value, number: int.__repr__(value)),
              (float, lambda self, value, number: float.__repr__(value))]
# Names that Python's own machinery puts into classes.
HIDDEN_IN_CLASSES = frozenset(["_abc_impl", "_member_names_", "_member_map_", "_value2member_map_", "_unhashable_values_",
                               "_member_type_", "_value_repr_", "_use_args_", "_generate_next_value_", "_new_member_",
                               "_field_defaults", "_fields", "_make", "_asdict", "_replace"])


class Module:
    """A freshly run module of a program, with its own globals."""

    def __init__(self, code, filename, world, name="program"):
        self.world = world
        self.filename = filename
        self.name = name
        self.globals = {"__name__": name, "__builtins__": __builtins__, "torch": world}
        # Dataclasses look their module up.
        holder = sys.modules.get(name)
        if holder is None:
            holder = sys.modules[name] = types.ModuleType(name)
        exec(code, self.globals)

    def state(self, hidden):
        """Returns the module's variables that a call may change."""
        return [(name, value) for name, value in self.globals.items()
                if name not in hidden and name[:2] != "__" and type(value) is not types.ModuleType]


def outcome_of(module, function, arguments, keywords, hidden=(), seen=None):
    """Calls the function and returns the forms of everything that the call did, by the names in PARTS."""
    printed = io.StringIO()
    failure = result = None
    with contextlib.redirect_stdout(printed):
        try:
            result = function(*arguments, **keywords)
        except Exception as error:
            failure = error
        former = Former(module.world, module.filename, module.name, seen)
        parts = {"result": former.form(result), "exception": None if failure is None else former.form(failure)}
        parts["arguments"] = (former.forms(arguments), former.pairs(keywords.items()))
        parts["globals"] = former.pairs(module.state(hidden))
        parts["gradients"] = former.gradients() if former.with_gradients else ()
    parts["modes"] = repr(module.world.is_grad_enabled())
    parts["printed"] = repr(printed.getvalue())
    return parts


def is_close(one, other, tolerance):
    """Tells whether two texts are the same but for floats that differ relatively by less than the tolerance."""
    if FLOAT.sub("", one) != FLOAT.sub("", other):
        return False
    for mine, its in zip(FLOAT.findall(one), FLOAT.findall(other)):
        x, y = float(mine), float(its)
        if not math.isclose(x, y, rel_tol=tolerance) or math.copysign(1, x) != math.copysign(1, y):
            return False
    return True


def first_difference(one, other, tolerance=0.0, path=""):
    """Returns the path to the first parts of two forms that differ, and these parts; None for equal forms."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        for name in PARTS:
            found = first_difference(one.get(name), other.get(name), tolerance, name)
            if found:
                return found
        if tolerance:
            return None
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        for index, (mine, its) in enumerate(zip(one, other)):
            found = first_difference(mine, its, tolerance, f"{path}.{index}")
            if found:
                return found
        return None
    if tolerance and isinstance(one, str) and isinstance(other, str) and is_close(one, other, tolerance):
        return None
    return path, one, other
