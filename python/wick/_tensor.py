"""Members of Tensor that are written in Python."""

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
    contents = _C._bytes_of(self.detach())
    return _rebuild, (contents, self.dtype, tuple(self.shape), self.requires_grad)


def _rebuild(contents, dtype, shape, requires_grad):
    tensor = _C._tensor_of_bytes(contents, dtype, shape)
    return tensor.requires_grad_() if requires_grad else tensor


@_method
def __deepcopy__(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if self.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment"
        )
    copy = self.detach().clone()
    if self.requires_grad:
        copy.requires_grad_()
    if self.__class__ is not Tensor:
        copy = Tensor._make_subclass(self.__class__, copy, self.requires_grad)
        copy.__dict__.update(self.__dict__)
    if self.grad is not None:
        copy.grad = self.grad.detach().clone()
    memo[id(self)] = copy
    return copy


@_method
def __rsub__(self, other):
    from wick import torch

    return torch.rsub(self, other)


@_method
def cpu(self):
    return self.to("cpu")


@_method
def nonzero(self, *, as_tuple=False):
    """Indices of the elements that are not zero: a row for each, or a tensor a dimension."""
    from wick import torch

    places = torch.ops.aten.nonzero(self)
    return places.unbind(1) if as_tuple else places


@_method
def data_ptr(self):
    return _C._data_ptr(self)


@_method
def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    return _C.tensor(
        data,
        dtype=self.dtype if dtype is None else dtype,
        device=device,
        requires_grad=requires_grad,
    )


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
