"""The namespace that programs see under the name `torch`.

Operators and functions are the language's: a name that is not defined here is looked up in the
front end's table when it is first asked for. Here stands what a program does not need because it is
compiled: constructors of Python's data, modes, and what Python's classes are called.
"""

import math as _math
import sys as _sys

from wick import _autocast, _C, _namespace
from wick._autocast import autocast  # noqa: F401
from wick._C import (
    Generator,
    Size,
    Tensor,
    as_tensor,
    autocast_decrement_nesting,  # noqa: F401
    autocast_increment_nesting,  # noqa: F401
    clear_autocast_cache,  # noqa: F401
    default_generator,
    device,
    dtype,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_autocast_cpu_dtype,  # noqa: F401
    get_autocast_gpu_dtype,  # noqa: F401
    get_default_device,
    get_default_dtype,
    is_autocast_cache_enabled,  # noqa: F401
    is_autocast_cpu_enabled,  # noqa: F401
    is_autocast_enabled,  # noqa: F401
    is_grad_enabled,
    layout,
    manual_seed,
    memory_format,
    qscheme,
    set_autocast_cache_enabled,  # noqa: F401
    set_autocast_cpu_dtype,  # noqa: F401
    set_autocast_cpu_enabled,  # noqa: F401
    set_autocast_enabled,  # noqa: F401
    set_autocast_gpu_dtype,  # noqa: F401
    set_default_dtype,
    tensor,
    to_dlpack,
)
from wick._C import (  # noqa: F401
    bfloat16,
    bool,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    preserve_format,
    qint8,
    qint32,
    quint8,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
    uint8,
)

import builtins as _builtins

half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128

pi = _math.pi
e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None

__version__ = _C.__version__

_TYPED_NAMES = {
    uint8: "ByteTensor",
    int8: "CharTensor",
    int16: "ShortTensor",
    int32: "IntTensor",
    int64: "LongTensor",
    float16: "HalfTensor",
    float32: "FloatTensor",
    float64: "DoubleTensor",
    complex64: "ComplexFloatTensor",
    complex128: "ComplexDoubleTensor",
    bool: "BoolTensor",
    bfloat16: "BFloat16Tensor",
}


def _dtype_of_typed_name(name):
    last = name.rsplit(".", 1)[-1]
    for found, typed in _TYPED_NAMES.items():
        if typed == last:
            return found
    raise ValueError(f"invalid type: '{name}'")


def _typed_constructor(kind):
    def construct(*args):
        if len(args) == 1 and not isinstance(args[0], _builtins.int):
            return tensor(args[0], dtype=kind)
        return _namespace.find_member(_module, "torch", "empty")(
            [0] if not args else list(args), dtype=kind
        )

    return construct


for _kind, _name in _TYPED_NAMES.items():
    globals()[_name] = _typed_constructor(_kind)


# ---- modes ----


class _GradMode:
    """Sets for a block, or for each call of a function, whether gradients are recorded."""

    def __init__(self, on):
        self._on = on
        self._before = []

    def __enter__(self):
        self._before.append(is_grad_enabled())
        _C._set_grad_enabled(self._on)
        return self

    def __exit__(self, *error):
        _C._set_grad_enabled(self._before.pop())
        return False

    def __call__(self, function):
        import functools

        @functools.wraps(function)
        def call(*args, **kwargs):
            with _GradMode(self._on):
                return function(*args, **kwargs)

        return call


class no_grad(_GradMode):
    """Nothing within is recorded."""

    def __init__(self):
        super().__init__(False)


class enable_grad(_GradMode):
    """What is within is recorded."""

    def __init__(self):
        super().__init__(True)


class inference_mode(_GradMode):
    """As no_grad."""

    def __init__(self, mode=True):
        super().__init__(not mode and is_grad_enabled())


class set_grad_enabled(_GradMode):
    """Takes effect at once; as a context it ends with the block."""

    def __init__(self, mode):
        super().__init__(mode)
        self._outside = is_grad_enabled()
        _C._set_grad_enabled(mode)

    def __enter__(self):
        self._before.append(self._outside)
        _C._set_grad_enabled(self._on)
        return self


# ---- questions ----


def is_tensor(value):
    return isinstance(value, Tensor)


def is_floating_point(value):
    return value.dtype.is_floating_point


def is_complex(value):
    return value.dtype.is_complex


def numel(value):
    return value.numel()


def nonzero(input, *, as_tuple=False):
    return input.nonzero(as_tuple=as_tuple)


def typename(value):
    if isinstance(value, Tensor):
        return value.type()
    kind = value if isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"


def seed():
    """Starts the default generator from a seed that nobody can foresee, and returns it."""
    import secrets

    chosen = secrets.randbits(63)
    manual_seed(chosen)
    return chosen


def initial_seed():
    return default_generator.initial_seed()


def get_rng_state():
    return default_generator.get_state()


def set_rng_state(state):
    default_generator.set_state(state)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    made = tensor(obj) if copy else as_tensor(obj)
    if dtype is not None:
        made = made.to(dtype)
    if device is not None:
        made = made.to(device)
    return made.requires_grad_() if requires_grad else made


class finfo:
    """The limits of a floating-point dtype."""

    _FACTS = {  # bits, digits of the mantissa, greatest exponent
        float16: (16, 10, 15),
        bfloat16: (16, 7, 127),
        float32: (32, 23, 127),
        float64: (64, 52, 1023),
    }

    def __init__(self, dtype=None):
        dtype = dtype or get_default_dtype()
        dtype = {complex64: float32, complex128: float64}.get(dtype, dtype)
        if dtype not in self._FACTS:
            raise TypeError(f"torch.finfo() requires a floating point input type, got {dtype}")
        bits, digits, exponent = self._FACTS[dtype]
        self.bits = bits
        self.eps = 2.0**-digits
        self.max = (2.0 - 2.0**-digits) * 2.0**exponent
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - exponent)
        self.resolution = {float16: 1e-3, bfloat16: 1e-2, float32: 1e-6, float64: 1e-15}[dtype]
        self.dtype = repr(dtype).split(".")[1]

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.tiny:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """The limits of an integer dtype."""

    def __init__(self, dtype):
        if dtype.is_floating_point or dtype.is_complex or dtype is bool:
            raise TypeError(f"torch.iinfo() requires an integer input type, got {dtype}")
        self.bits = 8 * dtype.itemsize
        signed = dtype is not uint8
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - 1) - 1 if signed else 2**self.bits - 1
        self.dtype = repr(dtype).split(".")[1]

    def __repr__(self):
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def set_default_device(device):
    """Where tensors are made from now on that are told no device. None: on the CPU."""
    _C._set_default_device("cpu" if device is None else device)


def set_num_threads(count):
    _C.set_num_threads(count)


def get_num_threads():
    return _C.get_num_threads()


_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, inf, 3, 80)}
_print_options = [4, 1000, 3, 80, None]


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """How tensors are shown: digits, elements before a cut, elements at its edges, columns."""
    chosen = list(_print_options)
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: unknown profile '{profile}'")
        chosen[:4] = _PROFILES[profile]
    for i, value in enumerate((precision, threshold, edgeitems, linewidth)):
        if value is not None:
            chosen[i] = value
    chosen[4] = sci_mode
    whole = [2**60 if value == inf else value for value in chosen[:4]]
    for name, value in zip(("precision", "threshold", "edgeitems", "linewidth"), whole):
        if not isinstance(value, _builtins.int) or value < 0:
            raise ValueError(f"set_printoptions: {name} is a number that is not negative")
    if sci_mode not in (None, True, False):
        raise ValueError("set_printoptions: sci_mode is True, False or None")
    if whole[0] > 100:
        raise ValueError("set_printoptions: more than 100 digits")
    _C._set_print_options(*[min(value, 2**60) for value in whole], sci_mode)
    _print_options[:] = chosen


# ---- files ----


def save(value, file):
    """Writes a value of numbers, strings, tensors and containers as torch.load reads it."""
    from wick import files

    files.save(value, file)


def load(file, map_location=None, weights_only=True):
    """Reads what torch.save wrote. Tensors go where `map_location` says, as files.load tells."""
    from wick import files

    return files.load(file, map_location, weights_only)


_language_name = "torch"
_module = _sys.modules[__name__]


amp = _namespace.submodule("wick.torch.amp", "torch.amp", {"autocast": autocast})
cpu = _namespace.submodule(
    "wick.torch.cpu",
    "torch.cpu",
    {
        "amp": _namespace.submodule(
            "wick.torch.cpu.amp", "torch.cpu.amp", {"autocast": _autocast.cpu_autocast}
        )
    },
)
cuda = _namespace.submodule(
    "wick.torch.cuda",
    "torch.cuda",
    {
        "amp": _namespace.submodule(
            "wick.torch.cuda.amp", "torch.cuda.amp", {"autocast": _autocast.cuda_autocast}
        ),
    },
)


def __getattr__(name):
    if name in ("nn", "jit", "optim", "autograd", "utils"):
        import importlib

        module = importlib.import_module("wick." + name)
        _sys.modules["wick.torch." + name] = module
        globals()[name] = module
        return module
    return _namespace.find_member(_module, "torch", name)
