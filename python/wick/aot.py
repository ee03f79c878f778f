"""Models that `torchscript-cli build --emit library` compiled ahead of time.

    model = wick.aot.load("digits/libdigits.so")
    scores = model(image)
"""

import ctypes
import math
import os
import re

from wick import Tensor, torch

__all__ = ["load", "Model", "Signature", "Slot"]

_VERSION = 6
_MAX_RANK = 8
_COMPUTED = -1000  # a size that those of the inputs decide
_OK, _ARGUMENT = 0, 1
_DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    9: torch.complex64,
    10: torch.complex128,
    11: torch.bool,
    15: torch.bfloat16,
}
_NUMBERS = {dtype: number for number, dtype in _DTYPES.items()}


# As wick_aot.h has them.
class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * _MAX_RANK),
    ]


class _Slot(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * _MAX_RANK),
        ("decided", ctypes.c_uint32),
    ]


class _Symbol(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("minimum", ctypes.c_int64),
        ("maximum", ctypes.c_int64),
        ("step", ctypes.c_int64),
    ]


class _Signature(ctypes.Structure):
    _fields_ = [
        ("method", ctypes.c_char_p),
        ("inputs", ctypes.POINTER(_Slot)),
        ("outputs", ctypes.POINTER(_Slot)),
        ("num_inputs", ctypes.c_int32),
        ("num_outputs", ctypes.c_int32),
        ("symbols", ctypes.POINTER(_Symbol)),
        ("num_symbols", ctypes.c_int32),
        ("shape", ctypes.c_void_p),
    ]


class _Model(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32),
        ("name", ctypes.c_char_p),
        ("fingerprint", ctypes.c_uint64),
        ("weights_bytes", ctypes.c_uint64),
        ("memory_bytes", ctypes.c_uint64),
        ("signatures", ctypes.POINTER(_Signature)),
        ("num_signatures", ctypes.c_int32),
        ("embedded", ctypes.c_void_p),
        ("library", ctypes.c_void_p),
        ("primitives", ctypes.c_void_p),
        ("num_primitives", ctypes.c_int32),
        ("cuda", ctypes.c_void_p),
        ("draws", ctypes.c_int32),
    ]


class _State(ctypes.Structure):
    _fields_ = [
        ("model", ctypes.POINTER(_Model)),
        ("weights", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("mapping", ctypes.c_void_p),
        ("mapping_bytes", ctypes.c_size_t),
        ("library", ctypes.c_void_p),
        ("generator", ctypes.c_void_p),
        ("error", ctypes.c_char * 512),
    ]


class Slot:
    """What an argument or a result is called, and its dtype and sizes.

    Sizes that a call may choose are names; None are those of results that follow from them. Those of results
    that elements of tensors decide are ranges from 0 to the largest one, or None too.
    """

    def __init__(self, slot, names):
        self.name = slot.name.decode()
        self.dtype = _DTYPES[slot.dtype]
        self.sizes = tuple(
            None
            if size == _COMPUTED
            else names[-1 - size]
            if size < 0
            else range(size + 1)
            if slot.decided >> i & 1
            else size
            for i, size in enumerate(slot.sizes[: slot.rank])
        )

    def __repr__(self):
        sizes = ", ".join(
            "?" if size is None else f"0..{size[-1]}" if isinstance(size, range) else str(size)
            for size in self.sizes
        )
        return f"{self.name}: {self.dtype}[{sizes}]"


class Signature:
    """A method, for arguments of one kind.

    `sizes` are the sizes that a call may choose: ranges by name.
    """

    def __init__(self, signature):
        self.method = signature.method.decode()
        symbols = [signature.symbols[i] for i in range(signature.num_symbols)]
        self.sizes = {s.name.decode(): range(s.minimum, s.maximum + 1, s.step) for s in symbols}
        names = list(self.sizes)
        self.inputs = [Slot(signature.inputs[i], names) for i in range(signature.num_inputs)]
        self.outputs = [Slot(signature.outputs[i], names) for i in range(signature.num_outputs)]

    def __repr__(self):
        inputs = ", ".join(map(repr, self.inputs))
        return f"{self.method}({inputs}) -> {', '.join(map(repr, self.outputs))}"


def _described(tensor):
    if tensor.dim() > _MAX_RANK:
        raise ValueError(f"expected a tensor of at most {_MAX_RANK} dimensions, got {tensor.dim()}")
    if tensor.dtype not in _NUMBERS:
        raise ValueError(f"compiled models take no tensors of {tensor.dtype}")
    sizes = (ctypes.c_int64 * _MAX_RANK)(*tensor.shape)
    return _Tensor(tensor.data_ptr(), _NUMBERS[tensor.dtype], tensor.dim(), sizes)


class Model:
    """A compiled model. Threads may call it at the same time.

    A call of the model is one of its method `forward`; the others are attributes. A model that was built for CUDA takes
    tensors of the CPU, and of the device that it is on, where results are then.
    """

    def __init__(self, library, name, weights):
        self._free = None
        self._library = ctypes.CDLL(library)
        try:
            about = getattr(self._library, name + "_model")
        except AttributeError:
            raise ValueError(f"{library} holds no model '{name}'") from None
        about.restype = ctypes.POINTER(_Model)
        model = about().contents
        if model.version != _VERSION:
            raise ValueError(
                f"{library} was built for version {model.version} of the runtime, "
                f"expected {_VERSION}"
            )
        self.name = name
        self.signatures = [Signature(model.signatures[i]) for i in range(model.num_signatures)]
        self._takes_cuda = bool(model.cuda)
        self._weights = None if weights is None else os.fsencode(weights)
        self._states = []  # that no call uses
        self._seed = None
        if model.draws:
            self._seed_state = getattr(self._library, name + "_seed")
            self._seed_state.argtypes = [ctypes.POINTER(_State), ctypes.c_uint64]
            self._seed_state.restype = None
        else:
            self._seed_state = None
        self._init = getattr(self._library, name + "_init")
        self._init.argtypes = [ctypes.POINTER(_State), ctypes.c_char_p]
        self._methods = {}
        for signature in self.signatures:
            of_method = []
            for suffix in ("", "_outputs"):
                function = getattr(self._library, f"{name}_{signature.method}{suffix}")
                function.argtypes = [
                    ctypes.POINTER(_State),
                    ctypes.POINTER(_Tensor),
                    ctypes.POINTER(_Tensor),
                ]
                of_method.append(function)
            self._methods[signature.method] = of_method
        self._free = getattr(self._library, name + "_free")
        self._free.argtypes = [ctypes.POINTER(_State)]
        self._states.append(self._new_state())

    def __del__(self):
        if self._free is not None:
            for state in self._states:
                self._free(state)

    def __repr__(self):
        return f"Model({self.name}: {'; '.join(map(repr, self.signatures))})"

    def __getattr__(self, name):
        if name in self.__dict__.get("_methods", {}):
            return lambda *inputs: self._call(name, inputs)
        raise AttributeError(f"{type(self).__name__} has no method or attribute '{name}'")

    def __call__(self, *inputs):
        return self._call("forward", inputs)

    def _new_state(self):
        state = _State()
        if self._init(state, self._weights) != _OK:
            raise RuntimeError(state.error.decode(errors="replace"))
        if self._seed is not None:
            self._seed_state(state, self._seed)
        return state

    def seed(self, seed):
        """Lets the model's random numbers begin anew, as torch.manual_seed() does.

        Calls at the same time draw the same numbers, each from a state of its own.
        """
        if self._seed_state is None:
            return
        self._seed = seed & 0xFFFFFFFFFFFFFFFF
        for state in self._states:
            self._seed_state(state, self._seed)

    @staticmethod
    def _check(code, state):
        if code == _OK:
            return
        error = state.error.decode(errors="replace")
        raise ValueError(error) if code == _ARGUMENT else RuntimeError(error)

    def _device_of(self, tensors):
        """Where results are: on the device of the inputs that are on one."""
        for tensor in tensors:
            kind = tensor.device.type
            if kind == "cuda" and self._takes_cuda:
                return tensor.device
            if kind != "cpu":
                raise ValueError(
                    f"expected tensors on the {'CPU or a CUDA device' if self._takes_cuda else 'CPU'}, "
                    f"got one on {tensor.device}"
                )
        return "cpu"

    def _call(self, method, inputs):
        if method not in self._methods:
            raise AttributeError(f"{self.name} has no method '{method}'")
        signatures = [s for s in self.signatures if s.method == method]
        expected = len(signatures[0].inputs)
        if len(inputs) != expected:
            raise TypeError(f"{method}: expected {expected} tensors, got {len(inputs)}")
        tensors = [
            (x if isinstance(x, Tensor) else torch.from_numpy(x)).contiguous() for x in inputs
        ]
        device = self._device_of(tensors)
        given = (_Tensor * len(tensors))(*map(_described, tensors))
        taken = (_Tensor * max(len(s.outputs) for s in signatures))()
        for tensor in taken:
            tensor.dtype = -1
        run, shapes = self._methods[method]
        try:
            state = self._states.pop()
        except IndexError:
            state = self._new_state()
        try:
            # When no signature fits, this says what does not.
            self._check(shapes(state, given, taken), state)
            outputs = []
            for tensor in taken:
                if tensor.dtype >= 0:  # the signature may have fewer outputs than others
                    sizes = tensor.sizes[: tensor.rank]
                    outputs.append(torch.empty(sizes, dtype=_DTYPES[tensor.dtype], device=device))
                    tensor.data = outputs[-1].data_ptr()
            self._check(run(state, given, taken), state)
            for i, tensor in enumerate(taken[: len(outputs)]):
                # Of sizes that elements decide there was memory for the largest.
                sizes = list(tensor.sizes[: tensor.rank])
                if sizes != list(outputs[i].shape):
                    outputs[i] = outputs[i].reshape(-1)[: math.prod(sizes)].reshape(sizes)
        finally:
            self._states.append(state)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def load(library, weights=None, name=None):
    """The model of a library that `torchscript-cli build --emit library` wrote.

    `weights` is the file of weights, NAME.weights beside the library when none is given; `name` is that
    of the model, which the library's name tells: libNAME.so.
    """
    path = os.path.abspath(os.fspath(library))
    if name is None:
        match = re.fullmatch(r"lib(\w+)\.so", os.path.basename(path))
        if match is None:
            raise ValueError(f"{library}: expected a library libNAME.so, or the model's name")
        name = match.group(1)
    if weights is None:
        beside = os.path.join(os.path.dirname(path), name + ".weights")
        weights = beside if os.path.exists(beside) else None
    return Model(path, name, weights)
