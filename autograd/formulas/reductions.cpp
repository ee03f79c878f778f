// Sums, products, moments, extremes and order statistics.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kReductionsHelpers[] = {
    {"prod_gradient", R"(
def prod_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if self.dim() == 0:
        return grad
    if not bool((self == 0).any()):
        return grad * (result / self).conj()
    n = self.size(dim)
    one = torch.ones_like(self.narrow(dim, 0, 1))
    left = torch.cumprod(torch.cat([one, self.narrow(dim, 0, n - 1)], dim), dim)
    right = torch.cumprod(torch.cat([one, self.flip([dim]).narrow(dim, 0, n - 1)], dim), dim)
    return grad * (left * right.flip([dim])).conj()
)"},
    {"var_gradient", R"(
def var_gradient(grad: Tensor, self: Tensor, dim: Optional[List[int]], correction: number, keepdim: bool) -> Tensor:
    size = self.size()
    if dim is None or len(dim) == 0:
        mean = self.mean()
    else:
        mean = self.mean(dim, True)
    count = float(count_of(size, dim)) - float(correction)
    factor = float('inf') if count == 0 else 2.0 / count
    return spread(grad, size, dim, keepdim) * factor * (self - mean)
)"},
    {"std_gradient", R"(
def std_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: Optional[List[int]], correction: number, keepdim: bool) -> Tensor:
    inner = (grad / (result * 2)).masked_fill(result == 0, 0)
    return var_gradient(inner, self, dim, correction, keepdim)
)"},
    {"evenly", R"(
def evenly(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    mask = self.isnan() if bool(result.isnan()) else self == result
    return grad.new_zeros(self.size()).masked_fill(mask, grad / mask.sum())
)"},
    {"shared", R"(
def shared(grad: Tensor, self: Tensor, result: Tensor, dim: Optional[List[int]], keepdim: bool) -> Tensor:
    size = self.size()
    mask = self == spread(result, size, dim, keepdim)
    if dim is None or len(dim) == 0 or len(size) == 0:
        return spread(grad, size, dim, keepdim) * mask / mask.sum()
    return spread(grad, size, dim, keepdim) * mask / mask.sum(dim, True)
)"},
    {"chosen", R"(
def chosen(grad: Tensor, size: List[int], dim: int, index: Tensor, keepdim: bool) -> Tensor:
    if not keepdim and len(size) > 0:
        return torch.zeros(size, dtype=grad.dtype, device=grad.device).scatter(dim, index.unsqueeze(dim), grad.unsqueeze(dim))
    return torch.zeros(size, dtype=grad.dtype, device=grad.device).scatter(dim, index, grad)
)"},
    {"summed_backwards", R"(
def summed_backwards(grad: Tensor, dim: int) -> Tensor:
    if grad.dim() == 0:
        return grad
    return grad.flip([dim]).cumsum(dim).flip([dim])
)"},
    {"cumprod_gradient", R"(
def cumprod_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if self.dim() == 0 or self.numel() == 0 or self.size(dim) == 1:
        return grad
    if not bool((self == 0).any()):
        return summed_backwards(result.conj() * grad, dim) / self.conj()
    n = self.size(dim)
    parts: List[Tensor] = []
    for k in range(n):
        # What is multiplied by element k: all before it, and what follows up to each result.
        after = torch.cat([torch.ones_like(self.narrow(dim, 0, 1)), self.narrow(dim, k + 1, n - k - 1)], dim).cumprod(dim)
        if k > 0:
            after = after * torch.prod(self.narrow(dim, 0, k), dim, True)
        parts.append((grad.narrow(dim, k, n - k) * after.conj()).sum(dim, True))
    return torch.cat(parts, dim)
)"},
    {"logcumsumexp_gradient", R"(
def logcumsumexp_gradient(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    if grad.dim() == 0 or grad.numel() == 0:
        return grad
    least = -1.7976931348623157e+308 if grad.dtype == torch.float64 else -3.4028234663852886e+38
    positive = torch.where(grad > 0, grad.log(), least)
    negative = torch.where(grad < 0, (-grad).log(), least)
    up = ((positive - result).flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp()
    down = ((negative - result).flip([dim]).logcumsumexp(dim).flip([dim]) + self).exp()
    return up - down
)"},
    {"nth_differences", R"(
def nth_differences(self: Tensor, n: int, dim: int, prepend: Optional[Tensor], append: Optional[Tensor]) -> Tensor:
    if n == 0:
        return self
    parts: List[Tensor] = []
    size = self.size()
    size[dim] = 1
    if prepend is not None:
        parts.append(prepend if prepend.dim() > 0 else prepend.expand(size))
    parts.append(self)
    if append is not None:
        parts.append(append if append.dim() > 0 else append.expand(size))
    out = torch.cat(parts, dim) if len(parts) > 1 else self
    times = n if n < out.size(dim) else out.size(dim)
    for i in range(times):
        m = out.size(dim)
        out = out.narrow(dim, 1, m - 1) - out.narrow(dim, 0, m - 1)
    return out
)"},
    {"spacing_like", R"(
def spacing_like(y: Tensor, x: Tensor, dim: int) -> Tensor:
    if x.dim() == 1:
        steps = x.narrow(0, 1, x.size(0) - 1) - x.narrow(0, 0, x.size(0) - 1)
        shape = [1] * y.dim()
        shape[dim] = steps.size(0)
        return steps.reshape(shape)
    while x.dim() < y.dim():
        x = x.unsqueeze(0)
    m = x.size(dim)
    return x.narrow(dim, 1, m - 1) - x.narrow(dim, 0, m - 1)
)"},
    {"trapezoid_of", R"(
def trapezoid_of(y: Tensor, x: Tensor, dim: int) -> Tensor:
    d = dim if dim >= 0 else dim + y.dim()
    if y.size(d) == 0 or x.size(dim if x.dim() > 1 else 0) == 0:
        return torch.zeros_like(y.sum(d))
    n = y.size(d)
    return (0.5 * spacing_like(y, x, d) * (y.narrow(d, 1, n - 1) + y.narrow(d, 0, n - 1))).sum(d)
)"},
    {"trapezoid_even", R"(
def trapezoid_even(y: Tensor, dx: number, dim: int) -> Tensor:
    n = y.size(dim)
    if n == 0:
        return torch.zeros_like(y.sum(dim))
    return (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)).sum(dim) * (0.5 * dx)
)"},
    {"cumulative_trapezoid_of", R"(
def cumulative_trapezoid_of(y: Tensor, x: Tensor, dim: int) -> Tensor:
    d = dim if dim >= 0 else dim + y.dim()
    n = y.size(d)
    if n == 0:
        return y
    return (0.5 * spacing_like(y, x, d) * (y.narrow(d, 1, n - 1) + y.narrow(d, 0, n - 1))).cumsum(d)
)"},
    {"cumulative_trapezoid_even", R"(
def cumulative_trapezoid_even(y: Tensor, dx: number, dim: int) -> Tensor:
    n = y.size(dim)
    if n == 0:
        return y
    return (y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)).cumsum(dim) * (0.5 * dx)
)"},
    {"quantile_of", R"(
def quantile_of(self: Tensor, q: Tensor, dim: Optional[int], keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    size = self.size()
    n = len(size)
    if dim is None:
        moved = self.reshape([-1])
        rest = [1] * n if keepdim else [1][:0]
    else:
        d = dim if dim >= 0 else dim + n
        moved = self.transpose(d, -1) if n > 0 else self.reshape([1])
        rest = [s for s in size]
        if n > 0:
            if keepdim:
                rest[d] = 1
            else:
                moved = self.movedim(d, -1)
                rest.pop(d)
    ordered = torch.sort(moved, -1)[0]
    count = ordered.size(-1)
    ones = q.reshape([-1])
    if ignore_nan:
        ranks = (((~ordered.isnan()).sum(-1, True) - 1).clamp(0) * ones)
    else:
        ranks = (ones * float(count - 1)).expand([s for s in ordered.size()[:-1]] + [ones.numel()])
        ranks = torch.where(ordered.isnan().any(-1, True), float(count - 1), ranks)
    if interpolation == 'lower':
        ranks = ranks.floor()
    elif interpolation == 'higher':
        ranks = ranks.ceil()
    elif interpolation == 'nearest':
        ranks = ranks.round()
    low = ranks.detach().to(torch.int64)
    values = ordered.gather(-1, low)
    if interpolation == 'linear' or interpolation == 'midpoint':
        weights = torch.full_like(ranks, 0.5) if interpolation == 'midpoint' else ranks - low
        high = ranks.detach().ceil().to(torch.int64)
        values = torch.lerp(values, ordered.gather(-1, high), weights.to(values.dtype).expand(values.size()))
    if q.dim() == 0:
        return values.squeeze(-1).reshape(rest) if dim is None or not keepdim else values.transpose(-1, dim)
    if dim is not None and keepdim:
        return values.unsqueeze(0).transpose(0, -1).transpose(dim + 1 if dim >= 0 else dim + n + 1, -1).reshape([ones.numel()] + rest)
    return values.movedim(-1, 0).reshape([ones.numel()] + rest)
)"},
};

constexpr FormulaText kReductionsFormulas[] = {
    {"aten::nansum", "self: spread(grad, self_size, dim, keepdim) * ~self.isnan()"},
    {"aten::nanmean", R"(
let kept = ~self.isnan()
return torch.nansum(self, dim, keepdim, dtype=dtype) / (kept.sum() if dim is None else kept.sum(dim, keepdim))
)"},
    {"aten::prod", R"(
self: grad if len(self_size) == 0 else prod_gradient(grad, self.reshape([-1]), result, 0).reshape(self_size)
)"},
    {"aten::prod.dim_int", R"(
self: prod_gradient(grad if keepdim or len(self_size) == 0 else grad.unsqueeze(dim), self, result if keepdim or len(self_size) == 0 else result.unsqueeze(dim), dim)
)"},
    {"aten::var", "self: var_gradient(grad, self, None, 1 if unbiased else 0, False)"},
    {"aten::var.dim", "self: var_gradient(grad, self, dim, 1 if unbiased else 0, keepdim)"},
    {"aten::var.correction", R"(
self: var_gradient(grad, self, dim, 1 if correction is None else correction, keepdim)
)"},
    {"aten::std", R"(
self: std_gradient(grad, self, result, None, 1 if unbiased else 0, False)
)"},
    {"aten::std.dim", R"(
self: std_gradient(grad, self, result, dim, 1 if unbiased else 0, keepdim)
)"},
    {"aten::std.correction", R"(
self: std_gradient(grad, self, result, dim, 1 if correction is None else correction, keepdim)
)"},
    {"aten::var_mean", R"(
self: var_gradient(grad0, self, None, 1 if unbiased else 0, False) + spread(grad1, self_size, None, False) / count_of(self_size, None)
)"},
    {"aten::var_mean.dim", R"(
self: var_gradient(grad0, self, dim, 1 if unbiased else 0, keepdim) + spread(grad1, self_size, dim, keepdim) / count_of(self_size, dim)
)"},
    {"aten::var_mean.correction", R"(
self: var_gradient(grad0, self, dim, 1 if correction is None else correction, keepdim) + spread(grad1, self_size, dim, keepdim) / count_of(self_size, dim)
)"},
    {"aten::std_mean", R"(
self: std_gradient(grad0, self, result0, None, 1 if unbiased else 0, False) + spread(grad1, self_size, None, False) / count_of(self_size, None)
)"},
    {"aten::std_mean.dim", R"(
self: std_gradient(grad0, self, result0, dim, 1 if unbiased else 0, keepdim) + spread(grad1, self_size, dim, keepdim) / count_of(self_size, dim)
)"},
    {"aten::std_mean.correction", R"(
self: std_gradient(grad0, self, result0, dim, 1 if correction is None else correction, keepdim) + spread(grad1, self_size, dim, keepdim) / count_of(self_size, dim)
)"},
    {"aten::logsumexp", R"(
self: spread(grad, self_size, dim, keepdim) * torch.exp(self - spread(result, self_size, dim, keepdim)).conj()
)"},
    {"aten::sum_to_size", "self: grad.expand(self_size)"},
    {"aten::max, aten::min, aten::median, aten::nanmedian", "self: evenly(grad, self, result)"},
    {"aten::amax, aten::amin", "self: shared(grad, self, result, dim, keepdim)"},
    {"aten::_aminmax", R"(
self: shared(grad0, self, result0, None, False) + shared(grad1, self, result1, None, False)
)"},
    {"aten::_aminmax.dim", R"(
self: shared(grad0, self, result0, [dim], keepdim) + shared(grad1, self, result1, [dim], keepdim)
)"},
    {R"(aten::max.dim, aten::min.dim, aten::median.dim, aten::nanmedian.dim, aten::kthvalue,
         aten::mode)",
     R"(
results 0
self: chosen(grad0, self_size, dim, result1, keepdim)
)"},
    {"aten::sort, aten::sort.stable, aten::topk", R"(
results 0
self: chosen(grad0, self_size, dim, result1, True)
)"},
    {"aten::msort", "return torch.sort(self, 0)[0]"},
    {"aten::cumsum", "self: summed_backwards(grad, dim)"},
    {"aten::cumprod", "self: cumprod_gradient(grad, self, result, dim)"},
    {"aten::logcumsumexp, aten::_logcumsumexp",
     "self: logcumsumexp_gradient(grad, self, result, dim)"},
    {"aten::cummax, aten::cummin", R"(
results 0
self: torch.zeros(self_size, dtype=self_dtype, device=grad0.device).scatter_add(dim, result1, grad0)
)"},
    {"aten::diff", "return nth_differences(self, n, dim, prepend, append)"},
    {"aten::trapezoid.x, aten::trapz.x", "return trapezoid_of(y, x, dim)"},
    {"aten::trapezoid.dx, aten::trapz.dx", "return trapezoid_even(y, dx, dim)"},
    {"aten::cumulative_trapezoid.x", "return cumulative_trapezoid_of(y, x, dim)"},
    {"aten::cumulative_trapezoid.dx", "return cumulative_trapezoid_even(y, dx, dim)"},
    {"aten::quantile", "return quantile_of(self, q, dim, keepdim, interpolation, False)"},
    {"aten::quantile.scalar", R"(
return quantile_of(self, torch.scalar_tensor(q, dtype=self.dtype, device=self.device), dim, keepdim, interpolation, False)
)"},
    {"aten::nanquantile", "return quantile_of(self, q, dim, keepdim, interpolation, True)"},
    {"aten::nanquantile.scalar", R"(
return quantile_of(self, torch.scalar_tensor(q, dtype=self.dtype, device=self.device), dim, keepdim, interpolation, True)
)"},
};
const RegisterFormulas kReductionsRegistered(kReductionsFormulas, kReductionsHelpers);

}  // namespace

}  // namespace wick::autograd
