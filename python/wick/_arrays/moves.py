"""Rules for views, copies, items, and functions that move elements."""

import itertools
import operator

import numpy as np

from .plans import (Array, Call, Operands, Refused, arrays_in, bound, computed, constant_plan, dtype_name,
                    elements_strides, laid_out, mapped, operand_list, refuse_inner, refuse_overlap, same_layout, to,
                    truth)

# ---- views ----

def address(array):
    return array.__array_interface__["data"][0]


def positive_slices(base, result):
    """Slices of the base and the dimensions to flip that give the result, or None."""
    strides, steps = elements_strides(base), elements_strides(result)
    if base.ndim != result.ndim:
        return None
    offset = (address(result) - address(base)) // base.itemsize
    starts = [0] * base.ndim
    for d in sorted(range(base.ndim), key=lambda d: -strides[d]):
        if strides[d] > 0 and base.shape[d] > 1:
            starts[d], offset = divmod(offset, strides[d])
    if offset:
        return None
    slices, flips = [], []
    for d, (n, m) in enumerate(zip(base.shape, result.shape)):
        step = 1
        if m > 1:
            if not strides[d] or steps[d] % strides[d] or not steps[d]:
                return None
            step = steps[d] // strides[d]
        start = starts[d]
        if step < 0:
            start, step = start + (m - 1) * step, -step
            flips.append(d)
        if start < 0 or start + (m - 1) * step >= n:
            return None
        slices.append(slice(start, start + (m - 1) * step + 1, step))
    return tuple(slices), flips


def view_lowering(base, result):
    """A function that makes the view of the base's tensor, and whether it has to copy."""
    if result.size == 0:
        raise Refused("a view without elements")
    if base.flags.c_contiguous and result.flags.c_contiguous and base.size == result.size:
        return (lambda x: x.view(result.shape)), False
    pairs = list(zip(base.shape, elements_strides(base)))
    if base.ndim == result.ndim and address(base) == address(result):
        wanted, order, free = list(zip(result.shape, elements_strides(result))), [], list(range(base.ndim))
        for n, step in wanted:
            fits = [d for d in free if pairs[d][0] == n and (n == 1 or pairs[d][1] == step)]
            if not fits:
                break
            order.append(fits[0])
            free.remove(fits[0])
        if len(order) == base.ndim:
            return (lambda x: x.permute(order)), False
    for order in itertools.permutations(range(base.ndim)) if base.ndim <= 4 else ():
        sliced = positive_slices(base.transpose(order), result)
        if sliced:
            slices, flips = sliced
            return (lambda x: x.permute(order)[slices].flip(flips) if flips else x.permute(order)[slices]), bool(flips)
    steps = elements_strides(result)
    if address(base) == address(result) and all(step >= 0 for step in steps):
        return (lambda x: x.as_strided(result.shape, steps)), False
    raise Refused("a view that tensors do not have")


def view_results(call, array, results, copies):
    """The lowering and the results for views of one array; `copies` makes the others."""
    functions, described = [], []
    for result in results:
        if result is array.shadow:
            described.append(("same", array))
            continue
        if type(result) is not np.ndarray:
            raise Refused(f"a result of the class {type(result).__name__}")
        if result.dtype != array.shadow.dtype:
            raise Refused("another dtype")
        if not result.size:
            raise Refused("a view without elements")
        if np.may_share_memory(result, array.shadow):
            function, copied = view_lowering(array.shadow, result)
            functions.append((function, None if copied else result, result))
            described.append(("array", result, array, copied))
        else:
            if copies is None:
                raise Refused("a copy")
            functions.append((copies, result, result))
            described.append(("array", result))

    def lower(torch, x):
        made = []
        for function, exact, result in functions:
            tensor = function(x, result) if function is copies else function(x)
            if function is copies:
                tensor = laid_out(tensor, result)
            elif exact is not None and not same_layout(tensor, exact):
                raise Refused("strides that differ from numpy's")
            made.append(tensor)
        return tuple(made)

    return (lower if functions else None), [array], described


def copy_in_order(x, result):
    return x.reshape(result.shape).clone() if tuple(x.shape) == result.shape else x.reshape(-1).clone().reshape(
        result.shape)


def viewing(copies=copy_in_order):
    """The rule for a function of one array whose results are views of it, or copies in the order of its rows."""
    def rule(call):
        if len(call.arrays) != 1 or not call.args or call.args[0] is not call.arrays[0]:
            raise Refused("these arguments")
        array = call.arrays[0]
        if isinstance(array.shadow, np.generic):
            raise Refused("a number")
        ordered = call.kwargs.get("order", "C") in ("C", "K", "A", None)
        result = call.ask()
        container = type(result) if isinstance(result, (list, tuple)) else None
        results = list(result) if container else [result]
        if "order" in call.kwargs and not ordered:
            copier = None
        else:
            copier = copies
        lower, inputs, described = view_results(call, array, results, copier)
        return lower, inputs, described, container, None
    return rule


def copy_rule(call):
    """copy(), and array() or asarray() of an array, a number or a list of them."""
    array = call.args[0] if call.args else None
    if isinstance(array, (list, tuple)) and not arrays_in((call.args[1:], call.kwargs)):
        return stacked(call, array)
    if not isinstance(array, Array) or len(call.arrays) != 1:
        raise Refused("these arguments")
    result = call.ask()
    if result is array.shadow:
        return None, [], [("same", array)], None, None
    if isinstance(array.shadow, np.ndarray) and np.may_share_memory(result, array.shadow):
        return viewing()(call)
    return cast(call, array, result)


def stacked(call, parts):
    """The array of a list of arrays of the same sizes, numbers, or lists of these."""
    result = call.ask()
    if result.dtype.hasobject:
        raise Refused("a list of arrays of several sizes")
    leaves = []

    def flat(value, depth):
        if isinstance(value, (list, tuple)):
            for each in value:
                flat(each, depth + 1)
            return
        leaves.append(value)
        inner = value.shadow.ndim if isinstance(value, Array) else np.ndim(value)
        if depth + inner != result.ndim:
            raise Refused("a list of arrays of several sizes")

    flat(parts, 0)
    operands = Operands(leaves, result.dtype)
    return computed(call, lambda torch, *tensors: torch.stack(operands.tensors(torch, tensors)).reshape(result.shape),
                    operands.inputs, result)


def cast(call, array, result):
    """The plan for a new array with the elements of one in another dtype."""
    if array.shadow.dtype.kind == "f" and result.dtype.kind == "u":
        raise Refused("floats as unsigned integers")

    def lower(torch, x):
        dtype = getattr(torch, dtype_name(result.dtype))
        x = x.clone() if x.dtype == dtype else truth(torch, x) if result.dtype.kind == "b" else x.to(dtype)
        return x.reshape(result.shape)

    return computed(call, lower, [array], result)


def astype_rule(call):
    given = bound(call, ("a", "dtype", "order", "casting", "subok", "copy"))
    array = given["a"]
    if not isinstance(array, Array) or len(call.arrays) != 1:
        raise Refused("these arguments")
    result = call.ask()
    if result is array.shadow:
        return None, [], [("same", array)], None, None
    return cast(call, array, result)


# ---- items ----

def is_basic(key):
    parts = key if isinstance(key, tuple) else (key,)
    return all(each is None or each is Ellipsis or type(each) is slice and not arrays_in(each)
               or (isinstance(each, (int, np.integer)) and not isinstance(each, bool)) for each in parts)


def without_negative_steps(key, shape):
    """The key with slices that go forward, and the dimensions of the result to flip."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        rest = len(shape) - sum(each is not None and each is not Ellipsis for each in parts)
        parts[at:at + 1] = [slice(None)] * rest
    made, flips, dim, place = [], [], 0, 0
    for each in parts:
        if each is None:
            made.append(None)
            place += 1
            continue
        n = shape[dim]
        dim += 1
        if type(each) is not slice:
            made.append(operator.index(each))
            continue
        start, stop, step = each.indices(n)
        if step < 0:
            count = len(range(start, stop, step))
            last = start + (count - 1) * step
            made.append(slice(last, start + 1, -step) if count else slice(0, 0))
            flips.append(place)
        else:
            made.append(slice(start, max(stop, start), step))
        place += 1
    return tuple(made), flips


def getitem_rule(call):
    array, key = call.args
    if not isinstance(array, Array):
        raise Refused("an array as a subscript of something else")
    if isinstance(array.shadow, np.generic):
        raise Refused("an item of a number")
    if is_basic(key):
        result = call.ask()
        forward, flips = without_negative_steps(key, array.shadow.shape)

        def lower(torch, x):
            tensor = x[forward]
            if flips:
                tensor = tensor.flip(flips)
            return (tensor.clone() if isinstance(result, np.generic) else tensor,)

        if isinstance(result, np.generic):
            return lower, [array], [("array", result)], None, None
        if not flips:
            def checked(torch, x):
                tensor, = lower(torch, x)
                if tuple(tensor.shape) != result.shape or not same_layout(tensor, result):
                    raise Refused("strides that differ from numpy's")
                return (tensor,)
            return checked, [array], [("array", result, array, False)], None, None
        return lower, [array], [("array", result, array, True)], None, None
    if isinstance(key, Array) and not key.shadow.ndim and key.shadow.dtype.kind in "iu" and array.shadow.ndim == 1 \
            and array.shadow.size:
        return computed(call, lambda torch, x, at: x[at.to(torch.int64).reshape(1)].reshape(()), [array, key],
                        array.shadow[key.shadow])
    parts = key if isinstance(key, tuple) else (key,)
    inputs, places = [array], []
    for each in parts:
        if isinstance(each, Array):
            if each.shadow.dtype.kind not in "iu" or each.shadow.ndim == 0:
                raise Refused("a subscript of this dtype")
            places.append(len(inputs))
            inputs.append(each)
        elif isinstance(each, (list, np.ndarray)):
            index = np.asarray(mapped(each, refuse_inner))
            if index.dtype.kind not in "iu" or not index.size:
                raise Refused("a subscript of this dtype")
            places.append(len(inputs))
            inputs.append(np.ascontiguousarray(index.astype("int64")))
        elif type(each) is slice and each == slice(None) or each is Ellipsis:
            places.append(each)
        else:
            raise Refused("this subscript")
    if sum(isinstance(each, int) for each in places) > 1 and not all(isinstance(each, int) for each in places):
        raise Refused("arrays and slices in one subscript")
    if array.shadow.size == 0:
        raise Refused("no elements")
    result = call.ask()
    return computed(call, lambda torch, *tensors: tensors[0][tuple(
        tensors[each].to(torch.int64) if isinstance(each, int) else each for each in places)], inputs, result)


def setitem_rule(call):
    array, key, value = call.args
    if not isinstance(array, Array):
        raise Refused("an array as a subscript of something else")
    refuse_overlap(array.shadow)
    shadow = array.shadow.copy(order="K")
    shadow.flags.writeable = array.shadow.flags.writeable
    masked = isinstance(key, Array) and key.shadow.dtype.kind == "b" and key.shadow.shape == shadow.shape
    if not masked and not is_basic(key):
        raise Refused("a write by this subscript")
    call.ask(operator.setitem, (shadow, key, value))
    operands = Operands([value], array.shadow.dtype)
    inputs = [array, *operands.inputs]
    done = [("constant", None)]
    if masked:
        if operands.inputs:
            raise Refused("a write of an array by a mask")

        def fill(torch, x, mask):
            x.masked_fill_(mask, operands.parts[0][1])
            return ()

        return fill, [array, key], done, None, array
    forward, flips = without_negative_steps(key, shadow.shape)
    if flips:
        raise Refused("a write by slices that go back")

    def write(torch, x, *tensors):
        target = x[forward]
        part, = operands.tensors(torch, tensors)
        if operands.inputs:
            part = part.clone()  # it may share memory with the target
            extra = part.dim() - target.dim()
            if extra > 0:
                part = part.reshape(part.shape[extra:])
        target.copy_(part)
        return ()

    return write, inputs, done, None, array


# ---- joining ----

def joining(compute):
    """The rule for a function of a sequence of arrays: compute(torch, tensors, axis)."""
    def rule(call):
        given = bound(call, ("arrays", "axis"))
        parts = given["arrays"]
        if not isinstance(parts, (list, tuple)) or not parts or arrays_in(given.get("axis", 0)):
            raise Refused("these arguments")
        result = call.ask()
        operands = Operands(parts, result.dtype)
        axis = given.get("axis", 0)

        def lower(torch, *tensors):
            made = operands.tensors(torch, tensors)
            return compute(torch, made, axis, result).clone() if len(made) == 1 else compute(torch, made, axis, result)

        return computed(call, lower, operands.inputs, result)
    return rule


def concatenate(torch, tensors, axis, result):
    if axis is None:
        return torch.cat([each.reshape(-1) for each in tensors])
    return torch.cat(tensors, axis % tensors[0].dim())


def stack(torch, tensors, axis, result):
    return torch.stack(tensors, axis % result.ndim)


def vertically(torch, tensors, axis, result):
    return torch.cat([each.reshape(1, -1) if each.dim() < 2 else each for each in tensors], 0)


def horizontally(torch, tensors, axis, result):
    tensors = [each.reshape(1) if not each.dim() else each for each in tensors]
    return torch.cat(tensors, 0 if tensors[0].dim() == 1 else 1)


def created(call):
    """Arrays whose elements depend on no other elements."""
    prototype = call.args[0] if call.args else None
    if call.arrays != [prototype]:
        raise Refused("a number that elements decide")
    if call.function is np.empty_like:
        return constant_plan(np.zeros_like(call.ask()))
    return constant_plan(call.ask())


def of_dtypes(call):
    """Functions of the dtypes of arrays."""
    if any(not each.shadow.ndim for each in call.arrays):
        raise Refused("a dtype that the element of an array decides")
    return constant_plan(call.ask())


def no_rule(call):
    raise Refused("a number that elements decide")


def take_rule(call):
    given = bound(call, ("a", "indices", "axis"))
    array, indices, axis = given["a"], given["indices"], given.get("axis")
    if not isinstance(array, Array) or axis is not None and not isinstance(axis, int) or not array.shadow.size:
        raise Refused("these arguments")
    kind = indices.shadow if isinstance(indices, Array) else np.asarray(mapped(indices, refuse_inner))
    if kind.dtype.kind not in "iu" or not kind.size:
        raise Refused("indices of this dtype")
    result = call.ask()
    operands = Operands([indices], np.int64)

    def lower(torch, x, *tensors):
        at, = operands.tensors(torch, tensors)
        place = 0 if axis is None else axis % x.dim()
        x = x.reshape(-1) if axis is None else x
        return x[(slice(None),) * place + (at.reshape(-1),)].reshape(result.shape)

    return computed(call, lower, [array, *operands.inputs], result)


def repeat_rule(call):
    given = bound(call, ("a", "repeats", "axis"))
    array, repeats, axis = given["a"], given["repeats"], given.get("axis")
    if not isinstance(array, Array) or not isinstance(repeats, int) or axis is not None and not isinstance(axis, int):
        raise Refused("these arguments")

    def lower(torch, x):
        x = x.reshape(-1) if axis is None or not x.dim() else x
        place = 0 if axis is None else axis % x.dim()
        x = x.unsqueeze(place + 1)
        return x.expand([repeats if d == place + 1 else -1 for d in range(x.dim())]).flatten(place, place + 1).clone()

    return computed(call, lower, [array])


def roll_rule(call):
    given = bound(call, ("a", "shift", "axis"))
    array, shift, axis = given["a"], given["shift"], given.get("axis")
    if not isinstance(array, Array) or len(call.arrays) != 1 or not array.shadow.size:
        raise Refused("these arguments")

    def lower(torch, x):
        if axis is None:
            return torch.roll(x.reshape(-1), (operator.index(shift),), (0,)).reshape(x.shape)
        return torch.roll(x, shift, axis)

    return computed(call, lower, [array])


def tile_rule(call):
    given = bound(call, ("A", "reps"))
    array, times = given["A"], given["reps"]
    times = (times,) if isinstance(times, int) else times
    if not isinstance(array, Array) or not isinstance(times, (list, tuple)) \
            or not all(isinstance(n, int) for n in times):
        raise Refused("these arguments")
    sizes = (1,) * (array.shadow.ndim - len(times)) + tuple(times)
    return computed(call, lambda torch, x: x.repeat(sizes).clone(), [array])


def pad_rule(call):
    given = bound(call, ("a", "width", "mode"), "pad_width", "constant_values")
    array, width = given["a"], given.get("width", given.get("pad_width"))
    value = given.get("constant_values", 0)
    if not isinstance(array, Array) or given.get("mode", "constant") != "constant" or not array.shadow.size \
            or arrays_in(width) or not isinstance(value, (int, float)) or array.shadow.dtype.kind == "b":
        raise Refused("these arguments")
    result = call.ask()
    value = np.asarray(value).astype(result.dtype).item()
    pairs = np.broadcast_to(np.asarray(width), (array.shadow.ndim, 2)).tolist()

    def lower(torch, x):
        flat = [n for pair in reversed(pairs) for n in pair]
        return torch.nn.functional.pad(x, flat, "constant", value)

    return computed(call, lower, [array], result)


def itself_rule(call):
    """Methods that give real arrays themselves."""
    array, = operand_list(call, 1)
    if call.ask() is not array.shadow:
        raise Refused("another array")
    return None, [], [("same", array)], None, None


def trace_rule(call):
    array, = operand_list(call, 1)
    if array.shadow.ndim != 2:
        raise Refused("more than two dimensions")
    result = call.ask()
    return computed(call, lambda torch, x: to(torch, torch.diagonal(x), result.dtype.name).sum(0), [array], result)


def difference_rule(call):
    given = bound(call, ("a", "n", "axis"))
    array, count, axis = given["a"], given.get("n", 1), given.get("axis", -1)
    if not isinstance(array, Array) or count != 1 or not isinstance(axis, int):
        raise Refused("these arguments")
    result = call.ask()

    def lower(torch, x):
        place = axis % x.dim()
        later, earlier = x.narrow(place, 1, x.shape[place] - 1), x.narrow(place, 0, x.shape[place] - 1)
        return later ^ earlier if x.dtype == torch.bool else later - earlier

    if not result.size:
        raise Refused("no elements")
    return computed(call, lower, [array], result)


def number_rule(call):
    """Classes of numbers, called with one array without dimensions or number."""
    array, = operand_list(call, 1)
    if array.shadow.ndim:
        return astype_rule(Call(np.ndarray.astype, (array, call.function), {}))
    result = call.ask()
    return computed(call, lambda torch, x: x.clone(), [array], result)
