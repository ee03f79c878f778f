"""What the tests share."""

import importlib.util
import threading
import time
import unittest

import numpy as np

HAS_PYTORCH = importlib.util.find_spec("torch") is not None
needs_pytorch = unittest.skipUnless(HAS_PYTORCH, "PyTorch is not installed")


def as_array(value):
    """A tensor of Wick's or PyTorch's, or a number, as numpy's."""
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "numpy"):
        return value.numpy()
    return np.asarray(value)


def ticks_while(work):
    """How often another thread of Python's ran while this one works: once a millisecond, if it may."""
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(None)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = len(ticks)
    try:
        work()
        return len(ticks) - before
    finally:
        stop.set()
        thread.join()


class Case(unittest.TestCase):
    def assert_same(self, found, expected, tolerance=0):
        """The same numbers, shapes and dtypes."""
        if isinstance(expected, (tuple, list)):
            self.assertEqual(len(found), len(expected))
            for each, other in zip(found, expected):
                self.assert_same(each, other, tolerance)
            return
        found, expected = as_array(found), as_array(expected)
        self.assertEqual(found.dtype, expected.dtype)
        self.assertEqual(found.shape, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
