"""Rules for functions that compute element by element, reductions and products."""

import operator

import numpy as np

from .plans import (Array, Call, Operands, Refused, arrays_in, bound, computed, dtype_name, mapped, operand_list,
                    refuse_inner, refuse_overlap, to, truth)


def elementwise(compute, count, dtype_of=None, numbers=False):
    """The rule for a function of `count` operands in one dtype, by default that of the result."""
    def rule(call):
        if dtype_of or set(call.kwargs) - {"dtype"} or len(call.args) != count:
            values = operand_list(call, count)
        else:
            values = list(call.args)
        result = call.ask()
        dtype = dtype_of(call, values) if dtype_of else result.dtype
        operands = Operands(values, dtype)
        return computed(call, lambda torch, *tensors: compute(torch, *operands.tensors(torch, tensors, numbers)),
                        operands.inputs, result)
    return rule


def common(call, values):
    """The dtype in which numpy compares."""
    return np.dtype(call.ask(lambda *all: np.empty(0, np.result_type(*map(np.asarray, all))), values).dtype) \
        if len(values) > 1 else values[0].shadow.dtype


def own_dtype(call, values):
    return values[0].shadow.dtype


def logical(compute):
    def rule(call):
        values = operand_list(call, len(call.args))
        if not all(isinstance(each, Array) for each in values):
            raise Refused("constants as operands")
        return computed(call, lambda torch, *tensors: compute(*(truth(torch, each) for each in tensors)), values)
    return rule


def sign(torch, x):
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)


def remainder(torch, x, y):
    if not x.is_floating_point():
        return divided(torch, torch.remainder, x, y)
    made = torch.remainder(x, y)
    # A zero has the sign of the divisor.
    return torch.where(made == 0, torch.copysign(torch.zeros_like(made), y), made)


def floor_divide(torch, x, y):
    return torch.floor_divide(x, y) if x.is_floating_point() else divided(torch, torch.floor_divide, x, y)


def divided(torch, function, x, y):
    """The quotient or the rest of integers: 0 for a divisor of 0, which is an error of tensors."""
    none = y == 0
    made = function(x, torch.where(none, torch.ones_like(y), y))
    return torch.where(none, torch.zeros_like(made), made)


def power(torch, x, y):
    return torch.pow(x, y)


def power_rule(call):
    base, exponent = operand_list(call, 2)
    result = call.ask()
    if result.dtype.kind in "iub":
        # Negative exponents are errors.
        if isinstance(exponent, Array) or np.ndim(exponent):
            raise Refused("integers to powers that elements decide")
    return elementwise(power, 2)(call)


def operator_power_rule(call):
    """The operator, which has short cuts for some exponents."""
    base, exponent = operand_list(call, 2)
    short = isinstance(base, Array) and isinstance(base.shadow, np.ndarray) and isinstance(exponent, (int, float)) \
        and not isinstance(exponent, bool) and base.shadow.dtype.kind == "f"
    if short and exponent == 0.5:
        result = call.ask()
        return computed(call, lambda torch, x: torch.sqrt(to(torch, x, result.dtype.name)), [base], result)
    if short and exponent == 2:
        return computed(call, lambda torch, x: x * x, [base])
    return power_rule(call)


def in_place(rule, function):
    """The rule for an assignment such as `a += b`."""
    def assigned(call):
        target = call.args[0]
        if not isinstance(target, Array):
            return rule(Call(function, call.args, call.kwargs))
        if isinstance(target.shadow, np.generic):
            return rule(Call(function, call.args, call.kwargs))
        refuse_overlap(target.shadow)
        copied = target.shadow.copy(order="K")
        copied.flags.writeable = target.shadow.flags.writeable
        call.ask(call.function, (copied, *call.args[1:]))
        lower, inputs, results, _, _ = rule(Call(function, call.args, {}))

        def lower_assigned(torch, target, *tensors):
            value, = lower(torch, *tensors)
            target.copy_(value)
            return ()

        return lower_assigned, [target, *inputs], [("same", target)], None, target
    return assigned


# ---- reductions ----

def axes_of(axis, ndim):
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not axes:
        raise Refused("no axis")
    return tuple(operator.index(each) % ndim for each in axes)


def reduction(compute, names=("a", "axis", "dtype", "out", "keepdims"), in_result=True, may_be_empty=False,
              default_axis=None):
    """The rule for a function that reduces axes: compute(torch, tensor, axes, keepdims, arguments)."""
    def rule(call):
        given = bound(call, names, "keepdims", "ddof")
        array = given.pop("a")
        if not isinstance(array, Array):
            raise Refused("a list of arrays")
        if given.get("out") is not None or arrays_in(list(given.values())):
            raise Refused("these arguments")
        result = call.ask()
        shadow = array.shadow
        if shadow.size == 0 and not may_be_empty:
            raise Refused("no elements")
        axes = axes_of(given.get("axis", default_axis), shadow.ndim)
        keep = bool(given.get("keepdims", False)) if given.get("keepdims") is not np._NoValue else False
        calc = dtype_name(result.dtype) if in_result else None

        def lower(torch, tensor):
            if calc:
                tensor = to(torch, tensor, calc)
            if not tensor.dim():
                return compute(torch, tensor.reshape(1), (0,), False, given).reshape(result.shape)
            return compute(torch, tensor, axes, keep, given)

        return computed(call, lower, [array], result)
    return rule


def one_by_one(function):
    """Reduces axes one after another."""
    def compute(torch, tensor, axes, keep, given):
        for each in sorted(axes, reverse=True):
            tensor = function(torch, tensor, each, keep)
        return tensor
    return compute


def variance(root):
    def compute(torch, tensor, axes, keep, given):
        ddof = given.get("ddof", 0)
        count = 1
        for each in axes:
            count *= tensor.shape[each]
        if not isinstance(ddof, int) or count <= ddof:
            raise Refused("these degrees of freedom")
        apart = tensor - tensor.mean(axes, True)
        result = (apart * apart).sum(axes, keep) / (count - ddof)
        return torch.sqrt(result) if root else result
    return compute


def variance_rule(root, names):
    rule = reduction(variance(root), names)

    def checked(call):
        if call.arrays and call.arrays[0].shadow.dtype.kind == "b":
            raise Refused("booleans")
        return rule(call)
    return checked


def position(name):
    """argmax and argmin: the first one of equals."""
    def rule(call):
        given = bound(call, ("a", "axis", "out"), "keepdims")
        array = given["a"]
        if not isinstance(array, Array) or given.get("out") is not None or array.shadow.size == 0:
            raise Refused("these arguments")
        result = call.ask()
        axis = given.get("axis")
        ndim = array.shadow.ndim

        def lower(torch, tensor):
            if tensor.dtype == torch.bool:
                tensor = tensor.to(torch.uint8)
            if axis is None or not ndim:
                flat = tensor.reshape(-1)
                return getattr(torch, name)(flat, 0).reshape(result.shape)
            return getattr(torch, name)(tensor, operator.index(axis) % ndim).reshape(result.shape)

        return computed(call, lower, [array], result)
    return rule


def running(name):
    def rule(call):
        given = bound(call, ("a", "axis", "dtype", "out"))
        array = given["a"]
        if not isinstance(array, Array) or given.get("out") is not None:
            raise Refused("these arguments")
        result = call.ask()
        axis = given.get("axis")

        def lower(torch, tensor):
            tensor = to(torch, tensor, dtype_name(result.dtype))
            if axis is None or not array.shadow.ndim:
                return getattr(torch, name)(tensor.reshape(-1), 0)
            return getattr(torch, name)(tensor, operator.index(axis) % array.shadow.ndim)

        return computed(call, lower, [array], result)
    return rule


def range_rule(call):
    """ptp: the difference of the largest and the smallest element."""
    spread = reduction(lambda torch, x, axes, keep, _: torch.amax(x, axes, keep) - torch.amin(x, axes, keep),
                       ("a", "axis", "out", "keepdims"))
    return spread(call)


def without_nan(mean):
    """nansum and nanmean of floats."""
    def compute(torch, x, axes, keep, _):
        absent = torch.isnan(x)
        total = torch.where(absent, torch.zeros_like(x), x).sum(axes, keep)
        return total / (~absent).to(x.dtype).sum(axes, keep) if mean else total

    rule = reduction(compute, may_be_empty=not mean)

    def checked(call):
        if not call.arrays or call.arrays[0].shadow.dtype.kind != "f":
            raise Refused("elements that are no floats")
        return rule(call)
    return checked


# ---- products ----

def matmul_rule(call):
    values = operand_list(call, 2)
    result = call.ask()
    if result.dtype.kind == "b" or 0 in [n for each in call.arrays for n in each.shadow.shape]:
        raise Refused("a product of booleans, or of nothing")
    operands = Operands(values, result.dtype)
    return computed(call, lambda torch, *tensors: torch.matmul(*operands.tensors(torch, tensors)), operands.inputs,
                    result)


def dot_rule(call):
    values = operand_list(call, 2)
    dims = [np.ndim(each.shadow if isinstance(each, Array) else np.asarray(mapped(each, refuse_inner)))
            for each in values]
    if 0 in dims:
        return elementwise(lambda torch, x, y: x * y, 2)(call)
    if max(dims) > 2 and dims[1] != 1:
        raise Refused("a product over more than two dimensions")
    return matmul_rule(call)


def linalg(compute, count):
    """The rule for a function of square matrices, which may fail."""
    def rule(call):
        values = operand_list(call, count)
        if not all(isinstance(each, Array) and each.shadow.dtype.kind == "f" and each.shadow.size for each in values):
            raise Refused("these matrices")

        def regular(each):
            rows, columns = each.shadow.shape[-2:] if each.shadow.ndim > 1 else (1, each.shadow.size)
            return np.broadcast_to(np.eye(rows, columns, dtype=each.shadow.dtype), each.shadow.shape)

        result = call.function(*mapped(call.args, regular))
        if not isinstance(result, (np.ndarray, np.generic)):
            raise Refused("several results")
        operands = Operands(values, result.dtype)
        return computed(call, lambda torch, *tensors: compute(torch, *operands.tensors(torch, tensors)),
                        operands.inputs, result)
    return rule


inverse_rule = linalg(lambda torch, a: torch.linalg.inv(a), 1)
determinant_rule = linalg(lambda torch, a: torch.linalg.det(a), 1)
solve_rule = linalg(lambda torch, a, b: torch.linalg.solve(a, b), 2)


def outer_rule(call):
    values = operand_list(call, 2)
    operands = Operands(values, call.ask().dtype)
    return computed(call, lambda torch, *tensors: torch.outer(
        *(each.reshape(-1) for each in operands.tensors(torch, tensors))), operands.inputs)


def einsum_rule(call):
    if call.kwargs or not call.args or not isinstance(call.args[0], str) or len(call.args) > 3:
        raise Refused("these arguments")
    result = call.ask()
    if any(np.may_share_memory(result, each.shadow) for each in call.arrays) or result.dtype.kind == "b":
        raise Refused("a view")
    operands = Operands(call.args[1:], result.dtype)
    return computed(call, lambda torch, *tensors: torch.einsum(call.args[0], *operands.tensors(torch, tensors)),
                    operands.inputs, result)


# ---- other functions ----

def where_rule(call):
    if len(call.args) != 3 or call.kwargs or not isinstance(call.args[0], Array):
        raise Refused("these arguments")
    condition, *values = call.args
    result = call.ask()
    operands = Operands(values, result.dtype)
    return computed(call, lambda torch, condition, *tensors: torch.where(
        truth(torch, condition), *operands.tensors(torch, tensors)), [condition, *operands.inputs], result)


def clip_rule(call):
    given = bound(call, ("a", "min", "max", "out"), "a_min", "a_max")
    low, high = given.get("min", given.get("a_min")), given.get("max", given.get("a_max"))
    if given.get("out") is not None or not isinstance(given["a"], Array):
        raise Refused("these arguments")
    result = call.ask()
    limits = [each for each in (low, high) if each is not None]
    for each in limits:
        # Limits that are NaN are ignored where they have no dimensions.
        if isinstance(each, Array) and not each.shadow.ndim or not isinstance(each, Array) and np.isnan(each).any():
            raise Refused("a limit that may be NaN")
    operands = Operands([given["a"], *limits], result.dtype)

    def lower(torch, *tensors):
        x, *rest = operands.tensors(torch, tensors)
        if low is not None:
            x = torch.maximum(x, rest.pop(0))
        return torch.minimum(x, rest[0]) if rest else x

    return computed(call, lower, operands.inputs, result)


def round_rule(call):
    given = bound(call, ("a", "decimals", "out"))
    decimals = given.get("decimals", 0)
    array = given["a"]
    if not isinstance(array, Array) or given.get("out") is not None or array.shadow.dtype.kind != "f" \
            or not isinstance(decimals, int):
        raise Refused("these arguments")
    factor = 10.0 ** abs(decimals)

    def lower(torch, x):
        if decimals > 0:
            return torch.round(x * factor) / factor
        return torch.round(x / factor) * factor if decimals < 0 else torch.round(x)

    return computed(call, lower, [array])


def sort_rule(call):
    given = bound(call, ("a", "axis"))
    array = given["a"]
    axis = given.get("axis", -1)
    if not isinstance(array, Array) or not isinstance(axis, int) or not array.shadow.ndim:
        raise Refused("these arguments")
    return computed(call, lambda torch, x: torch.sort(x, axis)[0], [array])
