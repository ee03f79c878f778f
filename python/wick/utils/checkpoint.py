"""Parts of a computation that the walk back computes again instead of keeping what they need."""

from wick import _C


def checkpoint(function, *args, preserve_rng_state=True, use_reentrant=True, **kwargs):
    """The function's results; of what it computes nothing but the arguments is kept.

    Parameters that it reads get their gradients too, so `use_reentrant` makes no difference.
    """

    def call(*values):
        return function(*values, **kwargs)

    if _C._is_tracing():  # only what is computed is recorded
        return call(*args)
    return _C._checkpoint(call, preserve_rng_state, *args)
