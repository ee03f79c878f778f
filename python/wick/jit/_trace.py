"""torch.jit.trace: programs recorded from what Python code does with example inputs."""

import inspect
import threading
import types
import warnings

from wick import _C
from wick.jit._check import check_recording
from wick.jit._numbers import FollowedFloat, FollowedInt, TracerWarning

_OUTPUTS = (
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced "
    "functions"
)


def is_tracing():
    return _C._is_tracing()


def _argument_names(function, count):
    """Names for the inputs: those of the parameters as far as there are any."""
    names = []
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        parameters = ()
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    names += [f"input_{i}" for i in range(count)]
    return names[:count]


_MOST_TENSORS = 100000  # among inputs, each as often as it is there


def _fresh(value, seen):
    """The input with each tensor an object of its own, so that no two are one for the trace."""
    if isinstance(value, _C.Tensor):
        if len(seen) >= _MOST_TENSORS:
            raise RuntimeError(f"the inputs of a trace hold more than {_MOST_TENSORS} tensors")
        if id(value) in seen:
            value = value.view_as(value)
        seen[id(value)] = value
        return value
    if isinstance(value, dict):
        return type(value)((k, _fresh(v, seen)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_fresh(v, seen) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_fresh(v, seen) for v in value)
    return value


def _output(value, strict, seen=None):
    """The result as a recording takes it. RuntimeError for what it cannot hold.

    `seen` are the containers that are known, by their identity.
    """
    seen = {} if seen is None else seen
    if id(value) not in seen:
        seen[id(value)] = value, _plain_output(value, strict, seen)
    return seen[id(value)][1]


def _plain_output(value, strict, seen):
    if isinstance(value, _C.Tensor):
        return value
    if isinstance(value, (FollowedInt, FollowedFloat)):
        from wick import torch

        return torch.ops.prim.NumToTensor(value)
    if isinstance(value, (list, dict)) and strict:
        kind = "list" if isinstance(value, list) else "dict"
        instead = {"list": "a `tuple` instead", "dict": "a `NamedTuple` instead"}[kind]
        raise RuntimeError(
            f"Encountering a {kind} at the output of the tracer might cause the trace to be "
            "incorrect, this is only valid if the container structure does not change based on the "
            f"module's inputs. Consider using a constant container instead (e.g. for `{kind}`, use "
            f"{instead}). If you absolutely need this and know the side effects, pass strict=False "
            "to trace() to allow this behavior."
        )
    if isinstance(value, dict):
        return {k: _output(v, strict, seen) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(_output(v, strict, seen) for v in value)
    if isinstance(value, list):
        return [_output(v, strict, seen) for v in value]
    raise RuntimeError(f"{_OUTPUTS}, not {type(value).__name__}")


_current = threading.local()  # the recording, and the programs' modules by those of Python


def _call_module(module, args, kwargs):
    """Calls a module's forward. Within a trace what it does becomes a method of the submodule."""
    recording, programs = getattr(_current, "trace", (None, None))
    known = programs.get(id(module)) if recording is not None and is_tracing() else None
    if known is None:
        return module.forward(*args, **kwargs)
    given = list(zip(_argument_names(module.forward, len(args)), args)) + list(kwargs.items())
    recording.enter_module(known[1]._c, given)
    result = None
    try:
        result = module.forward(*args, **kwargs)
    finally:
        recording.leave_module(result)
    return result


def record(function, inputs, names, module, strict, programs=None):
    """Calls the function once. The recording, without a trace of it where it fails.

    `programs` are the modules of the program, by the identity of Python's, when they get methods.
    """
    if _C._is_tracing():
        raise RuntimeError("Tracing can't be nested")
    recording = _C._Recording()
    if module is not None:
        recording.add_module(module)
    inputs = _fresh(tuple(inputs), {})
    for name, value in zip(names, inputs):
        recording.add_input(name, value)
    if programs is not None:
        from wick.nn import module as modules

        modules._observe_call = _call_module
        _current.trace = recording, programs
    recording.start()
    try:
        result = _output(function(*inputs), strict)
        recording.finish(result)
    finally:
        recording.stop()
        _current.trace = None, None
    return recording


def _as_inputs(example_inputs):
    if isinstance(example_inputs, (_C.Tensor, dict)):
        return (example_inputs,)
    return tuple(example_inputs)


def _as_checks(check_inputs, inputs):
    return [inputs] if check_inputs is None else [_as_inputs(each) for each in check_inputs]


def trace(
    func,
    example_inputs,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
):
    """Runs a function or module once and makes a program of the operators that it called.

    Branches, loops and numbers are those of the example inputs; sizes are followed. With
    `check_trace` it is run again, with `check_inputs` where they are given, and compared.
    """
    from wick import jit

    if isinstance(func, (jit.ScriptFunction, jit.ScriptModule)):
        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the "
            "object as is.",
            stacklevel=2,
        )
        return func
    owner = getattr(func, "__self__", None)
    if isinstance(owner, jit._nn_module()) and func.__name__ == "forward":
        func = owner
    inputs = _as_inputs(example_inputs)
    if isinstance(func, jit._nn_module()):
        checks = None if check_inputs is None else [
            {"forward": _as_inputs(each)} for each in check_inputs
        ]
        return trace_module(
            func, {"forward": inputs}, None, check_trace, checks, check_tolerance, strict
        )
    if not callable(func):
        raise TypeError(f"trace: a function or module is expected, not {type(func).__name__}")
    names = _argument_names(func, len(inputs))
    recording = record(func, inputs, names, None, strict)
    name = jit._qualified(func) if isinstance(func, types.FunctionType) else "__torch__.traced"
    traced = recording.function(name.replace("<lambda>", "_lambda"))
    if check_trace:
        for each in _as_checks(check_inputs, inputs):
            check_recording(
                recording,
                lambda given: record(func, given, names, None, strict),
                func, traced, each, check_tolerance,
            )
    return traced


def trace_module(
    mod,
    inputs,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
):
    """A module of a program with the methods that `inputs` names, each recorded from its inputs."""
    from wick import jit

    if not isinstance(mod, jit._nn_module()):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    if _C._is_tracing():
        raise RuntimeError("Tracing can't be nested")
    programs = {}
    made = jit._declare_module(mod, programs)
    del programs[id(mod)]
    for method, example in inputs.items():
        example = _as_inputs(example)
        function = mod if method == "forward" else getattr(mod, method)
        names = _argument_names(getattr(mod, method), len(example))

        def again(given, function=function, names=names):
            return record(function, given, names, made._c, strict, programs)

        recording = again(example)
        recording.method(made, method)
        if not check_trace:
            continue
        if check_inputs is None:
            checks = [example]
        else:
            checks = [_as_inputs(each[method]) for each in check_inputs if method in each]
        traced = made if method == "forward" else getattr(made, method)
        for each in checks:
            check_recording(recording, again, function, traced, each, check_tolerance)
    return made


def script_if_tracing(function):
    """A function that is compiled when a trace first calls it, and stays Python's otherwise."""
    import functools

    @functools.wraps(function)
    def call(*args, **kwargs):
        from wick import jit

        return (jit.script(function) if is_tracing() else function)(*args, **kwargs)

    return call
