"""Whether a recording stands for its function: recorded again, and run with the same inputs."""

import warnings

from wick import _C
from wick.jit._numbers import FollowedFloat, FollowedInt, TracerWarning


class TracingCheckError(Exception):
    """Two recordings of one function differ."""


def _copy(value):
    if isinstance(value, _C.Tensor):
        copy = value.detach().clone()
        return copy.requires_grad_() if value.requires_grad else copy
    if isinstance(value, dict):
        return type(value)((k, _copy(v)) for k, v in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_copy, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copy, value))
    return value


def _flat(value):
    if isinstance(value, dict):
        return [t for v in value.values() for t in _flat(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _flat(v)]
    if isinstance(value, (FollowedInt, FollowedFloat, int, float)):
        return [_C.tensor(value)]
    return [value]


def _first_difference(one, other):
    """What to say about the first node that differs; None when all are equal."""
    one, other = one.nodes(), other.nodes()
    for (text, place, _), (found, again, _) in zip(one, other):
        if text != found:
            return (
                "First diverging operator:\n"
                f"  first run:  {text.strip()}\n{_indented(place)}"
                f"  second run: {found.strip()}\n{_indented(again)}"
            )
    if len(one) != len(other):
        longer, which = (one, "first") if len(one) > len(other) else (other, "second")
        text, place, _ = longer[min(len(one), len(other))]
        return (
            f"The {which} run goes on with:\n  {text.strip()}\n{_indented(place)}"
        )
    return None


def _indented(text):
    return "".join(f"    {line}\n" for line in text.splitlines())


def _equal(found, expected, tolerance):
    """None, or in which way the tensors differ."""
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return (
            f"{found.dtype} of shape {list(found.shape)} instead of {expected.dtype} of shape "
            f"{list(expected.shape)}"
        )
    found, expected = found.detach(), expected.detach()
    if found.is_quantized:
        found, expected = found.dequantize(), expected.dequantize()
    if found.layout is not _C.strided:
        found, expected = found.to_dense(), expected.to_dense()
    if found.numel() == 0:
        return None
    from wick import torch

    wide = torch.complex128 if found.dtype.is_complex else torch.float64
    found, expected = found.to(wide), expected.to(wide)
    if torch.allclose(found, expected, tolerance, tolerance, True):
        return None
    different = ~torch.isclose(found, expected, tolerance, tolerance, True)
    return f"{int(different.sum())} of {found.numel()} numbers differ"


def _compare(results, other, what, tolerance):
    """True when they agree; warns of the first that does not."""
    results, other = _flat(results), _flat(other)
    if len(results) != len(other):
        warnings.warn(
            f"{what}: {len(results)} results instead of {len(other)}", TracerWarning, stacklevel=5
        )
        return False
    for i, (found, expected) in enumerate(zip(results, other)):
        difference = _equal(found, expected, tolerance)
        if difference:
            warnings.warn(
                f"Output nr {i + 1}. of the traced function does not match the corresponding "
                f"output of the {what}. Detailed error:\n{difference}",
                TracerWarning,
                stacklevel=5,
            )
            return False
    return True


def check_recording(recording, again, function, traced, inputs, tolerance):
    """TracingCheckError when another recording differs, warnings when results do."""
    with warnings.catch_warnings():
        # Said once already.
        warnings.simplefilter("ignore", TracerWarning)
        second = again(_copy(inputs))
    random = [text.strip() for text, _, random in recording.nodes() if random]
    difference = _first_difference(recording, second)
    constants = list(zip(recording.constants(), second.constants()))
    if difference:
        raise TracingCheckError(
            "Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\n"
            + difference
        )
    for number, (one, other) in enumerate(constants):
        wrong = _equal(one, other, tolerance)
        if wrong and not random:
            raise TracingCheckError(
                "Tracing failed sanity checks!\nERROR: Tensor-valued constant nodes differed in "
                f"value across invocations: constant {number}: {wrong}"
            )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        expected = function(*_copy(inputs))
        found = traced(*_copy(inputs))
        repeated = None if random else function(*_copy(inputs))
    if random:
        warnings.warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? "
            "Nodes:\n\t"
            + "\n\t".join(random),
            TracerWarning,
            stacklevel=4,
        )
        return
    if _compare(repeated, expected, "Python function when it is run again", tolerance):
        _compare(found, expected, "Python function", tolerance)
