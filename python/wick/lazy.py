"""Tensors of the device "lazy" are computed when a value is looked at, or by `mark_step()`.

Until then operators on them are recorded; the recorded graph is compiled once and found again in
the following steps.
"""

from wick import _C

__all__ = [
    "set_device",
    "device",
    "mark_step",
    "freeze_step",
    "thaw_step",
    "counters",
    "reset_counters",
    "report",
    "dump",
    "set_cache_size",
    "set_rolling",
]


def set_device(device):
    """Where the data of lazy tensors are and graphs run: "cpu" at first, or "cuda", "cuda:1".

    Of the whole process, and to be called before there are lazy tensors: RuntimeError when one has
    its data elsewhere, or when there is no such device.
    """
    if not isinstance(device, (str, _C.device)):
        raise TypeError(f"set_device: expected a device or its name, got {type(device).__name__}")
    _C._lazy_set_device(str(device))


def device():
    """The device that `set_device()` chose."""
    return _C.device(_C._lazy_device())


def mark_step():
    """Computes all lazy tensors of this thread. What a step of a training ends with."""
    _C._lazy_mark_step()


def freeze_step():
    """Promises that the steps of this thread are all the same computation from here on.

    The same calls with the same constants: data, sizes and learning rates may differ. To be called
    between steps, behind the one that makes an optimizer's state. The next step is recorded as
    ever; those behind it are compared with it call by call, and nothing is built. The first call
    that differs raises RuntimeError and ends it. Nothing is lost: the call may be made again.
    """
    _C._lazy_freeze_step()


def thaw_step():
    """Takes the promise of `freeze_step()` back."""
    _C._lazy_thaw_step()


def counters():
    """What happened since the process began or the last reset, as a dict.

    recorded: calls that became steps of a graph; evaluations: graphs that ran; compiled, found,
    followed: of these, new ones, those of the cache and those of frozen steps; rolled: repetitions
    in graphs that ran as loops; causes: what asked for values, by name; immediate: operators that
    ran at once because they cannot be recorded, by name.
    """
    return _C._lazy_counters()


def reset_counters():
    """Counts from zero on."""
    _C._lazy_reset_counters()


def report():
    """The counters as text for people, with the lines that caused what they count."""
    return _C._lazy_report()


def dump(dot=False):
    """What this thread has recorded and not run, as text; with `dot` what of it is needed, for Graphviz."""
    return _C._lazy_dump_dot() if dot else _C._lazy_dump()


def set_cache_size(graphs):
    """How many compiled graphs are kept, at least one. 512 at first."""
    if isinstance(graphs, bool) or not isinstance(graphs, int):
        raise TypeError(f"set_cache_size: expected an int, got {type(graphs).__name__}")
    if graphs < 1:
        raise ValueError("set_cache_size: expected at least one graph")
    _C._lazy_set_cache_size(min(graphs, 2**31))


def set_rolling(on):
    """Whether what a step repeats often becomes a loop, as at first, so that it is the same program for
    any number of repetitions."""
    if not isinstance(on, bool):
        raise TypeError(f"set_rolling: expected a bool, got {type(on).__name__}")
    _C._lazy_set_rolling(on)
