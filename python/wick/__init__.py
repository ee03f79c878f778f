"""Wick, an engine for TorchScript.

`wick.torch` is the namespace that programs see: `from wick import torch` runs ordinary tensor code
with it. What is not imported here (`wick.jit`, `wick.nn`, `wick.optim`, …) is imported when it is
first used.
"""

import importlib as _importlib

from wick import _C
from wick._C import (
    CompileError,
    Generator,
    InternalError,
    LoadError,
    Size,
    Tensor,
    device,
    dtype,
    layout,
    memory_format,
)
from wick import _tensor  # the members of Tensor that are written in Python
from wick import torch

__version__ = _C.__version__

_SUBMODULES = {
    "aot", "autograd", "compiler", "distributed", "export", "files", "jit", "lazy", "nn", "optim", "utils",
}


def __getattr__(name):
    if name == "compile":
        return _importlib.import_module("wick.compiler").compile
    if name in _SUBMODULES:
        return _importlib.import_module("wick." + name)
    # Everything of the namespace is found here as well: wick.zeros, wick.float32.
    if name.startswith("__"):
        raise AttributeError(f"module 'wick' has no attribute '{name}'")
    return getattr(torch, name)


def __dir__():
    return sorted(set(globals()) | _SUBMODULES | set(dir(torch)))
