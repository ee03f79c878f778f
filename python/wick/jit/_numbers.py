"""Numbers that a trace follows: sizes of inputs, and what is computed of them.

They are ints and floats for everybody. Arithmetic with them is recorded; what makes a plain number
or a boolean of them warns, because the trace goes on with a constant then.
"""

import math
import warnings

from wick import _C, _namespace


class TracerWarning(Warning):
    """What a trace cannot follow."""


# Where the package itself converts, nobody can do anything about it.
warnings.filterwarnings("ignore", category=TracerWarning, module=r"wick\.(?!jit)")

_TEXT = (
    "Converting a tensor to a Python {} might cause the trace to be incorrect. We can't record the "
    "data flow of Python values, so this value will be treated as a constant in the future. This "
    "means that the trace might not generalize to other inputs!"
)


def _warn(what):
    if _C._is_tracing():
        warnings.warn(_TEXT.format(what), TracerWarning, stacklevel=3)


def _binary(sign, reverse=False):
    recorded = _C._expression(sign, True)
    name = {
        "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
        "**": "pow",
    }[sign]
    plain = {kind: getattr(kind, f"__{'r' if reverse else ''}{name}__") for kind in (int, float)}

    def operate(self, other):
        if not isinstance(other, (int, float)):
            return NotImplemented
        if not _C._is_tracing():
            a = type(self).__bases__[-1](self)
            made = plain[type(a)](a, other)
            if made is NotImplemented and isinstance(other, float):
                made = plain[float](float(a), other)
            return made
        return recorded(other, self) if reverse else recorded(self, other)

    return operate


def _compare(name):
    def operate(self, other):
        if isinstance(other, (int, float)):
            _warn("boolean")
        kind = type(self).__bases__[-1]
        return getattr(kind, name)(self, other)

    return operate


def _rounded(name):
    def operate(self):
        if not _C._is_tracing():
            return getattr(math, name)(type(self).__bases__[-1](self))
        return getattr(_namespace.submodule("wick.torch.math", "math"), name)(self)

    return operate


class _Followed:
    """Before int or float among the bases."""

    __slots__ = ()

    def __bool__(self):
        _warn("boolean")
        return type(self).__bases__[-1].__bool__(self)

    def __int__(self):
        _warn("integer")
        return int(type(self).__bases__[-1].__int__(self))

    def __float__(self):
        _warn("float")
        return type(self).__bases__[-1].__float__(self)

    def __neg__(self):
        if not _C._is_tracing():
            return type(self).__bases__[-1].__neg__(self)
        return _NEGATIVE(self)

    def __pos__(self):
        return self

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        kind = type(self).__bases__[-1]
        return kind, (kind.__repr__(self),)

    __add__, __radd__ = _binary("+"), _binary("+", True)
    __sub__, __rsub__ = _binary("-"), _binary("-", True)
    __mul__, __rmul__ = _binary("*"), _binary("*", True)
    __truediv__, __rtruediv__ = _binary("/"), _binary("/", True)
    __floordiv__, __rfloordiv__ = _binary("//"), _binary("//", True)
    __mod__, __rmod__ = _binary("%"), _binary("%", True)
    __pow__, __rpow__ = _binary("**"), _binary("**", True)
    __lt__, __le__ = _compare("__lt__"), _compare("__le__")
    __gt__, __ge__ = _compare("__gt__"), _compare("__ge__")
    __eq__, __ne__ = _compare("__eq__"), _compare("__ne__")


_NEGATIVE = _C._expression("-", False)


class FollowedInt(_Followed, int):
    __hash__ = int.__hash__


class FollowedFloat(_Followed, float):
    __hash__ = float.__hash__
    __floor__, __ceil__ = _rounded("floor"), _rounded("ceil")

    def __trunc__(self):
        _warn("integer")
        return float.__trunc__(self)


_C._set_tracing_classes(FollowedInt, FollowedFloat, TracerWarning)
