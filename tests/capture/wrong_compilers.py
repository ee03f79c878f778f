"""Compilers that are wrong on purpose, each in one way. The programs and their comparison must notice."""

import builtins
import collections
import contextlib
import copy
import functools
import io
import random


def replaced(value, change, seen=None):
    """The value with `change` made to it and to the items of its lists, tuples and dicts. Unchanged parts are not copied."""
    changed = change(value)
    if changed is not value:
        return changed
    if type(value) is list:
        made = [replaced(item, change) for item in value] if not any(item is value for item in value) else value
    elif type(value) is tuple:
        made = tuple(replaced(item, change) for item in value)
    elif type(value) is dict:
        made = {key: replaced(item, change) for key, item in value.items()}
    else:
        return value
    old = list(value.values()) if type(value) is dict else list(value)
    new = list(made.values()) if type(made) is dict else list(made)
    return made if any(a is not b for a, b in zip(old, new)) else value


def on_results(change):
    """A compiler that changes results."""
    def compiler(torch):
        def compile(function):
            return lambda *args, **kwargs: replaced(function(*args, **kwargs), functools.partial(change, torch))

        return compile

    compiler.__name__ = change.__name__
    return compiler


def is_plain_float(torch, value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


@on_results
def dtype_of_results(torch, value):
    return value.double() if is_plain_float(torch, value) and value.dtype != torch.float64 else value


@on_results
def results_are_copies(torch, value):
    return value.clone() if isinstance(value, torch.Tensor) else value


@on_results
def results_are_detached(torch, value):
    return value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value


@on_results
def results_require_gradients(torch, value):
    if is_plain_float(torch, value) and not value.requires_grad and value.is_leaf:
        return value.detach().requires_grad_()
    return value


@on_results
def strides_of_results(torch, value):
    if isinstance(value, torch.Tensor) and value.dim() == 2 and value.is_contiguous() and not value.requires_grad:
        return value.t().contiguous().t()
    return value


@on_results
def last_bit_of_results(torch, value):
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and not value.requires_grad:
        return torch.nextafter(value, torch.full_like(value, float("inf")))
    return value


@on_results
def zeros_lose_their_sign(torch, value):
    if is_plain_float(torch, value) and not value.requires_grad and (value == 0).any():
        return value + 0.0
    return value + 0.0 if type(value) is float and value == 0 else value


@on_results
def booleans_are_numbers(torch, value):
    return int(value) if type(value) is bool else value


@on_results
def tuples_are_lists(torch, value):
    return list(value) if type(value) is tuple else value


@on_results
def lists_are_copied(torch, value):
    return list(value) if type(value) is list else value


@on_results
def order_of_keys(torch, value):
    return dict(reversed(value.items())) if type(value) is dict and len(value) > 1 else value


def around(change):
    """A compiler that calls change(torch, function, args, kwargs, state) instead; `state` is kept between calls."""
    def compiler(torch):
        def compile(function):
            state = {}
            return lambda *args, **kwargs: change(torch, function, args, kwargs, state)

        return compile

    compiler.__name__ = change.__name__
    return compiler


@around
def results_are_stale(torch, function, args, kwargs, state):
    if "result" not in state:
        state["result"] = function(*args, **kwargs)
        return state["result"]
    function(*args, **kwargs)
    return state["result"]


@around
def writes_to_arguments_are_lost(torch, function, args, kwargs, state):
    try:
        copied = copy.deepcopy((args, kwargs))
    except Exception:
        copied = args, kwargs
    return function(*copied[0], **copied[1])


@around
def exceptions_are_swallowed(torch, function, args, kwargs, state):
    try:
        return function(*args, **kwargs)
    except Exception:
        return None


@around
def texts_of_exceptions(torch, function, args, kwargs, state):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        error.args = ("something else",)
        raise


@around
def types_of_exceptions(torch, function, args, kwargs, state):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        raise BufferError(*error.args) from error.__cause__


@around
def contexts_of_exceptions_are_lost(torch, function, args, kwargs, state):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        error.__context__ = None
        raise


@around
def output_is_lost(torch, function, args, kwargs, state):
    with contextlib.redirect_stdout(io.StringIO()):
        return function(*args, **kwargs)


@around
def random_numbers_are_burned(torch, function, args, kwargs, state):
    result = function(*args, **kwargs)
    if not state:
        torch.rand(1)
        state["burned"] = True
    return result


@around
def random_numbers_of_python_are_burned(torch, function, args, kwargs, state):
    random.random()
    return function(*args, **kwargs)


@around
def randomness_is_kept(torch, function, args, kwargs, state):
    """Each call draws the numbers that the first one drew."""
    now = torch.get_rng_state(), random.getstate()
    start = state.setdefault("start", now)
    torch.set_rng_state(start[0])
    random.setstate(start[1])
    try:
        return function(*args, **kwargs)
    finally:
        if torch.equal(torch.get_rng_state(), start[0]):
            torch.set_rng_state(now[0])
        if random.getstate() == start[1]:
            random.setstate(now[1])


@around
def writes_to_globals_are_lost(torch, function, args, kwargs, state):
    names = getattr(function, "__globals__", {})
    before = dict(names)
    try:
        return function(*args, **kwargs)
    finally:
        for name in set(names) - set(before):
            del names[name]
        names.update(before)


def restore(value, contents):
    value.clear()
    value.update(contents) if isinstance(value, (dict, set)) else value.extend(contents)


@around
def changes_of_global_containers_are_lost(torch, function, args, kwargs, state):
    """So are those of containers that are attributes of global classes."""
    names = getattr(function, "__globals__", {})
    roots = [value for name, value in names.items() if name != "__builtins__"]
    for value in list(roots):
        if isinstance(value, type) and value.__module__.startswith("programs."):
            roots += vars(value).values()
    before = [(value, value.copy()) for value in roots if isinstance(value, (list, dict, set, collections.deque))]
    try:
        return function(*args, **kwargs)
    finally:
        for value, contents in before:
            restore(value, contents)


@around
def effects_happen_twice(torch, function, args, kwargs, state):
    generator, python = torch.get_rng_state(), random.getstate()
    gradients, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            function(*args, **kwargs)
        except Exception:
            pass
    torch.set_rng_state(generator)
    random.setstate(python)
    torch.set_grad_enabled(gradients)
    torch.set_default_dtype(dtype)
    return function(*args, **kwargs)


@around
def gradient_mode_is_lost(torch, function, args, kwargs, state):
    with torch.no_grad():
        return function(*args, **kwargs)


@around
def gradient_mode_is_left_off(torch, function, args, kwargs, state):
    result = function(*args, **kwargs)
    torch.set_grad_enabled(False)
    return result


@around
def attributes_are_lost(torch, function, args, kwargs, state):
    """Writes to attributes of objects that are arguments are undone."""
    before = [(value, dict(vars(value))) for value in args if hasattr(value, "__dict__")]
    try:
        return function(*args, **kwargs)
    finally:
        for value, attributes in before:
            vars(value).clear()
            vars(value).update(attributes)


@around
def cells_are_stale(torch, function, args, kwargs, state):
    """Writes to cells of the function are undone."""
    cells = [(cell, cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    try:
        return function(*args, **kwargs)
    finally:
        for cell, contents in cells:
            cell.cell_contents = contents


@around
def arguments_count_as_written(torch, function, args, kwargs, state):
    result = function(*args, **kwargs)
    with torch.no_grad():
        for value in args:
            if isinstance(value, torch.Tensor) and value.dim() and not value.is_inference():
                value.detach()[:0].zero_()
    return result


@around
def appended_items_are_lost(torch, function, args, kwargs, state):
    before = [(value, len(value)) for value in args if type(value) is list]
    try:
        return function(*args, **kwargs)
    finally:
        for value, length in before:
            del value[length:]


@around
def values_of_first_arguments(torch, function, args, kwargs, state):
    """Numbers and texts among the arguments are taken from the first call."""
    first = state.setdefault("args", args)
    constants = (int, float, str, bool, type(None))
    if len(first) == len(args):
        args = [a if type(b) in constants and type(a) is type(b) else b for a, b in zip(first, args)]
    return function(*args, **kwargs)


ALL = [value for value in vars().values() if getattr(value, "__qualname__", "").endswith("<locals>.compiler")]
ALL_NAMES = [compiler.__name__ for compiler in ALL]
assert len(set(ALL_NAMES)) == len(ALL) and not set(ALL_NAMES) & set(dir(builtins))
