"""Compiling unrestricted Python functions and modules: wick.compile and what belongs to it."""

import difflib
import functools
import sys
import types

from wick import _C, _compiled
from wick._explanation import BreakReason, Explanation, describe
from wick._export import ExportError, export

# None runs a graph as a script function, "eager" operator by operator.
_backends = {"wick": None, "eager": "eager"}
# On the CPU all of them are the same: nothing is left to gain there.
_MODES = ("default", "reduce-overhead", "max-autotune")


def list_backends():
    """The names that wick.compile takes as a backend."""
    return sorted(_backends)


def list_modes():
    """The names that wick.compile takes as a mode."""
    return list(_MODES)


def list_options():
    """The names that wick.compile takes in its options."""
    return sorted(_OPTIONS)


def register_backend(name, function):
    """Lets wick.compile(…, backend=name) call `function(graph, example_inputs)` for each graph.

    The graph is a script function that takes the tensors and gives a tuple; `function` gives a function that does the same.
    """
    if not isinstance(name, str) or not callable(function):
        raise TypeError("register_backend: expected a name and a function")
    if name in ("wick", "eager"):
        raise ValueError(f"register_backend: '{name}' is a backend of Wick's")
    _backends[name] = function


def compile(
    fn_or_module=None, *, fullgraph=False, dynamic=None, backend="wick", mode="default", options=None
):
    """A function or module that computes the same, with its tensor operators in compiled graphs.

    fullgraph: a graph that ends before the function does is an error.
    dynamic: whether sizes of tensors may differ from call to call: from the second size on (None), all
    of them at once (True), or none (False).
    backend: "wick", "eager" (operator by operator), a registered name, or a function (register_backend).
    mode: "default", "reduce-overhead" or "max-autotune", which measures matrix products of new shapes on CUDA devices and
    keeps the fastest way; else they are the same.
    options: a dict with "max_entries" (in place of cache_size_limit) and "trace" (prints each entry).
    """
    again = functools.partial(
        compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options
    )
    if fn_or_module is None:
        return again
    if isinstance(fn_or_module, (staticmethod, classmethod)):
        return type(fn_or_module)(again(fn_or_module.__func__))
    if not callable(fn_or_module):
        raise TypeError(f"compile: expected a function or module, got {type(fn_or_module).__name__}")
    original = _compiled.original_of(fn_or_module)
    _check_mode(mode)
    if dynamic not in (None, True, False):
        raise TypeError(f"compile: expected dynamic to be True, False or None, got {dynamic!r}")
    given = _checked_options(options)
    observer = _print_entry if given.get("trace") else None
    region = _C._make_region(fullgraph, _function_of(backend), observer, dynamic, mode == "max-autotune")
    region.max_entries = given.get("max_entries", 0)
    if _compiled.is_module(original):
        return _compiled.module(original, region, again)
    return _compiled.function(original, region)


def _function_of(backend):
    if isinstance(backend, str):
        if backend not in _backends:
            raise ValueError(_unknown("backend", backend, list_backends()))
        return _backends[backend]
    if not callable(backend):
        raise TypeError(f"compile: expected the name of a backend or a function, got {backend!r}")
    return backend


def _check_mode(mode):
    if mode is not None and mode not in _MODES:
        raise ValueError(_unknown("mode", mode, _MODES))


def _unknown(what, name, known):
    close = difflib.get_close_matches(str(name), known, 1)
    meant = f" (did you mean {close[0]!r}?)" if close else ""
    return f"compile: there is no {what} {name!r}{meant}; there are {', '.join(known)}"


def _is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


# The value that each option takes, and a function that tells whether it is one.
_OPTIONS = {
    "max_entries": ("a positive int", _is_count),
    "trace": ("a bool", lambda value: isinstance(value, bool)),
}


def _checked_options(options):
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise TypeError(f"compile: expected a dict of options, got {type(options).__name__}")
    for name, value in options.items():
        if name not in _OPTIONS:
            raise ValueError(_unknown("option", name, list_options()))
        expected, fits = _OPTIONS[name]
        if not fits(value):
            raise TypeError(f"compile: option '{name}' is {expected}, got {value!r}")
    return options


def _print_entry(code, entry):
    print(f"{describe(code)}\n{entry['text']}", file=sys.stderr, end="")


def explain(function):
    """A function that calls this one, and returns an Explanation of the call."""
    original = _compiled.original_of(function)

    def call(*args, **kwargs):
        entries = []
        region = _C._make_region(False, None, lambda code, entry: entries.append((code, entry)))
        region.call(original, args, kwargs)
        return Explanation(entries)

    return call


def disable(function):
    """The function, which is never captured, nor what it calls."""
    function = _compiled.original_of(function)
    _C._disable_capture(function)

    @functools.wraps(function)
    def plain(*args, **kwargs):
        return _C._call_plainly(function, *args, **kwargs)

    _C._disable_capture(plain)
    return plain


def _mark(name, tensor, dims, is_open):
    if not hasattr(tensor, "shape") or not hasattr(tensor, "dim"):
        raise TypeError(f"{name}: expected a tensor, got {type(tensor).__name__}")
    dims = [dims] if isinstance(dims, int) else list(range(tensor.dim()) if dims is None else dims)
    for dim in dims:
        if not isinstance(dim, int) or not 0 <= dim < tensor.dim():
            raise IndexError(f"{name}: there is no dimension {dim!r} of {tensor.dim()}")
    _C._mark_sizes(tensor, dims, is_open)


def mark_dynamic(tensor, dims):
    """Says that these dimensions of the tensor (a number, or several) have other sizes in other calls.

    The next capture leaves them open at once.
    """
    _mark("mark_dynamic", tensor, dims, True)


def mark_static(tensor, dims=None):
    """Says that the sizes of these dimensions, or of all, are constants of a graph."""
    _mark("mark_static", tensor, dims, False)
def allow_in_graph(function):
    """The function, whose calls are put into graphs without a look at its code.

    It is called once, when a graph is captured, with tensors that have no memory; the graph holds the
    operators that it called. It must depend on its arguments alone and change nothing. If it needs more of
    a tensor than operators, the graph ends before the call.
    """
    if isinstance(function, (list, tuple)):
        return [allow_in_graph(each) for each in function]
    if not callable(function):
        raise TypeError(f"allow_in_graph: expected a function, got {type(function).__name__}")
    _C._allow_in_graph(_compiled.original_of(function))
    return function


# ---- rules for graphs ----


class Rule:
    """A change of each graph that is captured from now on, until remove()."""

    def __init__(self, number, text):
        self._number, self._text = number, text

    def remove(self):
        _C._remove_graph_rule(self._number)

    def __repr__(self):
        return self._text


def register_decomposition(operator):
    """Replaces the operator ("aten::gelu") in captured graphs by the script function that is decorated.

    The function takes what the operator takes. Its calls of the same operator stay.
    """
    if not isinstance(operator, str):
        raise TypeError(
            f"register_decomposition: expected the name of an operator, got {type(operator).__name__}"
        )

    def register(function):
        _C._add_decomposition(operator, _script("register_decomposition", function))
        return function

    return register


def unregister_decomposition(operator):
    """Lets captured graphs keep the operator."""
    if not _C._remove_decomposition(operator):
        raise ValueError(f"unregister_decomposition: {operator!r} has no decomposition")


def register_pattern(before, after):
    """Replaces each occurrence of the script function `before` in captured graphs by `after`."""
    before = _script("register_pattern", before)
    after = _script("register_pattern", after)
    number = _C._add_pattern(before, after)
    return Rule(number, f"{before.name} → {after.name}")


def reset_rules():
    """Takes all decompositions and patterns back."""
    _C._reset_graph_rules()


def _script(what, function):
    from wick import jit

    if isinstance(function, jit.ScriptFunction):
        return function
    if isinstance(function, types.FunctionType):
        return jit.script(function)
    raise TypeError(f"{what}: expected a script function, got {type(function).__name__}")


def reset():
    """Gives up all that was captured."""
    _C._reset_captures()


def is_compiling():
    """Whether this call is being captured: True in captured code."""
    return _C._is_capturing()


class _Counters:
    """Numbers of graphs, operators in them, and breaks since the process began."""

    graph_count = property(lambda self: _C._capture_counters()[0])
    op_count = property(lambda self: _C._capture_counters()[1])
    graph_break_count = property(lambda self: _C._capture_counters()[2])
    plain_count = property(lambda self: _C._capture_counters()[3])


counters = _Counters()


class _Module(types.ModuleType):
    """This module, with settings that are checked when they are set."""

    @property
    def cache_size_limit(self):
        """How many entries a code object may have in one compiled function."""
        return _C._cache_size_limit()

    @cache_size_limit.setter
    def cache_size_limit(self, limit):
        if not _is_count(limit):
            raise ValueError(f"cache_size_limit: expected a positive int, got {limit!r}")
        _C._set_cache_size_limit(limit)


sys.modules[__name__].__class__ = _Module
