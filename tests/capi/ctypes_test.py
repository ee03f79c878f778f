"""The C interface through Python's ctypes: ctypes_test.py LIBRARY MODEL. Ends with "N checks"."""
import ctypes
import sys
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p

lib = ctypes.CDLL(sys.argv[1])
checks = 0


class Error(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int), ("message", c_char_p), ("class_name", c_char_p), ("file", c_char_p),
                ("line", c_size_t), ("column", c_size_t)]


class Limits(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("seconds", c_double), ("memory", c_uint64), ("steps", c_uint64),
                ("interrupt", c_void_p)]

    def __init__(self, **values):
        super().__init__(struct_size=ctypes.sizeof(Limits), **values)


lib.wick_last_error.restype = POINTER(Error)
lib.wick_version.restype = c_char_p


def expect(found, expected):
    global checks
    checks += 1
    assert found == expected, f"expected {expected!r}, got {found!r}"


def error():
    return lib.wick_last_error().contents


def check(status):
    if status:
        raise RuntimeError(f"{status}: {error().message.decode()}")


class Handle:
    """A handle of the C interface, freed with this object."""

    def __init__(self, kind, make, *arguments):
        self.kind, self.pointer = kind, c_void_p()
        check(make(*arguments, byref(self.pointer)))

    def __del__(self):
        getattr(lib, f"wick_{self.kind}_free")(self.pointer)

    @property
    def _as_parameter_(self):
        return self.pointer


def value(v):
    if v is None:
        return Handle("value", lib.wick_value_none)
    if isinstance(v, bool):
        return Handle("value", lib.wick_value_from_bool, c_int(v))
    if isinstance(v, int):
        return Handle("value", lib.wick_value_from_int, c_int64(v))
    if isinstance(v, float):
        return Handle("value", lib.wick_value_from_float, c_double(v))
    if isinstance(v, str):
        text = v.encode()
        return Handle("value", lib.wick_value_from_string, text, c_size_t(len(text)))
    if isinstance(v, (list, tuple)):
        parts = [value(e) for e in v]
        array = (c_void_p * len(parts))(*[p.pointer for p in parts])
        make = lib.wick_value_from_list if isinstance(v, list) else lib.wick_value_from_tuple
        return Handle("value", make, array, c_size_t(len(parts)))
    if isinstance(v, dict):
        keys, values = [value(k) for k in v], [value(e) for e in v.values()]
        return Handle("value", lib.wick_value_from_dict, (c_void_p * len(keys))(*[k.pointer for k in keys]),
                      (c_void_p * len(keys))(*[e.pointer for e in values]), c_size_t(len(keys)))
    raise TypeError(type(v))


def text_of(v):
    chars, size = c_char_p(), c_size_t()
    check(lib.wick_value_to_string(v, byref(chars), byref(size)))
    return ctypes.string_at(chars, size.value).decode()


def python(v):
    """The Python value of a handle."""
    kind = c_int()
    check(lib.wick_value_kind(v, byref(kind)))
    if kind.value == 0:
        return None
    if kind.value in (1, 2, 3):
        name, c_type, p_type = [("int", c_int64, int), ("float", c_double, float), ("bool", c_int, bool)][kind.value - 1]
        out = c_type()
        check(getattr(lib, f"wick_value_to_{name}")(v, byref(out)))
        return p_type(out.value)
    if kind.value == 4:
        return text_of(v)
    size = c_size_t()
    if kind.value in (6, 7):
        check(lib.wick_value_size(v, byref(size)))
        parts = [python(Handle("value", lib.wick_value_element, v, c_int64(i))) for i in range(size.value)]
        return parts if kind.value == 6 else tuple(parts)
    if kind.value == 8:
        check(lib.wick_value_size(v, byref(size)))
        result = {}
        for i in range(size.value):
            key, element = c_void_p(), c_void_p()
            check(lib.wick_value_entry(v, c_size_t(i), byref(key), byref(element)))
            result[python(key)] = python(element)
            lib.wick_value_free(key)
            lib.wick_value_free(element)
        return result
    raise TypeError(kind.value)


def call(program, name, *arguments, limits=None):
    handles = [value(a) if not isinstance(a, Handle) else a for a in arguments]
    array = (c_void_p * len(handles))(*[h.pointer for h in handles])
    return Handle("value", lib.wick_program_call, program, name.encode(), array, c_size_t(len(handles)), None,
                  byref(limits) if limits else None)


source = b"""
def echo(x: Dict[str, List[Tuple[int, Optional[str]]]]) -> Dict[str, List[Tuple[int, Optional[str]]]]:
    return x

def forever() -> int:
    n = 0
    while True:
        n += 1
    return n

def grow(x: Tensor) -> Tensor:
    return x.add_(1)
"""
expect(len(lib.wick_version().split(b".")), 3)
program = Handle("program", lib.wick_compile, source, b"source.py", None)
expect(python(Handle("value", lib.wick_program_functions, program)), ["echo", "forever", "grow"])
for v in (None, True, -5, 2.5, "über", [1, 2], (1, "a", None), {"k": [1.5]}, [], {}):
    expect(python(value(v)), v)
deep = {"a": [(1, None), (2, "b")], "c": []}
expect(python(call(program, "echo", deep)), deep)

status = lib.wick_program_call(program, b"forever", None, c_size_t(0), None, byref(Limits(seconds=0.05)),
                               byref(c_void_p()))
expect(status, 6)
expect(error().class_name, b"TimeoutError")
expect(error().file, b"source.py")

status = lib.wick_compile(b"def f(:\n", b"bad.py", None, byref(c_void_p()))
expect((status, error().line), (2, 1))
expect(lib.wick_value_to_int(None, byref(c_int64())), 1)

module = Handle("module", lib.wick_module_load, sys.argv[2].encode(), None)
expect(python(Handle("value", lib.wick_module_methods, module)), ["forward"])


# DLPack, with whatever library is here, through its capsules.
class Capsules:
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]


try:
    import torch
    from torch.utils import dlpack
except ImportError:
    print("torch is not here: its tensors are not exchanged")
else:
    used = b"used_dltensor"
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    capsule = dlpack.to_dlpack(x)
    pointer = Capsules.api.PyCapsule_GetPointer(capsule, b"dltensor")
    mine = Handle("value", lib.wick_value_from_dlpack, c_void_p(pointer))
    Capsules.api.PyCapsule_SetName(capsule, used)
    call(program, "grow", mine)
    expect(x.tolist(), [[1, 2, 3], [4, 5, 6]])
    out = c_void_p()
    check(lib.wick_value_to_dlpack(mine, byref(out)))
    back = dlpack.from_dlpack(Capsules.api.PyCapsule_New(out, b"dltensor", None))
    expect(back.tolist(), x.tolist())
    back[0, 0] = 100
    expect(x[0, 0].item(), 100)
    del mine
    expect(back.sum().item(), 120)

print(f"{checks} checks")
