"""The table of numpy's functions in captured code, for capture/evaluate/arrays.cpp."""

import operator
import sys

import numpy as np

from .elements import (clip_rule, common, determinant_rule, dot_rule, einsum_rule, elementwise, floor_divide, in_place,
                       inverse_rule, logical, matmul_rule, one_by_one, operator_power_rule, outer_rule,
                       own_dtype, position, power_rule, range_rule, reduction, remainder, round_rule, running, sign,
                       solve_rule, sort_rule, variance_rule, where_rule, without_nan)
from .moves import (astype_rule, concatenate, copy_rule, created, difference_rule, getitem_rule, horizontally,
                    itself_rule, joining, no_rule, number_rule, of_dtypes, pad_rule, repeat_rule, roll_rule,
                    setitem_rule, stack, take_rule, tile_rule, trace_rule, vertically, viewing)
from .plans import DTYPES, Array, Call, constant_plan, like, order_of, truth

FLOAT_FUNCTIONS = """
exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin:asin arccos:acos arctan:atan sinh cosh tanh
arcsinh:asinh arccosh:acosh arctanh:atanh floor ceil trunc deg2rad rad2deg radians:deg2rad degrees:rad2deg
"""


def named(name):
    return lambda torch, *operands: getattr(torch, name)(*operands)


def _add_elementwise(rules):
    for each in FLOAT_FUNCTIONS.split():
        name, _, other = each.partition(":")
        rules[getattr(np, name)] = elementwise(named(other or name), 1)
    rules[np.rint] = elementwise(named("round"), 1)
    rules[np.square] = elementwise(lambda torch, x: x * x, 1)
    rules[np.negative] = elementwise(lambda torch, x: -x, 1)
    rules[np.positive] = elementwise(lambda torch, x: x.clone(), 1)
    rules[np.absolute] = rules[np.fabs] = elementwise(lambda torch, x: torch.abs(x) if x.dtype != torch.bool
                                                      else x.clone(), 1)
    rules[np.sign] = elementwise(sign, 1)
    for name in "isnan isinf isfinite signbit".split():
        rules[getattr(np, name)] = elementwise(named(name), 1, own_dtype)
    arithmetic = {
        np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.divide: operator.truediv,
        np.greater: operator.gt, np.greater_equal: operator.ge, np.less: operator.lt, np.less_equal: operator.le,
        np.equal: operator.eq, np.not_equal: operator.ne, np.bitwise_and: operator.and_, np.bitwise_or: operator.or_,
        np.bitwise_xor: operator.xor}
    for function, compute in arithmetic.items():
        compares = function in (np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal)
        rules[function] = elementwise(lambda torch, x, y, compute=compute: compute(x, y), 2,
                                      common if compares else None, numbers=True)
    rules[np.invert] = elementwise(lambda torch, x: ~x, 1)
    for function, name in {np.maximum: "maximum", np.minimum: "minimum", np.fmax: "fmax", np.fmin: "fmin",
                           np.arctan2: "atan2", np.hypot: "hypot", np.logaddexp: "logaddexp",
                           np.copysign: "copysign"}.items():
        rules[function] = elementwise(named(name), 2)
    rules[np.floor_divide] = elementwise(floor_divide, 2)
    rules[np.remainder], rules[np.power] = elementwise(remainder, 2), power_rule
    rules[np.logical_and] = logical(operator.and_)
    rules[np.logical_or] = logical(operator.or_)
    rules[np.logical_xor] = logical(operator.xor)
    rules[np.logical_not] = logical(operator.invert)
    rules[np.where] = where_rule


def _add_reductions(rules):
    rules[np.sum] = reduction(lambda torch, x, axes, keep, _: x.sum(axes, keep), may_be_empty=True)
    rules[np.mean] = reduction(lambda torch, x, axes, keep, _: x.mean(axes, keep))
    rules[np.prod] = reduction(one_by_one(lambda torch, x, axis, keep: x.prod(axis, keep)), may_be_empty=True)
    for function, compute in {np.add: lambda torch, x, axes, keep, _: x.sum(axes, keep),
                              np.maximum: lambda torch, x, axes, keep, _: torch.amax(x, axes, keep),
                              np.minimum: lambda torch, x, axes, keep, _: torch.amin(x, axes, keep)}.items():
        rules[function.reduce] = reduction(compute, default_axis=0)
    without_dtype = ("a", "axis", "out", "keepdims")
    rules[np.amax] = rules[np.max] = reduction(lambda torch, x, axes, keep, _: torch.amax(x, axes, keep), without_dtype)
    rules[np.amin] = rules[np.min] = reduction(lambda torch, x, axes, keep, _: torch.amin(x, axes, keep), without_dtype)
    rules[np.any] = reduction(one_by_one(lambda torch, x, axis, keep: truth(torch, x).any(axis, keep)), without_dtype,
                              in_result=False, may_be_empty=True)
    rules[np.all] = reduction(one_by_one(lambda torch, x, axis, keep: truth(torch, x).all(axis, keep)), without_dtype,
                              in_result=False, may_be_empty=True)
    with_ddof = ("a", "axis", "dtype", "out", "ddof", "keepdims")
    rules[np.var], rules[np.std] = variance_rule(False, with_ddof), variance_rule(True, with_ddof)
    rules[np.ptp] = range_rule
    rules[np.nansum], rules[np.nanmean] = without_nan(False), without_nan(True)
    rules[np.argmax], rules[np.argmin] = position("argmax"), position("argmin")
    rules[np.cumsum], rules[np.cumprod] = running("cumsum"), running("cumprod")


def _add_shapes(rules):
    views = """reshape ravel transpose swapaxes moveaxis rollaxis squeeze expand_dims broadcast_to diagonal flip flipud
               fliplr rot90 split array_split hsplit vsplit dsplit atleast_1d atleast_2d atleast_3d"""
    for name in views.split():
        rules[getattr(np, name)] = viewing()
    rules[np.concatenate], rules[np.stack] = joining(concatenate), joining(stack)
    rules[np.vstack], rules[np.hstack] = joining(vertically), joining(horizontally)
    for name in "copy array asarray asanyarray ascontiguousarray asfortranarray".split():
        rules[getattr(np, name)] = copy_rule
    rules[np.take], rules[np.repeat], rules[np.roll], rules[np.tile] = take_rule, repeat_rule, roll_rule, tile_rule
    rules[np.trace], rules[np.diff] = trace_rule, difference_rule
    rules[np.matmul], rules[np.dot], rules[np.outer] = matmul_rule, dot_rule, outer_rule
    rules[np.einsum], rules[np.pad] = einsum_rule, pad_rule
    rules[np.linalg.inv], rules[np.linalg.solve], rules[np.linalg.det] = inverse_rule, solve_rule, determinant_rule
    rules[np.clip], rules[np.around] = clip_rule, round_rule
    rules[getattr(np, "round_", np.around)] = round_rule
    rules[np.sort] = sort_rule
    for name in "zeros_like ones_like full_like empty_like".split():
        rules[getattr(np, name)] = created
    for name in """zeros ones full empty arange linspace logspace eye identity tri promote_types min_scalar_type
                   issubdtype""".split():
        rules[getattr(np, name)] = no_rule
    rules[np.result_type] = rules[np.can_cast] = of_dtypes
    for each in (np.dtype, np.finfo, np.iinfo, np.core.multiarray.normalize_axis_index):
        rules[each] = no_rule
    for name in set(DTYPES.values()):
        rules[getattr(np, name + "_" if name == "bool" else name)] = number_rule


METHODS = """sum mean prod max min any all var std argmax argmin cumsum cumprod reshape ravel transpose swapaxes squeeze
diagonal copy dot clip round take repeat trace"""


def _rules():
    rules = {}
    _add_elementwise(rules)
    _add_reductions(rules)
    _add_shapes(rules)
    for kind in (np.ndarray, np.generic):
        for name in METHODS.split():
            if hasattr(kind, name):
                rules[getattr(kind, name)] = rules[getattr(np, name if name != "round" else "around")]
        rules[kind.astype] = astype_rule
        rules[kind.flatten] = viewing()
        rules[kind.conj] = rules[kind.conjugate] = itself_rule
    return rules


RULES = _rules()

_OPERATORS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
    "mod": np.remainder, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "matmul": np.matmul}
_OTHERS = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
           "ne": np.not_equal, "neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute}


def _of_python():
    """Rules for functions of Python, which are numpy's only where an array is among the arguments."""
    rules = {getattr(operator, f"__{name}__"): RULES[function] for name, function in (_OPERATORS | _OTHERS).items()}
    rules[operator.__pow__] = operator_power_rule
    for name in (*_OPERATORS, "pow"):
        plain = getattr(operator, f"__{name}__")
        rules[getattr(operator, f"__i{name}__")] = in_place(rules[plain], plain)
    rules[operator.getitem], rules[operator.setitem] = getitem_rule, setitem_rule
    rules[abs] = RULES[np.absolute]
    return rules


OF_PYTHON = _of_python()


def plan(function, args, kwargs):
    """The plan for a call, whose arguments hold stand-ins for arrays, and whether elements may make its operators fail.
    Raises an error where there is no plan."""
    rule = RULES.get(function) or OF_PYTHON[function]
    call = Call(function, args, kwargs)
    if call.arrays:
        may_fail = rule in (getitem_rule, take_rule) and len(call.arrays) > 1 or rule in (inverse_rule, solve_rule)
        return *rule(call), may_fail
    result = call.ask()
    return *constant_plan(np.zeros_like(result) if function in (np.empty, np.empty_like) else result), False


# ---- arrays and tensors ----

def conversion_of(function, kwargs, of_tensor):
    """How a function makes a tensor of an array: (module, function on tensors, whether they share memory); or that it
    makes an array of a tensor. None for other functions."""
    from wick import torch as own

    libraries = [own]
    other = sys.modules.get("torch")
    if other is not None and hasattr(other, "from_numpy") and other is not own:
        libraries.append(other)
    for library in libraries:
        if of_tensor:
            if function is np.asarray or function is library.Tensor.numpy:
                return library, None, True
            continue
        dtype = kwargs.get("dtype")
        if function is library.from_numpy and not kwargs:
            return library, (lambda torch, x: x.detach()), True
        if function is library.as_tensor and not kwargs:
            return library, (lambda torch, x: x.detach()), True
        if function is library.tensor and set(kwargs) <= {"dtype"}:
            return library, (lambda torch, x: x.clone() if dtype is None else x.clone().to(dtype)), False
    return None

