"""Helpers for training."""

from wick import torch


@torch.no_grad()
def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Scales the gradients so that their common norm is at most max_norm; returns what it was."""
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return torch.tensor(0.0)
    norms = torch.stack([torch.linalg.vector_norm(g, norm_type) for g in gradients])
    total = torch.linalg.vector_norm(norms, norm_type)
    factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)
    return total


@torch.no_grad()
def clip_grad_value_(parameters, clip_value):
    parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
    for p in parameters:
        if p.grad is not None:
            p.grad.clamp_(-clip_value, clip_value)


def parameters_to_vector(parameters):
    return torch.cat([p.view(-1) for p in parameters])
