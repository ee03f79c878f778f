"""Memory shared with numpy and other libraries."""

import ctypes
import gc
import re
import sys
import unittest

import numpy as np
from testing import Case, needs_pytorch
from wick import torch

from datetime import datetime_CAPI as datetime_capsule  # a capsule of something else

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool",
          "complex64", "complex128"]


class Numpy(Case):
    def test_no_copies(self):
        for name in DTYPES:
            array = np.ones((2, 3), dtype=name)
            x = torch.from_numpy(array)
            self.assertEqual(repr(x.dtype), "torch." + name)
            self.assertTrue(np.shares_memory(x.numpy(), array))
            self.assertTrue(np.shares_memory(np.asarray(x), array))
        x[0, 0] = 0
        self.assertEqual(array[0, 0], 0)

    def test_strides(self):
        array = np.arange(24).reshape(2, 3, 4)
        for view in (array.T, array[:, ::2], array[:, 1], array[:0], array[0, 0, 0:1]):
            self.assert_same(torch.from_numpy(view), view)
            self.assert_same(torch.from_numpy(view).T.contiguous(), view.T)
        with self.assertRaisesRegex(ValueError, "negative"):
            torch.from_numpy(array[::-1])

    def test_refusals(self):
        for array in (np.ones(2, "u2"), np.array(["a"]), np.ones(2, ">f4"),
                      np.zeros(2, [("a", "f4"), ("b", "i4")])):
            with self.assertRaises((TypeError, ValueError)):
                torch.from_numpy(array)
        with self.assertRaises(TypeError):
            torch.from_numpy([1])
        with self.assertRaisesRegex(RuntimeError, "requires grad"):
            torch.ones(1, requires_grad=True).numpy()
        with self.assertRaisesRegex(RuntimeError, "requires grad"):
            np.asarray(torch.ones(1, requires_grad=True))
        with self.assertRaises(TypeError):
            torch.ones(1, dtype=torch.bfloat16).numpy()

    def test_messages(self):
        x = torch.ones(2, 3)
        table = np.zeros(2, [("a", "f4"), ("b", "i2")])
        for wrong, error, message in [
            (lambda: torch.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
            (lambda: torch.from_numpy(np.ones(2, "u2")), TypeError,
             "no tensor has elements of the format 'H' of 2 bytes"),
            (lambda: torch.from_numpy(table["a"]), ValueError,
             "strides must be multiples of an element's size"),
            (lambda: torch.ones(1, dtype=torch.bfloat16).numpy(), TypeError,
             "tensors of bfloat16 have no form in numpy"),
            (lambda: torch.ones(1, device="meta").numpy(), TypeError,
             "only dense tensors in memory of the CPU"),
            (lambda: torch.frombuffer(b"abcd", dtype=torch.qint8), TypeError,
             "frombuffer: expected a dtype of dense tensors, got qint8"),
            (lambda: torch.frombuffer(b"abcd", offset=4), ValueError,
             "offset (4 bytes) must be non-negative and no greater than buffer length (4 bytes)"),
            (lambda: torch.from_dlpack(3), TypeError,
             "an object with __dlpack__ or a capsule is expected, not int"),
            (lambda: torch.from_dlpack(datetime_capsule), RuntimeError, "an invalid capsule"),
            (lambda: x.storage_that_is_not_there, AttributeError, "storage_that_is_not_there"),
        ]:
            with self.subTest(message), self.assertRaisesRegex(error, re.escape(message)):
                wrong()

    def test_memory_that_must_not_be_written(self):
        array = np.ones(2)
        array.flags.writeable = False
        x = torch.from_numpy(array)
        self.assertEqual((x + 1).tolist(), [2, 2])
        with self.assertRaises(RuntimeError):
            x += 1
        self.assertFalse(x.numpy().flags.writeable)

    def test_owners(self):
        x = torch.from_numpy(np.arange(1000))
        gc.collect()
        self.assertEqual(x.sum().item(), 499500)
        array = torch.arange(1000).numpy()
        gc.collect()
        self.assertEqual(array.sum(), 499500)
        held = np.ones(3)
        count = sys.getrefcount(held)
        x = torch.from_numpy(held)
        del x
        self.assertEqual(sys.getrefcount(held), count)

    def test_buffers(self):
        data = bytearray(b"\x01\x00\x00\x00\x02\x00\x00\x00")
        x = torch.frombuffer(data, dtype=torch.int32)
        x[0] = 7
        self.assertEqual((x.tolist(), data[0]), ([7, 2], 7))
        with self.assertRaisesRegex(ValueError, "the buffer holds 2 elements, expected 3"):
            torch.frombuffer(data, dtype=torch.int32, count=3)
        with self.assertRaisesRegex(ValueError, "has 7 bytes behind the offset, expected a multiple "
                                                "of the 4 of an element"):
            torch.frombuffer(data, dtype=torch.int32, offset=1)
        with self.assertRaises(ValueError):
            torch.frombuffer(data, dtype=torch.int32, offset=-1)
        constant = torch.frombuffer(b"\x01\x02", dtype=torch.uint8)
        with self.assertRaises(RuntimeError):
            constant.add_(1)
        with self.assertRaisesRegex(TypeError, "not writable"):
            (ctypes.c_char * 2).from_buffer(constant)
        self.assertEqual(memoryview(torch.ones(2, 3)).shape, (2, 3))


class DLPack(Case):
    def test_numpy(self):
        x = torch.arange(6.0).view(2, 3)
        array = np.from_dlpack(x)
        self.assertTrue(np.shares_memory(array, x.numpy()))
        self.assert_same(torch.from_dlpack(np.arange(3)), np.arange(3))

    def test_versions(self):
        x = torch.arange(3)
        self.assertIn('"dltensor"', repr(x.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(x.__dlpack__(max_version=(1, 0))))
        for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 1))):
            y = torch.from_dlpack(capsule)
            y[0] = 9
            self.assertEqual(x[0].item(), 9)
            with self.assertRaisesRegex(RuntimeError, "only once"):
                torch.from_dlpack(capsule)
        self.assertEqual(x.__dlpack_device__(), (1, 0))

    def test_refusals(self):
        with self.assertRaisesRegex(BufferError, "Can't export tensors that require gradient"):
            torch.ones(1, requires_grad=True).__dlpack__()
        with self.assertRaisesRegex(BufferError, "device type 1, and cannot be given to type 2"):
            torch.ones(2).__dlpack__(dl_device=(2, 0))
        with self.assertRaisesRegex(BufferError, "only memory of the CPU can be shared"):
            torch.ones(2, device="meta").__dlpack_device__()
        with self.assertRaisesRegex(TypeError, "on the CPU, got one on meta"):
            torch.ones(2, device="meta").__dlpack__()

        class NoCapsule:
            def __dlpack__(self, **kwargs):
                return 3

        with self.assertRaisesRegex(TypeError, "expected a capsule from __dlpack__, got int"):
            torch.from_dlpack(NoCapsule())
        for foreign in (object(), 1, None):
            with self.assertRaises(TypeError):
                torch.from_dlpack(foreign)

    def test_capsules_that_nobody_takes(self):
        x = torch.ones(3)
        for _ in range(100):
            x.__dlpack__()
            x.__dlpack__(max_version=(1, 0))

    @needs_pytorch
    def test_pytorch(self):
        import torch as reference

        for name in DTYPES[:8]:
            theirs = reference.ones(2, 3).to(getattr(reference, name)).T
            ours = torch.from_dlpack(theirs)
            self.assertEqual(ours.data_ptr(), theirs.data_ptr())
            self.assertEqual(ours.stride(), theirs.stride())
            ours[0, 0] = 0
            self.assertEqual(theirs[0, 0].item(), 0)
            back = reference.from_dlpack(ours)
            self.assertEqual(back.data_ptr(), theirs.data_ptr())
        capsule = reference.utils.dlpack.to_dlpack(reference.ones(2))
        torch.from_dlpack(capsule)
        with self.assertRaises(RuntimeError):
            torch.from_dlpack(capsule)
        ours = torch.arange(4.0)
        theirs = reference.utils.dlpack.from_dlpack(torch.to_dlpack(ours))
        del ours
        gc.collect()
        self.assertEqual(theirs.sum().item(), 6)


if __name__ == "__main__":
    unittest.main()
