"""Captured graphs among the functions that PyTorch differentiates."""

import torch


def _gradients(ctx, gradients):
    """The gradients of the leaves of a tape. With create_graph they have gradients in turn."""
    if torch.is_grad_enabled():
        leaves = ctx.saved_tensors
        given = [g for g in gradients if g is not None]
        places = tuple(g is not None for g in gradients)
        return CapturedGradient.apply(ctx.tape, places, *leaves, *given)
    if ctx.tape.saves:
        # Raises when the tape was used up. Leaves may have been written to: the tape knows which it needs.
        ctx._raw_saved_tensors
    return ctx.tape.backward(gradients)


class CapturedGraph(torch.autograd.Function):
    """One component of a run of a graph. The gradients of its results come from Wick's tape."""

    @staticmethod
    def forward(ctx, run, component, *leaves):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*leaves)
        ctx.tape, results = run.forward(component)
        return results

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, *_gradients(ctx, gradients))


class CapturedGradient(torch.autograd.Function):
    """A backward pass that is differentiated in turn."""

    @staticmethod
    def forward(ctx, tape, places, *tensors):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        given = iter(tensors[len(tensors) - sum(places) :])
        gradients = tuple(next(given) if there else None for there in places)
        ctx.tape, results, differentiable = tape.recorded_backward(gradients)
        plain = [r for r, d in zip(results, differentiable) if r is not None and not d]
        ctx.mark_non_differentiable(*plain)
        return results

    @staticmethod
    def backward(ctx, *gradients):
        return (None, None, *_gradients(ctx, gradients))


apply = CapturedGraph.apply
