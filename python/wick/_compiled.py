"""The functions and modules that wick.compile gives.

Frames of this file are never captured on their own (capture/compiled_call.cpp): they call the
originals with settings of their own. Called from captured code, they are evaluated like all others.
"""

import copy
import functools
import inspect

from wick import _C


def function(original, region):
    """A function that calls the original within the region, under its name, text and signature."""

    def compiled(*args, **kwargs):
        if _C._is_capturing():
            return original(*args, **kwargs)
        return region.call(original, args, kwargs)

    return functools.update_wrapper(compiled, original)


_code = function(len, None).__code__  # of all of them


def original_of(thing):
    """The function or module that a compiled one was made of; anything else is returned as it is."""
    if inspect.ismethod(thing):
        inner = original_of(thing.__func__)
        return thing if inner is thing.__func__ else inner.__get__(thing.__self__)
    if inspect.isfunction(thing) and thing.__code__ is _code:
        cells = dict(zip(_code.co_freevars, thing.__closure__))
        return cells["original"].cell_contents
    parts = _parts(thing)
    return parts[0] if parts else thing


# ---- modules ----


def is_module(thing):
    """Whether it is a module of wick.nn or of PyTorch's."""
    for kind in type(thing).__mro__:
        if kind.__name__ == "Module" and kind.__module__ in ("wick.nn.module", "torch.nn.modules.module"):
            return True
    return False


def module(original, region, again):
    """A module that shares the attributes of the original, of a class derived from its class."""
    kind = _class_for(type(original))
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", original.__dict__)
    object.__setattr__(made, "_wick_parts", (original, region, again))
    return made


def _parts(thing):
    """The original, region and settings of a compiled module, or None."""
    slot = getattr(type(thing), "_wick_parts", None)
    if slot is None:
        return None
    try:
        return slot.__get__(thing)
    except AttributeError:
        return None  # the program made the object of the class


def _class_for(kind):
    for known in kind.__subclasses__():
        if "_wick_parts" in known.__dict__:
            return known
    if any(base.__dict__.get("__slots__") for base in kind.__mro__):  # shared by no two objects
        raise TypeError(
            f"compile: modules of {kind.__qualname__}, a class with __slots__, cannot be compiled; "
            "compile a function that calls them"
        )

    def __call__(self, *args, **kwargs):
        if _C._is_capturing():
            return kind.__call__(self, *args, **kwargs)
        parts = _parts(self)
        if parts is None:
            return kind.__call__(self, *args, **kwargs)
        return parts[1].call(parts[0], args, kwargs)

    def __reduce_ex__(self, protocol):
        parts = _parts(self)
        if parts is None:
            return kind.__reduce_ex__(self, protocol)
        return _again, (parts[2], parts[0])

    def __deepcopy__(self, memo):
        return _copied(self, lambda original: copy.deepcopy(original, memo))

    def __copy__(self):
        return _copied(self, copy.copy)

    names = {
        "__slots__": ("_wick_parts",),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__call__": __call__,
        "__reduce_ex__": __reduce_ex__,
        "__deepcopy__": __deepcopy__,
        "__copy__": __copy__,
    }
    return type(kind)(kind.__name__, (kind,), names)


def _copied(compiled, copy_of):
    original, _, again = _parts(compiled)
    return again(copy_of(original))


def _again(again, original):
    return again(original)
