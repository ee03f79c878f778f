"""Compiling unrestricted Python functions and modules: wick.compile and what belongs to it."""

import functools

from wick import _C


class BreakReason:
    """Why a graph ended, and where."""

    def __init__(self, reason, file, line):
        self.reason, self.file, self.line = reason, file, line

    def __repr__(self):
        return f"{self.file}:{self.line}: {self.reason}" if self.file else self.reason


class Explanation:
    """The graphs, guards and breaks of one call of a function."""

    def __init__(self, entries):
        self.entries = entries
        self.graphs = [e["graph"] for e in entries if e["graph"] is not None]
        self.graph_count = len(self.graphs)
        self.break_reasons = [
            BreakReason(e["reason"], e["file"], e["line"])
            for e in entries
            if not e["complete"] and not e["raises"]
        ]
        self.graph_break_count = len(self.break_reasons)
        self.op_count = sum(e["operators"] for e in entries)
        self.guards = [g for e in entries for g in e["guards"]]

    def __str__(self):
        lines = [
            f"{self.graph_count} graphs, {self.op_count} operators, "
            f"{self.graph_break_count} breaks, {len(self.guards)} guards"
        ]
        lines += [f"  break: {reason}" for reason in self.break_reasons]
        for entry in self.entries:
            lines += ["", entry["text"].rstrip()]
        return "\n".join(lines)

    __repr__ = __str__


class _Compiled:
    """A function whose calls are captured."""

    def __init__(self, function, fullgraph=False, backend=None, observer=None, dynamic=None):
        functools.update_wrapper(self, function)
        self._function = function
        self._region = _C._make_region(fullgraph, backend, observer, dynamic)

    def __call__(self, *args, **kwargs):
        return self._region.call(self._function, args, kwargs)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return functools.partial(self, instance)


# None runs a graph as a script function, "eager" operator by operator.
_backends = {"wick": None, "eager": "eager"}


def list_backends():
    """The names that wick.compile takes as a backend."""
    return sorted(_backends)


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
    """A function that computes the same, with its tensor operators in compiled graphs.

    fullgraph: a graph that ends before the function does is an error.
    dynamic: whether sizes of tensors may differ from call to call: from the second size on (None), all
    of them at once (True), or none (False).
    backend: "wick", "eager" (operator by operator), a registered name, or a function (register_backend).
    """
    if fn_or_module is None:
        return lambda function: compile(
            function,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
        )
    if not callable(fn_or_module):
        raise TypeError(f"compile: expected a function or module, got {type(fn_or_module).__name__}")
    if isinstance(backend, str):
        if backend not in _backends:
            raise ValueError(
                f"compile: there is no backend {backend!r}; there are {', '.join(list_backends())}"
            )
        backend = _backends[backend]
    elif not callable(backend):
        raise TypeError(f"compile: expected the name of a backend or a function, got {backend!r}")
    if dynamic not in (None, True, False):
        raise TypeError(f"compile: expected dynamic to be True, False or None, got {dynamic!r}")
    if mode != "default":
        raise ValueError(f"compile: there is no mode {mode!r}")
    return _Compiled(fn_or_module, fullgraph, backend, dynamic=dynamic)


def explain(function):
    """A function that calls this one, and returns an Explanation of the call."""

    def call(*args, **kwargs):
        entries = []
        _Compiled(function, observer=lambda code, entry: entries.append(entry))(*args, **kwargs)
        return Explanation(entries)

    return call


def disable(function):
    """The function, which is never captured, nor what it calls."""
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


def reset():
    """Gives up all that was captured."""
    _C._reset_captures()


def is_compiling():
    """Whether this call is being captured."""
    return _C._is_capturing()


class _Counters:
    """Numbers of graphs, operators in them, and breaks since the process began."""

    graph_count = property(lambda self: _C._capture_counters()[0])
    op_count = property(lambda self: _C._capture_counters()[1])
    graph_break_count = property(lambda self: _C._capture_counters()[2])
    plain_count = property(lambda self: _C._capture_counters()[3])


counters = _Counters()


def __getattr__(name):
    if name == "cache_size_limit":
        return _C._cache_size_limit()
    raise AttributeError(f"module 'wick.compiler' has no attribute '{name}'")
