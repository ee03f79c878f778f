#!/usr/bin/python3
"""Writes the files in data/ with PyTorch: run it from its folder after changing it."""
import collections
import pickle
import numpy
import torch

TENSOR = torch.arange(6, dtype=torch.float32).reshape(2, 3)
VALUE = {
    "none": None,
    "numbers": [0, 255, 256, 65536, -1, 1 << 40, -(1 << 63), 2.5, True, 1 - 2j],
    "text": "z\u00fcrich",
    "nested": ((), [], {}, (1,), [[1], []], {1: 2.0}),
    "tensor": TENSOR,
    "view": TENSOR.t()[1:],
    "parameter": torch.nn.Parameter(torch.ones(2, dtype=torch.float64)),
    "half": torch.tensor([1.5, -2.0], dtype=torch.float16),
    "empty": torch.empty(0, 3),
    "dtype": torch.int32,
    "size": torch.Size([2, 3]),
    "device": torch.device("cuda:1"),
    "ordered": collections.OrderedDict(a=1, b=2),
}
torch.save(VALUE, "data/value.pt")
torch.save(VALUE, "data/value_legacy.pt", _use_new_zipfile_serialization=False)
torch.save(VALUE, "data/value_protocol4.pt", pickle_protocol=4)


class OnXla:
    """Is pickled as PyTorch pickles a tensor of XLA."""

    def __init__(self, array, dtype, requires_grad=False):
        self.parts = (array, dtype, "xla:0", requires_grad)

    def __reduce__(self):
        return torch._utils._rebuild_device_tensor_from_numpy, self.parts


XLA = {
    "weight": OnXla(TENSOR.numpy(), torch.float32, True),
    "columns": OnXla(numpy.asfortranarray(TENSOR.numpy()), torch.float32),
    "bfloat16": OnXla(numpy.array([1.5, -2], "f4"), torch.bfloat16),
    "bytes": OnXla(numpy.arange(256, dtype="u1"), torch.uint8),
    "flags": OnXla(numpy.array([True, False]), torch.bool),
    "number": OnXla(numpy.array(7), torch.int64),
    "complex": OnXla(numpy.array([1 - 2j]), torch.complex128),
    "empty": OnXla(numpy.zeros((0, 3), "f2"), torch.float16),
}
torch.save(XLA, "data/xla.pt")
torch.save(XLA, "data/xla_protocol4.pt", pickle_protocol=4)
torch.save({"array": TENSOR.numpy()}, "data/array.pt")
torch.save(torch.nn.Linear(2, 2).state_dict(), "data/state_dict.pt")
torch.save({"t": TENSOR, "l": [1, 2]}, "data/small.pt")
