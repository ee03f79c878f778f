"""The same as classify.cpp through the C interface: python3 classify.py LIBRARY MODEL."""
import ctypes
import sys

wick = ctypes.CDLL(sys.argv[1])


class Error(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("status", ctypes.c_int), ("message", ctypes.c_char_p),
                ("class_name", ctypes.c_char_p), ("file", ctypes.c_char_p), ("line", ctypes.c_size_t), ("column", ctypes.c_size_t)]


class Tensor(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("dtype", ctypes.c_int), ("dims", ctypes.c_size_t),
                ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p), ("contiguous", ctypes.c_int)]


wick.wick_last_error.restype = ctypes.POINTER(Error)


def check(status):
    if status:
        raise RuntimeError(wick.wick_last_error().contents.message.decode())


pixels = (ctypes.c_float * (28 * 28))()
for y in range(5, 23):
    for x in range(12, 15):
        pixels[y * 28 + x] = 1

FLOAT32 = 6
model, image, scores, row = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), Tensor(ctypes.sizeof(Tensor))
check(wick.wick_module_load(sys.argv[2].encode(), None, ctypes.byref(model)))
check(wick.wick_module_set_training(model, 0))
sizes = (ctypes.c_int64 * 4)(1, 1, 28, 28)
check(wick.wick_value_from_data(FLOAT32, sizes, ctypes.c_size_t(4), pixels,
                                ctypes.c_size_t(ctypes.sizeof(pixels)), ctypes.byref(image)))
check(wick.wick_module_call(model, None, ctypes.byref(image), ctypes.c_size_t(1), None, None,
                            ctypes.byref(scores)))
check(wick.wick_value_to_tensor(scores, ctypes.byref(row)))
numbers = ctypes.cast(row.data, ctypes.POINTER(ctypes.c_float))[:10]
print(numbers.index(max(numbers)))
for value in (scores, image):
    wick.wick_value_free(value)
wick.wick_module_free(model)
