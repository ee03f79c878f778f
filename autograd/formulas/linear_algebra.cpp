// Products of matrices and vectors, inverses, determinants and solutions of linear systems.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kLinearAlgebraHelpers[] = {
    // Of matmul's first argument, whose sizes are `size`; broadcast dimensions remain.
    {"matmul_left", R"(
def matmul_left(grad: Tensor, other: Tensor, size: List[int]) -> Tensor:
    if len(size) == 1 and other.dim() == 1:
        return grad * other.conj()
    g = grad.unsqueeze(-2) if len(size) == 1 else grad
    o = other
    if other.dim() == 1:
        g = g.unsqueeze(-1)
        o = other.unsqueeze(-1)
    if len(size) == 2 and g.dim() > 2:
        rows = g.movedim(-2, 0).flatten(1)
        return torch.mm(rows, transposed_adjoint(o).flatten(0, -2))
    out = torch.matmul(g, transposed_adjoint(o))
    return out.squeeze(-2) if len(size) == 1 else out
)"},
    // Of its second.
    {"matmul_right", R"(
def matmul_right(grad: Tensor, self: Tensor, size: List[int]) -> Tensor:
    if len(size) == 1 and self.dim() == 1:
        return grad * self.conj()
    g = grad.unsqueeze(-1) if len(size) == 1 else grad
    s = self
    if self.dim() == 1:
        g = g.unsqueeze(-2)
        s = self.unsqueeze(0)
    if len(size) <= 2 and s.dim() > 2:
        out = torch.mm(s.flatten(0, -2).t().conj(), g.flatten(0, -2))
    else:
        out = torch.matmul(transposed_adjoint(s), g)
    return out.squeeze(-1) if len(size) == 1 else out
)"},
    {"linear_input", R"(
def linear_input(grad: Tensor, weight: Tensor) -> Tensor:
    if weight.dim() == 1:
        return grad.unsqueeze(-1) * weight.conj()
    return torch.matmul(grad, weight.conj())
)"},
    {"linear_weight", R"(
def linear_weight(grad: Tensor, input: Tensor, size: List[int]) -> Tensor:
    if len(size) == 1:
        return torch.mv(input.reshape(grad.numel(), size[0]).t().conj(), grad.flatten())
    if input.dim() == 1:
        return torch.outer(grad, input.conj())
    return torch.mm(grad.flatten(0, -2).t(), input.flatten(0, -2).conj())
)"},
    {"linear_fused_made", R"(
def linear_fused_made(input: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor], activation: str) -> Tensor:
    out = torch.nn.functional.linear(input, weight, bias)
    if residual is not None:
        out = out + residual
    return epilogue_made(out, activation)
)"},
    {"epilogue_made", R"(
def epilogue_made(sum: Tensor, activation: str) -> Tensor:
    if activation == '' or activation == 'none':
        return sum
    if activation == 'relu':
        return torch.relu(sum)
    if activation == 'sigmoid':
        return torch.sigmoid(sum)
    if activation == 'tanh':
        return torch.tanh(sum)
    if activation == 'gelu':
        return torch.nn.functional.gelu(sum)
    if activation == 'silu':
        return torch.nn.functional.silu(sum)
    if activation == 'relu6':
        return torch.nn.functional.relu6(sum)
    if activation == 'hardswish':
        return torch.nn.functional.hardswish(sum)
    raise RuntimeError('expected the name of an activation, got "' + activation + '"')
)"},
    // All products of two elements, one of either input, then one product with the weight.
    {"bilinear_made", R"(
def bilinear_made(input1: Tensor, input2: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    assert input1.dim() == input2.dim(), 'bilinear: the inputs have different numbers of dimensions'
    pairs = (input1.unsqueeze(-1) * input2.unsqueeze(-2)).flatten(-2)
    return torch.nn.functional.linear(pairs, weight.flatten(1), bias)
)"},
    {"tensordot_made", R"(
def tensordot_made(self: Tensor, other: Tensor, dims_self: List[int], dims_other: List[int]) -> Tensor:
    assert len(dims_self) == len(dims_other), 'tensordot: both dimension lists should have same length'
    a = self
    b = other
    inner_a: List[int] = []
    inner_b: List[int] = []
    for i in range(len(dims_self)):
        da = dims_self[i] if dims_self[i] >= 0 else dims_self[i] + self.dim()
        db = dims_other[i] if dims_other[i] >= 0 else dims_other[i] + other.dim()
        if self.size(da) == 1 and other.size(db) != 1:
            b = b.sum([db], True)
        if other.size(db) == 1 and self.size(da) != 1:
            a = a.sum([da], True)
        assert a.size(da) == b.size(db), 'tensordot: contracted dimensions need to match'
        inner_a.append(da)
        inner_b.append(db)
    outer_a = [d for d in range(self.dim()) if d not in inner_a]
    outer_b = [d for d in range(other.dim()) if d not in inner_b]
    rows = [a.size(d) for d in outer_a]
    columns = [b.size(d) for d in outer_b]
    inner = count_of([a.size(d) for d in inner_a], None)
    left = a.permute(outer_a + inner_a).reshape(count_of(rows, None), inner)
    right = b.permute(inner_b + outer_b).reshape(inner, count_of(columns, None))
    return torch.mm(left, right).reshape(rows + columns)
)"},
    {"inner_made", R"(
def inner_made(self: Tensor, other: Tensor) -> Tensor:
    if self.dim() == 0 or other.dim() == 0:
        return self * other
    assert self.size(-1) == other.size(-1), 'inner: the last dimension must match on both input tensors'
    return tensordot_made(self, other, [-1], [-1])
)"},
    {"kron_made", R"(
def kron_made(self: Tensor, other: Tensor) -> Tensor:
    n = max(self.dim(), other.dim())
    a: List[int] = []
    b: List[int] = []
    size: List[int] = []
    for d in range(n):
        da = d - (n - self.dim())
        db = d - (n - other.dim())
        sa = 1 if da < 0 else self.size(da)
        sb = 1 if db < 0 else other.size(db)
        a += [sa, 1]
        b += [1, sb]
        size.append(sa * sb)
    return (self.reshape(a) * other.reshape(b)).reshape(size)
)"},
    // Of each matrix of a chain: the product of what is left of it, the gradient, and what is right
    // of it, whose order the chain's own operator chooses.
    {"chain_gradients", R"(
def chain_gradients(grad: Tensor, tensors: List[Tensor]) -> List[Tensor]:
    n = len(tensors)
    if n == 1:
        return [grad]
    m = [t for t in tensors]
    g = grad
    if tensors[0].dim() == 1:
        m[0] = m[0].unsqueeze(0)
        g = g.unsqueeze(0)
    if tensors[-1].dim() == 1:
        m[-1] = m[-1].unsqueeze(1)
        g = g.unsqueeze(-1)
    out: List[Tensor] = []
    for i in range(n):
        factors: List[Tensor] = []
        for k in range(i):
            factors.append(m[i - 1 - k].t().conj())
        factors.append(g)
        for k in range(n - 1 - i):
            factors.append(m[n - 1 - k].t().conj())
        out.append(torch.linalg.multi_dot(factors).reshape(tensors[i].size()))
    return out
)"},
    // Where cross() looks for three elements.
    {"cross_dim", R"(
def cross_dim(size: List[int], dim: Optional[int]) -> int:
    if dim is not None:
        return dim
    for d in range(len(size)):
        if size[d] == 3:
            return d
    return 0
)"},
    {"matrix_power_made", R"(
def matrix_power_made(self: Tensor, n: int) -> Tensor:
    if n == 0:
        nothing = self.masked_fill(torch.ones_like(self, dtype=torch.bool), 0)
        return nothing + torch.eye(self.size(-1), dtype=self.dtype, device=self.device)
    base = torch.linalg.inv(self) if n < 0 else self
    rest = -n if n < 0 else n
    result: Optional[Tensor] = None
    while rest > 0:
        if rest % 2 == 1:
            result = base if result is None else torch.matmul(result, base)
        rest = rest // 2
        if rest > 0:
            base = torch.matmul(base, base)
    assert result is not None
    return result.clone() if n == 1 else result
)"},
    // The exponential of [[A^H, G], [0, A^H]] has the gradient in its corner.
    {"matrix_exp_gradient", R"(
def matrix_exp_gradient(grad: Tensor, self: Tensor) -> Tensor:
    n = self.size(-1)
    a = transposed_adjoint(self)
    above = torch.cat([a, grad], -1)
    below = torch.cat([torch.zeros_like(a), a], -1)
    return torch.linalg.matrix_exp(torch.cat([above, below], -2)).narrow(-2, 0, n).narrow(-1, n, n)
)"},
    {"tensorinv_made", R"(
def tensorinv_made(self: Tensor, ind: int) -> Tensor:
    assert ind > 0, "Expected a strictly positive integer for 'ind'"
    rows, columns = self.size()[:ind], self.size()[ind:]
    matrix = self.reshape(count_of(rows, None), count_of(columns, None))
    return torch.linalg.inv(matrix).reshape(columns + rows)
)"},
    {"tensorsolve_made", R"(
def tensorsolve_made(self: Tensor, other: Tensor, dims: Optional[List[int]]) -> Tensor:
    a = self
    if dims is not None:
        last = [d if d >= 0 else d + self.dim() for d in dims]
        a = self.permute([d for d in range(self.dim()) if d not in last] + last)
    size = a.size()[other.dim():]
    n = count_of(size, None)
    return torch.linalg.solve(a.reshape(n, n), other.flatten()).reshape(size)
)"},
    {"linalg_vander_made", R"(
def linalg_vander_made(x: Tensor, N: Optional[int]) -> Tensor:
    t = x.unsqueeze(0) if x.dim() == 0 else x
    n = t.size(-1) if N is None else N
    assert n > 1, 'N must be greater than 1.'
    powers = t.unsqueeze(-1).expand(t.size() + [n - 1]).cumprod(-1)
    return torch.cat([torch.ones(t.size() + [1], dtype=x.dtype, device=x.device), powers], -1)
)"},
    {"vander_made", R"(
def vander_made(x: Tensor, N: Optional[int], increasing: bool) -> Tensor:
    n = x.numel() if N is None else N
    assert x.dim() == 1, 'x must be a one-dimensional tensor'
    assert n >= 0, 'N must be non-negative'
    if n == 0:
        return x.unsqueeze(-1).narrow(1, 0, 0)
    ones = torch.ones([x.numel(), 1], dtype=x.dtype, device=x.device)
    powers = torch.cat([ones, x.unsqueeze(-1).expand(x.numel(), n - 1).cumprod(-1)], -1)
    return powers if increasing else powers.flip([1])
)"},
    {"cov_made", R"(
def cov_made(self: Tensor, correction: int, fweights: Optional[Tensor], aweights: Optional[Tensor]) -> Tensor:
    assert self.dim() <= 2, 'cov(): expected input to have two or fewer dimensions'
    x = self.reshape(1, -1) if self.dim() < 2 else self
    w: Optional[Tensor] = fweights
    if aweights is not None:
        w = aweights if fweights is None else fweights * aweights
    if w is None:
        centred = x - x.sum(1, True) / x.size(1)
        c = torch.mm(centred, centred.t().conj()) / max(x.size(1) - correction, 0)
        return c.reshape([]) if c.numel() == 1 else c
    total = w.sum()
    assert float(total) != 0, "cov(): weights sum to zero, can't be normalized"
    centred = x - (x * w).sum(1, True) / total
    divisor = total - correction
    if aweights is not None and correction != 0:
        divisor = total - correction * (w * aweights).sum() / total
    if float(divisor) <= 0:
        divisor = torch.zeros_like(divisor)
    right = (centred * w).t().conj()
    c = torch.mm(centred.to(right.dtype), right) / divisor
    return c.reshape([]) if c.numel() == 1 else c
)"},
    {"corrcoef_made", R"(
def corrcoef_made(self: Tensor) -> Tensor:
    c = torch.cov(self)
    if c.dim() == 0:
        return c / c
    d = c.diagonal()
    if c.is_complex():
        deviation = torch.sqrt(torch.real(d))
        c = c / deviation.unsqueeze(1) / deviation.unsqueeze(0)
        return torch.complex(torch.real(c).clamp(-1, 1), torch.imag(c).clamp(-1, 1))
    deviation = torch.sqrt(d)
    return (c / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clamp(-1, 1)
)"},
    {"inverse_gradient", R"(
def inverse_gradient(grad: Tensor, inverse: Tensor) -> Tensor:
    adjoint = transposed_adjoint(inverse)
    return -torch.matmul(adjoint, torch.matmul(grad, adjoint))
)"},
    // w times the inverse of the adjoint, which need not exist.
    {"scaled_inverse_adjoint", R"(
def scaled_inverse_adjoint(weight: Tensor, A: Tensor) -> Tensor:
    inverse, info = torch.linalg.inv_ex(transposed_adjoint(A))
    return weight.unsqueeze(-1).unsqueeze(-1) * inverse
)"},
    // The adjugate and the determinant of a small matrix as polynomials of its elements (Faddeev
    // and LeVerrier).
    {"small_adjugate", R"(
def small_adjugate(A: Tensor) -> Tuple[Tensor, Tensor]:
    n = A.size(-1)
    eye = torch.eye(n, dtype=A.dtype, device=A.device)
    m = eye
    for k in range(1, n):
        product = torch.mm(A, m)
        m = product - eye * (product.diagonal().sum() / k)
    det = torch.mm(A, m).diagonal().sum() / n
    sign = 1.0 if n % 2 == 1 else -1.0
    return m * sign, det * sign
)"},
    // The adjugate of any matrix, with right derivatives: in the bases of the singular vectors,
    // which are constants here, the part of full rank is inverted and what remains is small.
    {"adjugate", R"(
def adjugate(A: Tensor, eps: float) -> Tensor:
    n = A.size(-1)
    U, S, Vh = torch.linalg.svd(A.detach())
    k = int((S > S[0] * (eps ** 0.5)).sum())
    M = torch.mm(U.t().conj(), torch.mm(A, Vh.t().conj()))
    if k == 0:
        inner, determinant = small_adjugate(M)
    else:
        regular = M.narrow(0, 0, k).narrow(1, 0, k)
        inverse = torch.linalg.inv(regular)
        size = torch.linalg.det(regular)
        inner = inverse * size
        if k < n:
            right = torch.mm(inverse, M.narrow(0, 0, k).narrow(1, k, n - k))
            below = M.narrow(0, k, n - k)
            left = torch.mm(below.narrow(1, 0, k), inverse)
            rest = below.narrow(1, k, n - k) - torch.mm(below.narrow(1, 0, k), right)
            small, det = small_adjugate(rest)
            row = torch.cat([det * inverse + torch.mm(right, torch.mm(small, left)), -torch.mm(right, small)], 1)
            inner = size * torch.cat([row, torch.cat([-torch.mm(small, left), small], 1)], 0)
    turn = torch.linalg.det(U) * torch.linalg.det(Vh)
    return turn * torch.mm(Vh.t().conj(), torch.mm(inner, U.t().conj()))
)"},
    // The gradient of a determinant is the adjugate's adjoint, by way of the inverse where there is
    // one.
    {"det_gradient", R"(
def det_gradient(grad: Tensor, A: Tensor, det: Tensor) -> Tensor:
    if A.numel() == 0:
        return torch.zeros_like(A)
    eps = 2.220446049250313e-16 if det.dtype == torch.float64 or det.dtype == torch.complex128 else 1.1920928955078125e-07
    singular = torch.abs(det.detach()) < 100 * eps
    if not bool(singular.any()):
        return scaled_inverse_adjoint(grad * det.conj(), A)
    n = A.size(-1)
    mask = singular.unsqueeze(-1).unsqueeze(-1)
    # What the other way is for is put out of its sight, since 0 * nan is nan.
    regular = scaled_inverse_adjoint(grad * det.conj(), torch.where(mask, torch.eye(n, dtype=A.dtype, device=A.device), A))
    flags = singular.flatten()
    matrices = A.reshape(-1, n, n)
    parts: List[Tensor] = []
    for i in range(matrices.size(0)):
        parts.append(adjugate(matrices[i], eps) if bool(flags[i]) else torch.zeros_like(matrices[i]))
    adjugates = transposed_adjoint(torch.stack(parts).reshape(A.size()))
    return torch.where(mask, grad.unsqueeze(-1).unsqueeze(-1) * adjugates, regular)
)"},
    {"slogdet_gradient", R"(
def slogdet_gradient(grad_sign: Optional[Tensor], grad_log: Optional[Tensor], A: Tensor, sign: Tensor) -> Optional[Tensor]:
    weight: Optional[Tensor] = grad_log
    if grad_sign is not None and A.is_complex():
        turn = torch.imag(grad_sign.conj() * sign) * -1j
        weight = turn if weight is None else weight + turn
    if weight is None:
        return None
    return scaled_inverse_adjoint(weight.to(A.dtype), A)
)"},
    // Whether solve() takes the right side for a batch of vectors.
    {"solves_vectors", R"(
def solves_vectors(a: List[int], b: List[int]) -> bool:
    return len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])
)"},
    {"solve_B", R"(
def solve_B(grad: Tensor, A: Tensor, B_size: List[int], left: bool) -> Tensor:
    adjoint = transposed_adjoint(A)
    if solves_vectors(A.size(), B_size):
        return torch.linalg.solve(adjoint, grad.unsqueeze(-1)).squeeze(-1)
    return torch.linalg.solve(adjoint, grad, left=left)
)"},
    // Of a matrix that may be singular, for which solve() raises an error.
    {"solve_ex_B", R"(
def solve_ex_B(grad: Tensor, A: Tensor, B_size: List[int], left: bool) -> Tensor:
    adjoint = transposed_adjoint(A)
    if solves_vectors(A.size(), B_size):
        return torch.linalg.solve_ex(adjoint, grad.unsqueeze(-1))[0].squeeze(-1)
    return torch.linalg.solve_ex(adjoint, grad, left=left)[0]
)"},
    {"solve_A", R"(
def solve_A(grad_B: Tensor, A_size: List[int], B_size: List[int], X: Tensor, left: bool) -> Tensor:
    if solves_vectors(A_size, B_size):
        return -torch.matmul(grad_B.unsqueeze(-1), transposed_adjoint(X.unsqueeze(-1)))
    if left:
        return -torch.matmul(grad_B, transposed_adjoint(X))
    return -torch.matmul(transposed_adjoint(X), grad_B)
)"},
    {"triangle_of", R"(
def triangle_of(t: Tensor, upper: bool, unit: bool) -> Tensor:
    if upper:
        return t.triu(1 if unit else 0)
    return t.tril(-1 if unit else 0)
)"},
    {"triangular_A", R"(
def triangular_A(grad_B: Tensor, X: Tensor, upper: bool, left: bool, unit: bool) -> Tensor:
    adjoint = transposed_adjoint(X)
    product = torch.matmul(grad_B, adjoint) if left else torch.matmul(adjoint, grad_B)
    return -triangle_of(product, upper, unit)
)"},
    {"old_triangular_A", R"(
def old_triangular_A(grad: Tensor, copied: Optional[Tensor], A: Tensor, X: Tensor, upper: bool, transpose: bool, unit: bool) -> Tensor:
    g = old_triangular_B(grad, A, upper, transpose, unit)
    product = torch.matmul(X.conj(), g.transpose(-2, -1)) if transpose else torch.matmul(g, transposed_adjoint(X))
    out = -triangle_of(product, upper, unit)
    return out if copied is None else out + copied
)"},
    {"old_triangular_B", R"(
def old_triangular_B(grad: Tensor, A: Tensor, upper: bool, transpose: bool, unit: bool) -> Tensor:
    return torch.triangular_solve(grad, A.conj(), upper, not transpose, unit)[0]
)"},
    {"cholesky_solve_L", R"(
def cholesky_solve_L(grad: Tensor, X: Tensor, L: Tensor, upper: bool) -> Tensor:
    product = torch.matmul(torch.cholesky_solve(grad, L, upper), transposed_adjoint(X))
    common = product + transposed_adjoint(product)
    return -torch.matmul(L, common) if upper else -torch.matmul(common, L)
)"},
    {"cholesky_inverse_gradient", R"(
def cholesky_inverse_gradient(grad: Tensor, L: Tensor, upper: bool, inverse: Tensor) -> Tensor:
    both = grad + transposed_adjoint(grad)
    common = torch.matmul(inverse, torch.matmul(both, inverse))
    return -torch.matmul(L, common) if upper else -torch.matmul(common, L)
)"},
    // Through the matrix A = P L U whose factors they are.
    {"lu_solve_LU", R"(
def lu_solve_LU(grad: Tensor, LU: Tensor, pivots: Tensor, X: Tensor, left: bool, adjoint: bool) -> Tensor:
    g = torch.linalg.lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
    x = transposed_adjoint(X)
    grad_A = -torch.matmul(g, x) if left else -torch.matmul(x, g)
    if adjoint:
        grad_A = transposed_adjoint(grad_A)
    P, L, U = torch.lu_unpack(LU, pivots)
    rows = torch.matmul(P.transpose(-2, -1), grad_A)
    lower = torch.matmul(rows, transposed_adjoint(U)).tril(-1)
    return lower + torch.matmul(transposed_adjoint(L), rows).triu()
)"},
};

constexpr FormulaText kLinearAlgebraFormulas[] = {
    {"aten::matmul", R"(
self: matmul_left(grad, other, self_size)
other: matmul_right(grad, self, other_size)
)"},
    {"aten::linear", R"(
input: linear_input(grad, weight)
weight: linear_weight(grad, input, weight_size)
bias: grad
)"},
    {"wick::linear_fused", "return linear_fused_made(input, weight, bias, residual, activation)"},
    // What the optimizer multiplies by in a loop: the copy is the same weight.
    {"wick::loop_weight", "none"},
    {"aten::mkldnn_linear", R"(
self: linear_input(grad, weight)
weight: linear_weight(grad, self, weight_size)
bias: grad
)"},
    {"aten::bilinear", "return bilinear_made(input1, input2, weight, bias)"},
    {"aten::vdot", "self: grad.conj() * other\nother: grad * self"},
    {"aten::inner", "return inner_made(self, other)"},
    {"aten::outer", R"(
self: torch.mv(grad, vec2.conj().to(grad.dtype))
vec2: torch.mv(grad.t(), self.conj().to(grad.dtype))
)"},
    {"aten::_addmm_activation", R"(
let sum = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
return torch.nn.functional.gelu(sum) if use_gelu else torch.relu(sum)
)"},
    {"aten::addmv", R"(
self: scaled(grad, beta)
mat: scaled(torch.outer(grad, vec.conj()), alpha)
vec: scaled(torch.mv(mat.t().conj(), grad), alpha)
)"},
    {"aten::addr", R"(
self: scaled(grad, beta)
vec1: scaled(torch.mv(grad, vec2.conj().to(grad.dtype)), alpha)
vec2: scaled(torch.mv(grad.t(), vec1.conj().to(grad.dtype)), alpha)
)"},
    {"aten::addbmm, aten::addbmm_", R"(
self: scaled(grad, beta)
batch1: scaled(torch.matmul(grad, transposed_adjoint(batch2)), alpha)
batch2: scaled(torch.matmul(transposed_adjoint(batch1), grad), alpha)
)"},
    {"aten::baddbmm", R"(
self: scaled(grad, beta)
batch1: scaled(torch.bmm(grad, transposed_adjoint(batch2)), alpha)
batch2: scaled(torch.bmm(transposed_adjoint(batch1), grad), alpha)
)"},
    {"aten::tensordot", "return tensordot_made(self, other, dims_self, dims_other)"},
    {"aten::kron", "return kron_made(self, other)"},
    {"aten::chain_matmul", "matrices: chain_gradients(grad, matrices)"},
    {"aten::linalg_multi_dot", "tensors: chain_gradients(grad, tensors)"},
    {"aten::cross", R"(
let d = cross_dim(self_size, dim)
self: torch.linalg.cross(other.conj(), grad, dim=d)
other: torch.linalg.cross(grad, self.conj(), dim=d)
)"},
    {"aten::linalg_cross", R"(
self: torch.linalg.cross(other.conj(), grad, dim=dim)
other: torch.linalg.cross(grad, self.conj(), dim=dim)
)"},
    // The dimension is one of the product, whose operands may have fewer.
    {"aten::linalg_vecdot", "x: grad.conj().unsqueeze(dim) * y\ny: grad.unsqueeze(dim) * x"},
    {"aten::linalg_matrix_power", "return matrix_power_made(self, n)"},
    {"aten::matrix_exp, aten::linalg_matrix_exp", "self: matrix_exp_gradient(grad, self)"},
    {"aten::_compute_linear_combination", "return torch.tensordot(coefficients, input, [1], [0])"},
    {"aten::linalg_tensorinv", "return tensorinv_made(self, ind)"},
    {"aten::linalg_tensorsolve", "return tensorsolve_made(self, other, dims)"},
    {"aten::linalg_vander", "return linalg_vander_made(x, N)"},
    {"aten::vander", "return vander_made(x, N, increasing)"},
    {"aten::cov", "return cov_made(self, correction, fweights, aweights)"},
    {"aten::corrcoef", "return corrcoef_made(self)"},

    {"aten::linalg_inv", "A: inverse_gradient(grad, result)"},
    {"aten::inverse", "self: inverse_gradient(grad, result)"},
    {"aten::linalg_inv_ex", "results 0\nA: inverse_gradient(grad0, result0)"},
    {"aten::linalg_det", "A: det_gradient(grad, A, result)"},
    {"aten::det", "self: det_gradient(grad, self, result)"},
    {"aten::_linalg_det", "results 0\nA: det_gradient(grad0, A, result0)"},
    {"aten::linalg_slogdet", R"(
let unused = grad0 is None or grad1 is None
A: slogdet_gradient(grad0, grad1, A, result0)
)"},
    {"aten::slogdet", R"(
let unused = grad0 is None or grad1 is None
self: slogdet_gradient(grad0, grad1, self, result0)
)"},
    {"aten::_linalg_slogdet", R"(
results 0 1
let unused = grad0 is None or grad1 is None
A: slogdet_gradient(grad0, grad1, A, result0)
)"},
    // Of a negative determinant's logarithm, which is a constant NaN, zeros.
    {"aten::logdet",
     "self: scaled_inverse_adjoint(grad if self.is_complex() else "
     "torch.where(result.isnan(), 0, grad), self)"},
    {"aten::linalg_solve", R"(
let g = solve_B(grad, A, B_size, left)
A: solve_A(g, A_size, B_size, result, left)
B: g
)"},
    {"aten::linalg_solve_ex, aten::_linalg_solve_ex", R"(
results 0
let g = solve_ex_B(grad0, A, B_size, left)
A: solve_A(g, A_size, B_size, result0, left)
B: g
)"},
    {"aten::linalg_solve_triangular", R"(
let a = transposed_adjoint(self)
let g = torch.linalg.solve_triangular(a, grad, upper=not upper, left=left, unitriangular=unitriangular)
self: triangular_A(g, result, upper, left, unitriangular)
B: g
)"},
    {"aten::triangular_solve", R"(
let unused = grad1 is None
self: old_triangular_B(grad0, A, upper, transpose, unitriangular)
A: old_triangular_A(grad0, grad1, A, result0, upper, transpose, unitriangular)
)"},
    {"aten::cholesky_solve", R"(
self: torch.cholesky_solve(grad, input2, upper)
input2: cholesky_solve_L(grad, result, input2, upper)
)"},
    {"aten::_cholesky_solve_helper", R"(
self: torch.cholesky_solve(grad, A, upper)
A: cholesky_solve_L(grad, result, A, upper)
)"},
    {"aten::cholesky_inverse", "self: cholesky_inverse_gradient(grad, self, upper, result)"},
    {"aten::linalg_lu_solve", R"(
LU: lu_solve_LU(grad, LU, pivots, result, left, adjoint)
B: torch.linalg.lu_solve(LU, pivots, grad, left=left, adjoint=not adjoint)
)"},
    {"aten::lu_solve", R"(
self: torch.linalg.lu_solve(LU_data, LU_pivots, grad, adjoint=True)
LU_data: lu_solve_LU(grad, LU_data, LU_pivots, result, True, False)
)"},
};

const RegisterFormulas kLinearAlgebraRegistered(kLinearAlgebraFormulas, kLinearAlgebraHelpers);

}  // namespace

}  // namespace wick::autograd
