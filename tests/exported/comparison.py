"""Comparing values with recorded ones."""

from wick import torch


def difference(got, want, tolerance, place="result"):
    """Why the two values differ; None where they do not."""
    if isinstance(want, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            return f"{place}: {type(got).__name__} for a tensor"
        if tuple(got.shape) != tuple(want.shape) or got.dtype != want.dtype:
            return f"{place}: {got.dtype}{tuple(got.shape)} for {want.dtype}{tuple(want.shape)}"
        if got.numel() == 0:
            return None
        if want.dtype == torch.bool:
            return None if bool((got == want).all()) else f"{place}: booleans differ"
        got, want = got.detach(), want.detach()
        if want.is_complex():
            got, want = torch.view_as_real(got), torch.view_as_real(want)
        got, want = got.to(torch.float64), want.to(torch.float64)
        same = (got == want) | (got.isnan() & want.isnan())
        finite = torch.where(want.isfinite(), want, torch.zeros_like(want)).abs().max().item()
        close = (got - want).abs() <= tolerance * (1e-3 + finite)
        return None if bool((same | close).all()) else f"{place}: numbers differ by {(got - want).abs().max().item():.3g} of {finite:.3g}"
    if isinstance(want, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(want):
            return f"{place}: {got!r:.80} for {len(want)} values"
        for i, (g, w) in enumerate(zip(got, want)):
            why = difference(g, w, tolerance, f"{place}[{i}]")
            if why:
                return why
        return None
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(got) != list(want):
            return f"{place}: {got!r:.80} for {list(want)}"
        for key in want:
            why = difference(got[key], want[key], tolerance, f"{place}[{key!r}]")
            if why:
                return why
        return None
    if isinstance(want, float):
        return None if isinstance(got, float) and abs(got - want) <= tolerance * (1e-3 + abs(want)) or got != got and want != want else f"{place}: {got!r} for {want!r}"
    return None if type(got) is type(want) and got == want else f"{place}: {got!r:.80} for {want!r:.80}"
