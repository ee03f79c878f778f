// Norms and distances. Where a norm has a kink, at zero and at ties, the gradient is zero and the
// mean.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNormsHelpers[] = {
    {"vector_norm_gradient", R"(
def vector_norm_gradient(grad: Tensor, self: Tensor, result: Tensor, order: Optional[number], dim: Optional[List[int]], keepdim: bool) -> Optional[Tensor]:
    p = 2.0 if order is None else float(order)
    if p == 0:
        return None
    dims: List[int] = [] if dim is None else dim
    g = with_reduced(torch.real(grad) if grad.is_complex() else grad, self.size(), dims, keepdim)
    norm = with_reduced(torch.real(result) if result.is_complex() else result, self.size(), dims, keepdim)
    x = self if self.is_complex() else self.to(g.dtype)
    if p == 1:
        return x.sgn() * g
    if p == 2:
        return g * (x / norm).masked_fill(norm == 0, 0)
    size = torch.abs(x)
    if p == float('inf') or p == -float('inf'):
        extreme = (size == norm) | size.isnan()
        count = extreme.sum() if len(dims) == 0 else extreme.sum(dims, True)
        return x.sgn() * (g / count * extreme)
    if p < 1:
        return x.sgn() * size.pow(p - 1).masked_fill(x == 0, 0) * g * norm.pow(1 - p)
    scale = (g / norm.pow(p - 1)).masked_fill(norm == 0, 0)
    if p < 2:
        return x.sgn() * size.pow(p - 1) * scale
    return x * size.pow(p - 2) * scale
)"},
    {"negative_if_any", R"(
def negative_if_any(t: Optional[Tensor]) -> Optional[Tensor]:
    if t is None:
        return None
    return -t
)"},
    {"frobenius_made", R"(
def frobenius_made(self: Tensor, dim: List[int], keepdim: bool) -> Tensor:
    assert len(dim) <= 2, 'Expected at most 2 dimensions'
    if len(dim) < 2:
        return torch.linalg.vector_norm(self, 2, None if len(dim) == 0 else dim, keepdim)
    if self.is_complex():
        return torch.sqrt(torch.real(self.conj() * self).sum(dim, keepdim))
    return torch.sqrt((self * self).sum(dim, keepdim))
)"},
    // The extreme along a dimension: the largest, or the smallest for a negative order.
    {"extreme_of", R"(
def extreme_of(t: Tensor, order: float, dim: int, keepdim: bool) -> Tensor:
    return t.amax([dim], keepdim) if order > 0 else t.amin([dim], keepdim)
)"},
    {"wrapped_pair", R"(
def wrapped_pair(dim: List[int], n: int) -> List[int]:
    assert len(dim) == 2, 'linalg.matrix_norm: dim must be a 2-tuple'
    pair = [d if d >= 0 else d + n for d in dim]
    assert n >= 2 and pair[0] != pair[1], 'linalg.matrix_norm: expected two different dimensions'
    return pair
)"},
    // Singular values over two dimensions, which end up last.
    {"singular_values_over", R"(
def singular_values_over(self: Tensor, pair: List[int]) -> Tensor:
    return torch.linalg.svdvals(self.permute([d for d in range(self.dim()) if d not in pair] + pair))
)"},
    {"in_dtype", R"(
def in_dtype(self: Tensor, dtype: Optional[int]) -> Tensor:
    return self if dtype is None else self.to(dtype)
)"},
    {"matrix_norm_made", R"(
def matrix_norm_made(self: Tensor, order: number, dim: List[int], keepdim: bool, dtype: Optional[int]) -> Tensor:
    p = float(order)
    pair = wrapped_pair(dim, self.dim())
    x = in_dtype(self, dtype)
    if p == 2 or p == -2:
        out = extreme_of(singular_values_over(x, pair), p, -1, False)
        return with_reduced(out, x.size(), pair, False) if keepdim else out
    one = p == 1 or p == -1
    if not one and p != float('inf') and p != -float('inf'):
        raise RuntimeError('linalg.matrix_norm: Order ' + str(p) + ' not supported.')
    summed = pair[0] if one else pair[1]
    other = pair[1] if one else pair[0]
    sums = torch.linalg.vector_norm(x, 1, [summed], keepdim)
    if not keepdim and other > summed:
        other -= 1
    return extreme_of(sums, p, other, keepdim)
)"},
    {"matrix_norm_name_made", R"(
def matrix_norm_name_made(self: Tensor, order: str, dim: List[int], keepdim: bool, dtype: Optional[int]) -> Tensor:
    pair = wrapped_pair(dim, self.dim())
    x = in_dtype(self, dtype)
    if order == 'fro':
        return torch.linalg.vector_norm(x, 2, pair, keepdim)
    if order != 'nuc':
        raise RuntimeError('linalg.matrix_norm: Order ' + order + ' not supported.')
    out = singular_values_over(x, pair).sum(-1)
    return with_reduced(out, x.size(), pair, False) if keepdim else out
)"},
    {"linalg_norm_made", R"(
def linalg_norm_made(self: Tensor, order: Optional[number], dim: Optional[List[int]], keepdim: bool, dtype: Optional[int]) -> Tensor:
    if order is None:
        return torch.linalg.vector_norm(self, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        assert self.dim() <= 2, 'linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D.'
        if self.dim() == 2:
            return torch.linalg.matrix_norm(self, order, [0, 1], keepdim, dtype=dtype)
        return torch.linalg.vector_norm(self, order, dim, keepdim, dtype=dtype)
    if len(dim) == 2:
        return torch.linalg.matrix_norm(self, order, dim, keepdim, dtype=dtype)
    return torch.linalg.vector_norm(self, order, dim, keepdim, dtype=dtype)
)"},
    {"all_but", R"(
def all_but(n: int, dim: int) -> List[int]:
    d = dim if dim >= 0 else dim + n
    return [i for i in range(n) if i != d]
)"},
    // Slices whose norm exceeds the limit are multiplied by limit / (norm + 1e-7).
    {"renorm_gradient", R"(
def renorm_gradient(grad: Tensor, self: Tensor, p: number, dim: int, maxnorm: number) -> Tensor:
    limit = float(maxnorm)
    others = all_but(self.dim(), dim)
    norm = torch.linalg.vector_norm(self, p, others, True)
    inner = self.conj() * grad
    if inner.is_complex():
        inner = torch.real(inner)
    turned = vector_norm_gradient(inner.sum(others, True), self, norm, p, others, True)
    assert turned is not None
    inverse = 1 / (norm + 1e-7)
    return torch.where(norm > limit, limit * inverse * (grad - inverse * turned), grad)
)"},
    {"norm_except_made", R"(
def norm_except_made(v: Tensor, power: int, dim: int) -> Tensor:
    if dim == -1:
        return torch.norm(v, power)
    others = all_but(v.dim(), dim)
    if len(others) == 0:
        return torch.abs(v)
    return torch.norm(v, power, others, True)
)"},
    // The gradients of distances, for each pair's difference; a distance of zero has none.
    {"distance_gradient", R"(
def distance_gradient(grad: Tensor, difference: Tensor, distance: Tensor, p: float) -> Tensor:
    if p == 0:
        return torch.zeros_like(difference)
    if p == 1:
        return difference.sign() * grad
    if p == float('inf'):
        return difference.sign() * grad * (torch.abs(difference) == distance)
    safe = torch.where(distance == 0, 1.0, distance)
    if p == 2:
        return torch.where(distance == 0, 0.0, grad * difference / safe)
    size = torch.where(difference == 0, 1.0, torch.abs(difference))
    slope = difference.sign() * size.pow(p - 1) * grad / safe.pow(p - 1)
    return torch.where(distance == 0, 0.0, slope)
)"},
    // What the kernels of the gradients compute, made of other operators: for second derivatives.
    {"cdist_backward_made", R"(
def cdist_backward_made(grad: Tensor, x1: Tensor, x2: Tensor, p: float, distance: Tensor) -> Tensor:
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    return distance_gradient(grad.unsqueeze(-1), difference, distance.unsqueeze(-1), p).sum(-2)
)"},
    {"pdist_backward_made", R"(
def pdist_backward_made(grad: Tensor, self: Tensor, p: float, distance: Tensor) -> Tensor:
    n = self.size(0)
    pairs = torch.triu_indices(n, n, 1)
    difference = self.index_select(0, pairs[0]) - self.index_select(0, pairs[1])
    each = distance_gradient(grad.unsqueeze(-1), difference, distance.unsqueeze(-1), p)
    return torch.zeros_like(self).index_add(0, pairs[0], each).index_add(0, pairs[1], -each)
)"},
};

constexpr FormulaText kNormsFormulas[] = {
    {"aten::norm.Scalar, aten::norm.ScalarOpt_dtype, aten::native_norm",
     "self: vector_norm_gradient(grad, self, result, p, None, False)"},
    {R"(aten::norm.ScalarOpt_dim, aten::norm.ScalarOpt_dim_dtype,
         aten::native_norm.ScalarOpt_dim_dtype)",
     "self: vector_norm_gradient(grad, self, result, p, dim, keepdim)"},
    {"aten::linalg_vector_norm",
     "self: vector_norm_gradient(grad, self, result, ord, dim, keepdim)"},
    {"aten::frobenius_norm", "self: vector_norm_gradient(grad, self, result, 2, None, False)"},
    {"aten::frobenius_norm.dim", "return frobenius_made(self, dim, keepdim)"},
    {"aten::nuclear_norm", "return torch.linalg.matrix_norm(self, 'nuc', [0, 1], keepdim)"},
    {"aten::nuclear_norm.dim", "return torch.linalg.matrix_norm(self, 'nuc', dim, keepdim)"},
    {"aten::linalg_matrix_norm", "return matrix_norm_made(self, ord, dim, keepdim, dtype)"},
    {"aten::linalg_matrix_norm.str_ord",
     "return matrix_norm_name_made(self, ord, dim, keepdim, dtype)"},
    {"aten::linalg_norm", "return linalg_norm_made(self, ord, dim, keepdim, dtype)"},
    {"aten::linalg_norm.ord_str",
     "return torch.linalg.matrix_norm(self, ord, [0, 1] if dim is None else dim, keepdim, "
     "dtype=dtype)"},
    {"aten::dist", R"(
let g = vector_norm_gradient(grad, self - other, result, p, None, False)
self: g
other: negative_if_any(g)
)"},
    {"aten::renorm", "self: renorm_gradient(grad, self, p, dim, maxnorm)"},
    {"aten::norm_except_dim", "return norm_except_made(v, pow, dim)"},
    {"aten::_weight_norm", "return v * (g / torch.norm_except_dim(v, 2, dim))"},
    {"aten::_weight_norm_interface", R"(
let norms = torch.norm_except_dim(v, 2, dim)
return (v * (g / norms), norms)
)"},
    {"aten::cdist, aten::_cdist_forward", R"(
x1: torch._cdist_backward(grad, x1, x2, p, result)
x2: torch._cdist_backward(grad.transpose(-2, -1), x2, x1, p, result.transpose(-2, -1))
)"},
    {"aten::_euclidean_dist", R"(
x1: torch._cdist_backward(grad, x1, x2, 2.0, result)
x2: torch._cdist_backward(grad.transpose(-2, -1), x2, x1, 2.0, result.transpose(-2, -1))
)"},
    {"aten::_cdist_backward", "return cdist_backward_made(grad, x1, x2, p, cdist)"},
    {"aten::pdist, aten::_pdist_forward", "self: torch._pdist_backward(grad, self, p, result)"},
    {"aten::_pdist_backward", "return pdist_backward_made(grad, self, p, pdist)"},
};
const RegisterFormulas kNormsRegistered(kNormsFormulas, kNormsHelpers);

}  // namespace

}  // namespace wick::autograd
