"""torch.autocast for Wick's own tensors: products in low precision, what needs range in float32."""

import functools
import warnings

from wick import _C


class autocast:
    """Casts the arguments of operators within a block, or within each call of a function."""

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = device_type
        if device_type == "cpu":
            self.fast_dtype = _C.get_autocast_cpu_dtype()
        elif device_type == "cuda":
            self.fast_dtype = _C.get_autocast_gpu_dtype()
        else:
            raise RuntimeError("User specified autocast device_type must be 'cuda' or 'cpu'")
        if dtype is not None:
            self.fast_dtype = dtype
        if self.fast_dtype is not _C.bfloat16 and self.fast_dtype is not _C.float16:
            warnings.warn("autocast: expected float16 or bfloat16. Disabling autocast.")
            enabled = False
        self._cache_enabled = _C.is_autocast_cache_enabled()
        if cache_enabled is not None:
            self._cache_enabled = cache_enabled
        self._enabled = enabled
        self._before = []

    def __enter__(self):
        if self.device == "cpu":
            before = (_C.is_autocast_cpu_enabled(), _C.get_autocast_cpu_dtype())
            _C.set_autocast_cpu_enabled(self._enabled)
            _C.set_autocast_cpu_dtype(self.fast_dtype)
        else:
            before = (_C.is_autocast_enabled(), _C.get_autocast_gpu_dtype())
            _C.set_autocast_enabled(self._enabled)
            _C.set_autocast_gpu_dtype(self.fast_dtype)
        self._before.append((*before, _C.is_autocast_cache_enabled()))
        _C.set_autocast_cache_enabled(self._cache_enabled)
        _C.autocast_increment_nesting()
        return self

    def __exit__(self, *error):
        if _C.autocast_decrement_nesting() == 0:
            _C.clear_autocast_cache()
        enabled, dtype, keeps = self._before.pop()
        if self.device == "cpu":
            _C.set_autocast_cpu_enabled(enabled)
            _C.set_autocast_cpu_dtype(dtype)
        else:
            _C.set_autocast_enabled(enabled)
            _C.set_autocast_gpu_dtype(dtype)
        _C.set_autocast_cache_enabled(keeps)
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return call


class cpu_autocast(autocast):
    """autocast("cpu")."""

    def __init__(self, enabled=True, dtype=_C.bfloat16, cache_enabled=True):
        super().__init__("cpu", dtype, enabled, cache_enabled)


class cuda_autocast(autocast):
    """autocast("cuda")."""

    def __init__(self, enabled=True, dtype=_C.float16, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


cpu_autocast.__name__ = cpu_autocast.__qualname__ = "autocast"
cuda_autocast.__name__ = cuda_autocast.__qualname__ = "autocast"
