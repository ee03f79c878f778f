"""Tests of wick.compile for Wick's tensors and for PyTorch's."""

import unittest

from wick import torch as own

try:
    import torch as pytorch
except ImportError:
    pytorch = None


def in_both(case):
    """Makes two classes of a class of tests, whose `torch` is the namespace of one library each."""
    made = []
    for name, torch in (("OnWick", own), ("OnPyTorch", pytorch)):
        kind = type(case.__name__ + name, (case, unittest.TestCase), {"torch": torch})
        kind.__module__ = case.__module__
        if torch is None:
            kind = unittest.skip("needs Debian's python3-torch")(kind)
        made.append(kind)
    return made


def tensors_in(value):
    """Yields the tensors in a result, in tuples and lists too."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_in(each)
