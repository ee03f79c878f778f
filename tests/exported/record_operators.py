"""Programs of one operator each: those of PyTorch's own table of samples, in the IR for training and in core ATen."""
import dataclasses
import importlib.util
import sys
import types
import typing
import unittest

import torch
import torch.utils._pytree as pytree


@dataclasses.dataclass
class Case:
    name: str
    module: torch.nn.Module
    calls: list
    dynamic: typing.Any = None
    forms: tuple = ("training", "decomposed")
    stateful: bool = False
    tolerance: float = 1e-4

    def record(self, recorder, record, saved, plain):
        record(recorder, self)


class OneOperator(torch.nn.Module):
    """Calls a function with tensors from the arguments and the rest as constants."""

    def __init__(self, function, values, spec, tensors, signless):
        super().__init__()
        self.signless = signless
        self.function, self.values, self.spec, self.tensors = function, values, spec, tensors

    def forward(self, *given):
        values = list(self.values)
        for i, tensor in zip(self.tensors, given):
            values[i] = tensor
        args, kwargs = pytree.tree_unflatten(values, self.spec)
        out = self.function(*args, **kwargs)
        if self.signless:
            out = tuple(part.abs() for part in (out if isinstance(out, (list, tuple)) else (out,)))
        return tuple(out) if isinstance(out, (list, tuple)) else out


DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
# Vectors whose signs libraries choose.
SIGNLESS = ("eigh", "svd", "pca_lowrank")
RANDOM = ("rand", "normal", "bernoulli", "multinomial", "dropout", "uniform", "exponential", "cauchy", "geometric", "poisson", "rrelu", "empty")


def samples(op, dtype):
    found = []
    try:
        for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
            values, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
            tensors = [i for i, v in enumerate(values) if isinstance(v, torch.Tensor)]
            if not tensors or sum(values[i].numel() for i in tensors) > 600 or any(values[i].layout != torch.strided for i in tensors):
                continue
            if any(values[i].numel() == 0 for i in tensors) or sample.kwargs.get("dropout_p"):
                continue
            found.append((values, spec, tensors))
            if len(found) > 12:
                break
    except Exception:
        pass
    # The simplest and one of the last, which have more arguments.
    return [found[0], found[-1]] if len(found) > 1 else found


def table_of_samples():
    """PyTorch's table; a module that only its own tests need may be missing."""
    if importlib.util.find_spec("expecttest") is None:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db
    return op_db


def operator_cases():
    seen = set()
    for op in table_of_samples():
        name = op.formatted_name if hasattr(op, "formatted_name") else op.name
        if any(part in name for part in RANDOM) or name.startswith(("_refs", "sparse", "to_sparse", "masked_", "signal_")):
            continue
        for dtype in DTYPES:
            if dtype in op.supported_dtypes("cpu"):
                break
        else:
            continue
        signless = any(part in name for part in SIGNLESS)
        for index, (values, spec, tensors) in enumerate(samples(op, dtype)):
            if signless and index > 0:
                continue  # with vectors that libraries choose
            key = f"op_{name.replace('.', '_')}_{index}"
            if key in seen:
                continue
            seen.add(key)
            module = OneOperator(op.op, values, spec, tensors, signless)
            args = tuple(values[i].detach().clone() for i in tensors)
            yield Case(key, module, [(args, {})], tolerance=1e-3 if signless else 1e-4)
