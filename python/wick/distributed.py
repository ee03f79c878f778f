"""Processes that compute together: `mpirun -n 2 python3 train.py`, or what sets RANK and WORLD_SIZE.

    distributed.init()
    exchange = distributed.GradientExchange(model.parameters())
    for x, y in batches_of(distributed.rank(), distributed.size()):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        exchange.finish()
        optimizer.step()

All processes must make the same calls in the same order.
"""

import contextlib

from wick import _C, torch

__all__ = [
    "init",
    "shutdown",
    "is_initialized",
    "rank",
    "size",
    "barrier",
    "broadcast",
    "all_reduce",
    "GradientExchange",
]


def init():
    """Joins the other processes.

    These are the ones that mpirun started; alone, a group of one. Needs Open MPI's library. Without mpirun
    the environment may say who is there, as torchrun does: RANK and WORLD_SIZE, and with MASTER_ADDR
    and MASTER_PORT where process 0 is found. Tensors of CUDA devices need NCCL's library.
    """
    _C._distributed_init()


def shutdown():
    """Leaves the group, when all processes have come here. The process's end does the same."""
    _C._distributed_shutdown()


def is_initialized():
    return _C._distributed_is_initialized()


def rank():
    """This process's number, from 0 on."""
    return _C._distributed_rank()


def size():
    """How many processes there are."""
    return _C._distributed_size()


def barrier():
    """Returns when all processes have come here."""
    _C._distributed_barrier()


def broadcast(tensor, root=0):
    """Everybody's tensor gets the numbers of the process `root`. Returns the tensor."""
    _C._distributed_broadcast(tensor, root)
    return tensor


def all_reduce(tensor, reduction="mean"):
    """A new tensor: "sum", "mean", "max" or "min" over all processes, element by element."""
    return torch.ops.wick.all_reduce(tensor, reduction)


class GradientExchange:
    """Makes the gradients of parameters the means over all processes.

    Begins with the parameters of process 0 everywhere. The exchange of a gradient begins when
    `backward` has it, and goes on while the others are computed.
    """

    def __init__(self, parameters):
        self._exchange = _C._GradientExchange(list(parameters))

    def finish(self):
        """Waits until the gradients are means. Between `backward` and the optimizer's step."""
        self._exchange.finish()

    @contextlib.contextmanager
    def paused(self):
        """Within it gradients are added up as ever, and nothing is exchanged."""
        self._exchange.set_active(False)
        try:
            yield
        finally:
            self._exchange.set_active(True)
