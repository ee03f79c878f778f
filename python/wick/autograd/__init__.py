"""torch.autograd: walks back, and functions with derivatives of their own."""

from wick import _C
from wick.torch import enable_grad, no_grad, set_grad_enabled  # noqa: F401


def _tuple(value):
    return (value,) if value is None or isinstance(value, _C.Tensor) else tuple(value)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False):
    """Adds the gradients of the tensors to those of all leaves that they depend on."""
    tensors = _tuple(tensors)
    gradients = (None,) * len(tensors) if grad_tensors is None else _tuple(grad_tensors)
    if len(gradients) != len(tensors):
        raise RuntimeError(f"backward: got {len(tensors)} tensors, but {len(gradients)} gradients")
    retain_graph = create_graph if retain_graph is None else retain_graph
    _C._backward(tensors, gradients, bool(retain_graph), bool(create_graph))


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=False,
):
    """The gradients of the inputs; nothing is added to any leaf."""
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    gradients = (None,) * len(outputs) if grad_outputs is None else _tuple(grad_outputs)
    if len(gradients) != len(outputs):
        raise RuntimeError(f"grad: got {len(outputs)} outputs, but {len(gradients)} gradients")
    retain_graph = create_graph if retain_graph is None else retain_graph
    return _C._grad(
        outputs, inputs, gradients, bool(retain_graph), bool(create_graph), bool(allow_unused)
    )


class Function:
    """A function with a derivative of its own: forward(ctx, …) and backward(ctx, …)."""

    @staticmethod
    def forward(ctx, *args):
        raise NotImplementedError("a Function needs a forward")

    @staticmethod
    def backward(ctx, *grads):
        raise NotImplementedError("a Function needs a backward")

    @classmethod
    def apply(cls, *args):
        return _C._apply_function(cls, *args)


class _Needs:
    def __init__(self, context):
        self._context = context

    def __getitem__(self, i):
        return self._context._needs(i)


_C.FunctionContext.needs_input_grad = property(_Needs)
