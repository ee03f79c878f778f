"""Members of Tensor that are written in Python."""

import numbers

from wick import _C

Tensor = _C.Tensor


def _method(function):
    setattr(Tensor, function.__name__, function)
    return function


@_method
def __reversed__(self):
    return self if self.dim() == 0 else self.flip(0)


@_method
def type(self, dtype=None, non_blocking=False):
    """The name of the tensor's class in PyTorch, or the tensor converted."""
    from wick import torch

    if dtype is None:
        return "torch." + torch._TYPED_NAMES[self.dtype]
    if isinstance(dtype, str):
        dtype = torch._dtype_of_typed_name(dtype)
    return self.to(dtype)


@_method
def __reduce_ex__(self, protocol):
    if self.is_quantized or self.layout != _C.strided:
        raise TypeError("only dense tensors can be pickled")
    plain = self.detach()
    contents = None if self.device.type == "meta" else _C._bytes_of(plain.cpu())
    return _rebuild, (contents, self.dtype, tuple(self.shape), self.requires_grad, self.device)


def _rebuild(contents, dtype, shape, requires_grad, device=None):
    if contents is None:
        from wick import torch

        tensor = torch.empty(shape, dtype=dtype, device=device)
    else:
        tensor = _C._tensor_of_bytes(contents, dtype, shape)
        if device is not None:
            tensor = tensor.to(device)
    return tensor.requires_grad_() if requires_grad else tensor


def _as_class_of(self, tensor):
    """The tensor with the class, the attributes and the mark of another one."""
    if self.__class__ is not Tensor:
        tensor = Tensor._make_subclass(self.__class__, tensor, self.requires_grad)
        tensor.__dict__.update(self.__dict__)
    elif self.requires_grad:
        tensor.requires_grad_()
    return tensor


@_method
def __copy__(self):
    """Another tensor on the same memory."""
    return _as_class_of(self, self.detach())


@_method
def __deepcopy__(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment"
        )
    copy = _as_class_of(self, self.detach().clone())
    if self.grad is not None:
        copy.grad = self.grad.detach().clone()
    memo[id(self)] = copy
    return copy


@_method
def __rsub__(self, other):
    from wick import torch

    return torch.rsub(self, other)


@_method
def __rfloordiv__(self, other):
    from wick import torch

    if not isinstance(other, numbers.Number):
        return NotImplemented
    # A number does not make a tensor of its own dtype, and wraps around in a smaller one.
    exact = torch.float64 if isinstance(other, float) else None
    number = torch.full([], other, dtype=exact, device=self.device)
    number = number.to(torch.result_type(self, other))
    return torch.floor_divide(number, self)


# Arrays of numpy leave operators to tensors, and what numpy computes of a tensor is one.
Tensor.__array_priority__ = 1000


@_method
def __array_wrap__(self, array):
    from wick import torch

    return torch.from_numpy(array)


@_method
def cpu(self):
    return self.to("cpu")


@_method
def nonzero(self, *, as_tuple=False):
    """Indices of the elements that are not zero: a row for each, or a tensor a dimension."""
    from wick import torch

    places = torch.ops.aten.nonzero(self)
    return places.unbind(1) if as_tuple else places


# ---- names that PyTorch has in Python alone ----


@_method
def nelement(self):
    """The number of elements, as numel()."""
    return self.numel()


@_method
def ndimension(self):
    """The number of dimensions, as dim()."""
    return self.dim()


@_method
def to_sparse_coo(self):
    return self.to_sparse()


@_method
def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Each element once; with a dimension each of its slices."""
    from wick import torch

    return torch.unique(self, sorted, return_inverse, return_counts, dim)


@_method
def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None):
    """The elements without those that equal the one before."""
    from wick import torch

    return torch.unique_consecutive(self, return_inverse, return_counts, dim)


@_method
def norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    """A norm of all elements, or along dimensions."""
    from wick import torch

    return torch.norm(self, p, dim, keepdim, dtype=dtype)


@_method
def lu(self, pivot=True, get_infos=False):
    """The factors in one matrix, and which rows were exchanged."""
    from wick import torch

    return torch.lu(self, pivot, get_infos)


def _check_own_loop(name, tensor):
    if tensor.requires_grad:
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. "
            f"Use var.detach().{name}() instead."
        )
    if tensor.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors")


def _write_numbers(tensor, numbers):
    made = _C.tensor(list(numbers), dtype=tensor.dtype, device=None, requires_grad=False)
    return tensor.copy_(made.view(tensor.shape))


@_method
def apply_(self, callable):
    """Replaces each element by what the function makes of it, as a number."""
    _check_own_loop("apply_", self)
    return _write_numbers(self, map(callable, self.flatten().tolist()))


@_method
def map_(self, tensor, callable):
    """Replaces each element by what the function makes of it and of that of the other tensor."""
    for each in (self, tensor):
        _check_own_loop("map_", each)
    if tensor.dtype != self.dtype:
        raise TypeError(f"map_: expected a tensor of {self.dtype}, got one of {tensor.dtype}")
    others = tensor.expand(self.shape).flatten().tolist()
    return _write_numbers(self, map(callable, self.flatten().tolist(), others))


@_method
def data_ptr(self):
    return _C._data_ptr(self)


@_method
def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    return _C.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
    )


@_method
def new(self, *args):
    """A tensor of the same dtype and device: of these sizes and not initialized, or of the elements of a sequence."""
    if len(args) == 1 and not isinstance(args[0], (int, _C.Size)):
        if isinstance(args[0], _C.Tensor):
            raise TypeError("new: expected sizes or a sequence of numbers, got a tensor; use detach() for a tensor on the same memory")
        return self.new_tensor(args[0])
    if not args:
        return self.new_empty((0,))
    return self.new_empty(args[0] if isinstance(args[0], _C.Size) else args)


@_method
def backward(self, gradient=None, retain_graph=None, create_graph=False):
    """Adds the gradients of this tensor to those of all leaves that it depends on."""
    from wick import autograd

    autograd.backward(self, gradient, retain_graph, create_graph)


@_method
def register_hook(self, hook):
    """Calls the hook with the tensor's gradient, which it may replace."""
    return _C._register_hook(self, hook)


@_method
def register_post_accumulate_grad_hook(self, hook):
    """Calls the hook with the leaf each time its gradient has been added to."""


    def call(gradient):
        hook(self)

    return _C._register_post_accumulate_hook(self, call)
