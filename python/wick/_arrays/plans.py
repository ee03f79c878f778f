"""Calls of numpy's functions on shadows, and plans for the operators that compute the same.

Numpy itself is asked for everything but the elements. Each call that a program makes is made once with shadows, arrays
of the same dtype, sizes and strides with other elements. So dtypes, sizes, the order in memory, the class of the
result, which results are views, and errors are numpy's own. A rule says how the elements are computed.
"""

import numpy as np

DTYPES = {np.dtype(each).char: each for each in
          ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")}
IMMUTABLE = (np.number, np.bool_, np.dtype, np.finfo, np.iinfo, int, float, complex, str, type, type(None))
MOST_CONSTANT_BYTES = 1 << 24  # of elements that an entry keeps


class Refused(Exception):
    """No operators compute exactly this."""


class Array:
    """Stands for an array, or a number that elements decide, among the arguments of a call."""

    __slots__ = ("shadow",)

    def __init__(self, shadow):
        self.shadow = shadow


def dtype_name(dtype):
    name = DTYPES.get(dtype.char) if dtype.isnative else None
    if name is None:
        raise Refused(f"an array of {dtype}")
    return name


# ---- shadows ----

def like(array, strides=None, dtype=None):
    """The shadow of an array, or of a tensor's sizes, strides and dtype."""
    if dtype is None:
        sizes, steps, kind, writable = array.shape, array.strides, array.dtype, array.flags.writeable
    else:
        sizes, writable = tuple(array), True
        kind = np.dtype(str(dtype).rpartition(".")[2])
        steps = tuple(each * kind.itemsize for each in strides)
    dtype_name(kind)
    extent = 1 + sum((n - 1) * step // kind.itemsize for n, step in zip(sizes, steps)) if 0 not in sizes else 0
    made = np.ndarray(sizes, kind, np.zeros(max(extent, 1), kind), strides=steps)
    made.flags.writeable = writable
    return made


def refuse_overlap(shadow):
    """Refuses writes to arrays whose elements have memory in common."""
    if any(n > 1 and not step for n, step in zip(shadow.shape, shadow.strides)):
        raise Refused("a write to elements that share memory")


def order_of(shadow):
    """The order in which numpy.array copies a tensor's elements to an array with the shadow's strides."""
    order = "C" if shadow.flags.c_contiguous else "F" if shadow.flags.f_contiguous else "K"
    usual = np.empty_like(shadow) if order == "K" else np.empty(shadow.shape, shadow.dtype, order)
    if usual.strides != shadow.strides or order == "K" and 1 in shadow.shape:
        raise Refused("strides that a copy does not have")
    return order


def mapped(value, f):
    """A value with f of each Array in it."""
    if isinstance(value, Array):
        return f(value)
    if type(value) in (list, tuple):
        return type(value)(mapped(each, f) for each in value)
    if type(value) is dict:
        return {key: mapped(each, f) for key, each in value.items()}
    if type(value) is slice:
        return slice(*(mapped(each, f) for each in (value.start, value.stop, value.step)))
    return value


def arrays_in(value):
    found = []
    mapped(value, found.append)
    return found


def samples(dtype):
    """Elements whose dtypes numpy might tell apart where an array has no dimensions."""
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        return [dtype.type(each) for each in (1.5, np.nan, np.inf, limits.max, limits.tiny)]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return [dtype.type(each) for each in (1, limits.max, limits.min)]
    return [dtype.type(True)]


class Call:
    """A call of a function with stand-ins among its arguments."""

    def __init__(self, function, args, kwargs):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.arrays = arrays_in((args, kwargs))

    def ask(self, function=None, args=None):
        """The result of a function for the shadows of the call's arguments."""
        function = function or self.function
        args, kwargs = (self.args, self.kwargs) if args is None else (args, {})
        with np.errstate(all="ignore"):
            result = function(*mapped(args, lambda each: each.shadow), **mapped(kwargs, lambda each: each.shadow))
            if len(arrays_in((args, kwargs))) > 1 or len(args) > 1:
                self.check_samples(function, args, kwargs, result)
        return result

    def check_samples(self, function, args, kwargs, result):
        """Refuses calls where the element of an array without dimensions decides the dtype."""
        dtype = getattr(result, "dtype", None)
        for each in arrays_in((args, kwargs)):
            if each.shadow.ndim or dtype is None:
                continue
            for value in samples(each.shadow.dtype):
                one = value if isinstance(each.shadow, np.generic) else np.array(value)
                shadow = lambda other: one if other is each else other.shadow
                other = function(*mapped(args, shadow), **mapped(kwargs, shadow))
                if other.dtype != dtype or other.shape != result.shape:
                    raise Refused("a dtype that the element of an array decides")


# ---- plans ----
# A plan is a tuple: a function on tensors or None, its arguments, the results, the class of the container of the
# results or None, and the array that is written to or None. The function gets the module of the functions of tensors
# before the arguments, and gives a tuple.

def constant_plan(result):
    """The plan for a result that is the same in each call, an array or something else."""
    if not isinstance(result, np.ndarray):
        if not isinstance(result, IMMUTABLE) and not (
                isinstance(result, tuple) and all(isinstance(each, IMMUTABLE) for each in result)):
            raise Refused(f"an object of the class {type(result).__name__}")
        return None, [], [("constant", result)], None, None
    if type(result) is not np.ndarray:
        raise Refused(f"an object of the class {type(result).__name__}")
    name = dtype_name(result.dtype)
    if result.size and (result == result.flat[0]).all() and not (result.dtype.kind == "f" and
                                                                 np.signbit(result).any()):
        value = result.flat[0].item()

        def lower(torch):
            if not any(result.strides):
                return (torch.full((), value, dtype=getattr(torch, name), device="cpu").expand(result.shape),)
            return (laid_out(torch.full(result.shape, value, dtype=getattr(torch, name), device="cpu"), result),)

        return lower, [], [("array", result)], None, None
    if result.nbytes > MOST_CONSTANT_BYTES:
        raise Refused("an array of many constants")
    return (lambda torch, x: (laid_out(x, result),)), [np.array(result, order="C")], [("array", result)], None, None


def elements_strides(shadow):
    return tuple(step // shadow.dtype.itemsize for step in shadow.strides)


def same_layout(tensor, shadow):
    if 0 in shadow.shape:
        return True
    return all(n == 1 or a == b
               for n, a, b in zip(shadow.shape, tuple(tensor.stride()), elements_strides(shadow)))


def laid_out(tensor, shadow):
    """The tensor with the strides that numpy's result has."""
    if tuple(tensor.shape) != shadow.shape:
        raise Refused("sizes that differ from numpy's")
    if same_layout(tensor, shadow):
        return tensor
    strides = elements_strides(shadow)
    order = sorted(range(shadow.ndim), key=lambda d: (-strides[d], d))
    tensor = tensor.permute(order).contiguous().permute([order.index(d) for d in range(shadow.ndim)])
    if not same_layout(tensor, shadow):
        raise Refused("strides that no tensor has")
    return tensor


def computed(call, compute, inputs, result=None):
    """The plan for a new array or number: compute(torch, *tensors) gives its elements."""
    result = call.ask() if result is None else result
    if not isinstance(result, np.generic) and type(result) is not np.ndarray:
        raise Refused(f"a result of the class {type(result).__name__}")
    name = dtype_name(result.dtype)

    def lower(torch, *tensors):
        tensor = compute(torch, *tensors)
        dtype = getattr(torch, name)
        if tensor.dtype != dtype:
            tensor = tensor.to(dtype)
        return (laid_out(tensor, result),)

    return lower, inputs, [("array", result)], None, None


# ---- operands ----

def to(torch, tensor, name):
    dtype = getattr(torch, name)
    return tensor if tensor.dtype == dtype else tensor.to(dtype)


class Operands:
    """Operands in a dtype: tensors, or numbers for constants."""

    def __init__(self, values, dtype):
        self.name = dtype_name(np.dtype(dtype))
        self.inputs, self.parts = [], []
        for value in values:
            if isinstance(value, Array):
                self.parts.append((len(self.inputs), None))
                self.inputs.append(value)
                continue
            constant = np.asarray(mapped(value, refuse_inner))
            with np.errstate(all="ignore"):
                constant = constant.astype(self.name)
            if constant.ndim:
                self.parts.append((len(self.inputs), None))
                self.inputs.append(np.ascontiguousarray(constant))
            else:
                self.parts.append((None, constant.item()))

    def tensors(self, torch, tensors, numbers=False):
        """The operands; `numbers` leaves numbers as they are."""
        made = []
        for index, value in self.parts:
            if index is not None:
                made.append(to(torch, tensors[index], self.name))
            elif numbers and self.name != "bool":
                made.append(value)
            else:
                made.append(torch.full((), value, dtype=getattr(torch, self.name), device="cpu"))
        return made


def refuse_inner(array):
    raise Refused("a list of arrays as an operand")


def bound(call, names, *required):
    """The arguments by name; `names` are those that may be given by position."""
    if len(call.args) > len(names):
        raise Refused("these arguments")
    made = dict(zip(names, call.args))
    for key, value in call.kwargs.items():
        if key in made or (key not in names and key not in required):
            raise Refused(f"the argument {key}")
        made[key] = value
    return made


def operand_list(call, count):
    if call.kwargs or len(call.args) != count:
        raise Refused("these arguments")
    return list(call.args)


def truth(torch, tensor):
    return tensor if tensor.dtype == torch.bool else tensor != 0
