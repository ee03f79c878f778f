"""Functions on PyTorch's tensors that are called with stand-ins, for wick.compiler.allow_in_graph."""

import operator
import threading

import torch
from torch.overrides import TorchFunctionMode

_current = threading.local()  # the run of the thread


def _operators():
    """Functions of Python by the special methods that they call."""
    names = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
    table = {}
    for name in names:
        function = getattr(operator, f"__{name}__")
        table[f"__{name}__"] = function
        table[f"__r{name}__"] = lambda a, b, function=function: (function, b, a)
        table[f"__i{name}__"] = getattr(operator, f"__i{name}__")
    for name in "eq ne lt le gt ge neg invert pos abs getitem setitem".split():
        table[f"__{name}__"] = getattr(operator, f"__{name}__")
    table["__len__"] = len
    return table


_OPERATORS = _operators()


class StandIn(torch.Tensor):
    """A tensor without memory, whose operators the recording gets."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        run = getattr(_current, "run", None)
        if run is None:
            raise RuntimeError("a tensor of a function that was captured is used after the capture")
        return run.call(function, args, kwargs or {})


class Factories(TorchFunctionMode):
    """Lets the recording make the tensors that a function makes of nothing but sizes."""

    def __init__(self, run):
        self.run = run

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if not types and self.run.calls.knows(function):
            return self.run.call(function, args, kwargs or {})
        return function(*args, **(kwargs or {}))


class _Run:
    def __init__(self, calls):
        self.calls = calls
        self.known = {}  # fakes and stand-ins by the identity of the fake

    def call(self, function, args, kwargs):
        name = getattr(function, "__name__", "")
        if name == "__get__":
            return self.outside(self.calls.attribute(self.inside(args[0]), function.__self__.__name__))
        if name == "__iter__":
            return iter(self.call(tuple, args, {}))
        args = [self.inside(each) for each in args]
        kwargs = {key: self.inside(each) for key, each in kwargs.items()}
        if name in _OPERATORS:
            function = _OPERATORS[name]
            if name.startswith("__r") and name != "__rshift__":
                function, *args = function(*args)
        elif not self.calls.knows(function):
            # Methods that PyTorch puts into functions of Python.
            function = getattr(function, "__wrapped__", function)
        return self.outside(self.calls.call(function, tuple(args), kwargs))

    def inside(self, value):
        """The value with fakes for stand-ins."""
        if isinstance(value, StandIn):
            with torch._C.DisableTorchFunction():
                if value.grad_fn is not None:
                    self.calls.refuse("a function with a derivative of its own")
            return value._wick_fake
        if isinstance(value, torch.Tensor):
            self.calls.refuse("a tensor that is no argument of it")
        return _mapped(value, self.inside)

    def outside(self, value):
        """The value with stand-ins for fakes."""
        from wick import Tensor

        if isinstance(value, Tensor):
            if id(value) not in self.known:
                self.known[id(value)] = value, self._stand_in(value)
            return self.known[id(value)][1]
        return _mapped(value, self.outside)

    def _stand_in(self, fake):
        sizes, strides, dtype, requires_grad = self.calls.layout(fake)
        with torch._C.DisableTorchFunction():
            memory = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
            made = torch.Tensor._make_subclass(StandIn, memory, requires_grad)
        made._wick_fake = fake
        return made


def _mapped(value, f):
    if isinstance(value, (list, tuple)):
        parts = [f(each) for each in value]
        if all(a is b for a, b in zip(parts, value)):
            return value
        if type(value) in (list, tuple):
            return type(value)(parts)
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {key: f(each) for key, each in value.items()}
    return value


def run(calls, function, args, kwargs):
    """Calls the function with stand-ins for fakes; its result with fakes."""
    before = getattr(_current, "run", None)
    _current.run = run = _Run(calls)
    try:
        given = run.outside(args), run.outside(kwargs)
        with Factories(run):
            result = function(*given[0], **given[1])
        if not _same(run.inside(given), (args, kwargs)):
            calls.refuse("it changes an argument")
        return run.inside(result)
    finally:
        _current.run = before


def _same(a, b):
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is dict and type(b) is dict:
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    return a is b
