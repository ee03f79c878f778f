"""Runs the printed code of an archive as ordinary Python, with `torch` bound to wick.torch.

What printed code has and Python lacks stands here: annotate, unchecked_cast, uninitialized, `ops`,
CONSTANTS, and operators on Python's own lists and dicts, which must change them in place.
"""

import __future__

import enum
import io
import math
import pickle
import re
import types
import typing
import zipfile

import wick
from wick import torch


class _Containers:
    """Operators on lists, dicts, strings and numbers that Python's own objects do themselves."""

    @staticmethod
    def append(values, value):
        values.append(value)
        return values

    @staticmethod
    def extend(values, others):
        values.extend(others)

    @staticmethod
    def insert(values, index, value):
        values.insert(index, value)

    @staticmethod
    def len(values):
        return len(values)

    @staticmethod
    def list(values):
        return list(values)

    @staticmethod
    def keys(values):
        return list(values.keys())

    @staticmethod
    def values(values):
        return list(values.values())

    @staticmethod
    def items(values):
        return list(values.items())

    @staticmethod
    def _set_item(values, key, value):
        values[key] = value
        return values

    @staticmethod
    def __contains__(values, key):
        return key in values


_CONTAINER_TYPES = (list, tuple, dict, str)


class PrintedTorch:
    """wick.torch, but for operators whose first argument is a container of Python's."""

    def __init__(self, namespace=torch):
        self.__dict__["_namespace"] = namespace

    def __getattr__(self, name):
        name = _unmangled(name)
        if name in _REPLACED:
            return _REPLACED[name]
        if name in _OPERATORS:
            return getattr(torch.ops.aten, name)
        found = getattr(self._namespace, name)
        if isinstance(found, types.ModuleType):
            return PrintedTorch(found)
        if name in ("eq", "ne"):
            return self._comparison(name == "eq", found)
        own = _Containers.__dict__.get(name)
        if own is None:
            if name in ("pop", "clear", "reverse", "sort", "remove", "index", "count", "copy"):
                return self._method(name, found)
            return found
        own = getattr(_Containers, name)

        def call(*args, **kwargs):
            if args and isinstance(args[0], _CONTAINER_TYPES):
                return own(*args, **kwargs)
            return found(*args, **kwargs)

        return call

    @staticmethod
    def _comparison(equal, found):
        def call(*args, **kwargs):
            # A module's enums are the program's, those of the code Python's.
            if any(isinstance(a, enum.Enum) for a in args):
                return (args[0].name == args[1].name) == equal
            return found(*args, **kwargs)

        return call

    @staticmethod
    def _method(name, found):
        def call(*args, **kwargs):
            if args and isinstance(args[0], (list, dict)):
                return getattr(args[0], name)(*args[1:])
            return found(*args, **kwargs)

        return call


def _raise(message, kind="builtins.RuntimeError"):
    raise RuntimeError(message)


_REPLACED = {
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
}


# Printed code means operators; under these names programs find functions with other arguments or results.
_OPERATORS = ("cdist", "stft", "unique_consecutive")


class _Prim:
    """ops.prim: what the language knows by itself."""

    RaiseException = staticmethod(_raise)

    def __getattr__(self, name):
        return getattr(torch.ops.prim, name)


class _Ops:
    prim = _Prim()

    def __getattr__(self, name):
        return PrintedTorch(getattr(torch.ops, name))


def annotate(kind, value):
    return value


def unchecked_cast(kind, value):
    return value


def uninitialized(kind):
    return None


def _is_instance(value, kind):
    if isinstance(kind, (tuple, list)):
        return any(_is_instance(value, each) for each in kind)
    origin = typing.get_origin(kind)
    if origin is typing.Union:
        return any(_is_instance(value, each) for each in typing.get_args(kind))
    if origin is not None:
        kind = origin
    if kind is float:
        return isinstance(value, float)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _unmangled(name):
    """Python writes the class before names with two underscores."""
    found = re.match(r"_[A-Za-z]\w*?(__.*)", name)
    return found.group(1) if found else name


class _Names:
    """`__torch__` and the names below it."""

    def __getattr__(self, name):
        if _unmangled(name) == name:
            raise AttributeError(name)
        return getattr(self, _unmangled(name))


class _Constants:
    def __init__(self, values):
        for i, value in enumerate(values):
            setattr(self, f"c{i}", value)


def _globals(constants, names):
    return {
        "torch": PrintedTorch(),
        "ops": _Ops(),
        "prim": _Prim(),
        "annotate": annotate,
        "unchecked_cast": unchecked_cast,
        "uninitialized": uninitialized,
        "isinstance": _is_instance,
        "CONSTANTS": _Constants(constants),
        "__torch__": names,
        "Module": object,
        "Enum": enum.Enum,
        "NamedTuple": typing.NamedTuple,
        "Interface": object,
        "List": typing.List,
        "Dict": typing.Dict,
        "Tuple": typing.Tuple,
        "Optional": typing.Optional,
        "Union": typing.Union,
        "Any": typing.Any,
        "Tensor": wick.Tensor,
        "Device": wick.device,
        "number": (int, float, complex),
        "inf": math.inf,
        "nan": math.nan,
        "NoneType": type(None),
    }


class Object:
    """`self` of printed code: methods from the printed class, all else from the loaded module."""

    def __init__(self, program, scripted):
        self.__dict__.update(_program=program, _scripted=scripted, _written={})

    def __getattr__(self, name):
        if name in self._written:
            return self._written[name]
        kind = self._program.classes.get(self._scripted._c.type_name())
        method = getattr(kind, name, None)
        if isinstance(method, types.FunctionType):
            return types.MethodType(method, self)
        value = self._scripted._c.get(name)
        if isinstance(value, wick.jit.ScriptModule):
            return Object(self._program, value)
        if isinstance(value, (list, dict)):
            self._written[name] = value  # which the code may change in place
        return value

    def __setattr__(self, name, value):
        self._written[name] = value

    def __call__(self, *args, **kwargs):
        return self.__getattr__("forward")(*args, **kwargs)


class _ConstantsReader(pickle.Unpickler):
    """constants.pkl, with tensors of the records beside it."""

    def __init__(self, archive, root):
        super().__init__(io.BytesIO(archive.read(root + "/constants.pkl")))
        self._read = lambda key: archive.read(f"{root}/constants/{key}")

    def persistent_load(self, saved):
        _, dtype, key, *_ = saved
        contents = bytearray(self._read(key))
        if not contents:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(contents, dtype=dtype)

    def find_class(self, module, name):
        if name.endswith("Storage"):
            return torch._dtype_of_typed_name(name.replace("Storage", "Tensor"))
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, sizes, strides, *_: storage.as_strided(
                sizes, strides, offset
            )
        if (module, name) == ("collections", "OrderedDict"):
            return dict
        raise pickle.UnpicklingError(f"{module}.{name} in constants.pkl")


def on_device(value, device):
    """The value with its dense tensors on a device."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {k: on_device(v, device) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(on_device(v, device) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(on_device(v, device) for v in value)
    return value


class Program:
    """The code of an archive. `device`: where its tensors are to be."""

    def __init__(self, archive_path, device="cpu"):
        self.scripted = wick.jit.load(archive_path).to(device)
        self.names = _Names()
        self.classes = {}
        with zipfile.ZipFile(archive_path) as archive:
            root = archive.namelist()[0].split("/")[0]
            constants = on_device(_ConstantsReader(archive, root).load(), device)
            files = [n for n in archive.namelist() if n.startswith(root + "/code/")]
            for name in files:
                if name.endswith(".py"):
                    path = name[len(root + "/code/") : -3]
                    self._run(path, archive.read(name).decode(), constants)
        self.main = Object(self, self.scripted)

    def _run(self, path, text, constants):
        scope = _globals(constants, self.names)
        # Types of attributes whose names are no identifiers; their files may come later.
        text = re.sub(r"(?m)^( *)__annotations__\[.*$", r"\1pass", text)
        code = compile(text, path, "exec", flags=__future__.annotations.compiler_flag)
        exec(code, scope)
        place = self.names
        for part in path.split("/")[1:]:
            if not hasattr(place, part):
                setattr(place, part, _Names())
            place = getattr(place, part)
        for name, value in scope.items():
            if isinstance(value, (type, types.FunctionType)) and name not in _KNOWN:
                setattr(place, name, value)
                self.classes[path.replace("/", ".") + "." + name] = value


_KNOWN = set(_globals([], None))
