// Factorizations of matrices, spectra, and what is made of them.
//
// Where a factor is only determined up to a phase, a loss that depends on the phase has no
// gradient; that is an error, as it is one that a result was not computed that the gradient needs.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kDecompositionsHelpers[] = {
    // With A = L L^H: dL = L proj(L^-1 dA L^-H), where proj takes the lower triangle and half the
    // diagonal.
    {"cholesky_gradient", R"(
def cholesky_gradient(grad: Tensor, factor: Tensor, upper: bool) -> Tensor:
    L = transposed_adjoint(factor) if upper else factor
    g = transposed_adjoint(grad) if upper else grad
    m = torch.matmul(transposed_adjoint(L), g).tril()
    m = 0.5 * (m + transposed_adjoint(m.tril(-1)))
    m = torch.linalg.solve_triangular(transposed_adjoint(L), m, upper=True)
    return torch.linalg.solve_triangular(L, m, upper=False, left=False)
)"},
    // The gradient of a square A = L U from those of its factors.
    {"lu_square", R"(
def lu_square(lower: Tensor, upper: Tensor, L: Tensor, U: Tensor) -> Tensor:
    m = lower.tril(-1) + upper.triu()
    m = torch.linalg.solve_triangular(transposed_adjoint(U), m, upper=False, left=False)
    return torch.linalg.solve_triangular(transposed_adjoint(L), m, upper=True, unitriangular=True)
)"},
    // A = P L U. What a factor has beyond its square part follows from that part and A, and passes
    // its
    // gradient on to both.
    {"lu_gradient", R"(
def lu_gradient(grad_L: Tensor, grad_U: Tensor, P: Tensor, L: Tensor, U: Tensor) -> Tensor:
    m = L.size(-2)
    n = U.size(-1)
    k = min(m, n)
    if m == 0 or n == 0:
        return torch.matmul(grad_L, grad_U)
    L1 = L.narrow(-2, 0, k)
    U1 = U.narrow(-1, 0, k)
    lower = torch.matmul(transposed_adjoint(L1), grad_L.narrow(-2, 0, k))
    upper = torch.matmul(grad_U.narrow(-1, 0, k), transposed_adjoint(U1))
    if m < n:
        rest = grad_U.narrow(-1, k, n - k)
        lower = lower - torch.matmul(rest, transposed_adjoint(U.narrow(-1, k, n - k)))
        right = torch.linalg.solve_triangular(transposed_adjoint(L1), rest, upper=True, unitriangular=True)
        whole = torch.cat([lu_square(lower, upper, L1, U1), right], -1)
    elif m > n:
        rest = grad_L.narrow(-2, k, m - k)
        upper = upper - torch.matmul(transposed_adjoint(L.narrow(-2, k, m - k)), rest)
        below = torch.linalg.solve_triangular(transposed_adjoint(U1), rest, upper=False, left=False)
        whole = torch.cat([lu_square(lower, upper, L1, U1), below], -2)
    else:
        whole = lu_square(lower, upper, L1, U1)
    return torch.matmul(P, whole)
)"},
    {"lu_factor_gradient", R"(
def lu_factor_gradient(grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    P, L, U = torch.lu_unpack(LU, pivots)
    k = min(LU.size(-1), LU.size(-2))
    return lu_gradient(grad.narrow(-1, 0, k), grad.narrow(-2, 0, k), P, L, U)
)"},
    {"lu_unpack_gradient", R"(
def lu_unpack_gradient(grad_L: Optional[Tensor], grad_U: Optional[Tensor], LU: Tensor) -> Tensor:
    m = LU.size(-2)
    n = LU.size(-1)
    out = torch.zeros_like(LU)
    if grad_L is not None and grad_L.numel() > 0:
        lower = grad_L.tril(-1)
        if n > m:
            lower = torch.cat([lower, torch.zeros_like(LU.narrow(-1, m, n - m))], -1)
        out = out + lower
    if grad_U is not None and grad_U.numel() > 0:
        upper = grad_U.triu()
        if m > n:
            upper = torch.cat([upper, torch.zeros_like(LU.narrow(-2, n, m - n))], -2)
        out = out + upper
    return out
)"},
    // Of Q R with the first columns square: with X = triu(gR R^H - Q^H gQ), made Hermitian, it is
    // (gQ + Q X) R^-H. Further columns of A are Q times those of R.
    {"qr_gradient", R"(
def qr_gradient(grad_Q: Optional[Tensor], grad_R: Optional[Tensor], Q: Tensor, R: Tensor, mode: str) -> Optional[Tensor]:
    if mode == 'r':
        raise RuntimeError('The derivative of linalg.qr depends on Q, which is not computed when mode is "r". Please use mode="reduced" if you are going to differentiate through linalg.qr.')
    m = Q.size(-2)
    n = R.size(-1)
    if mode == 'complete' and m > n:
        raise RuntimeError('The QR decomposition is not differentiable when mode is "complete" and nrows > ncols.')
    if grad_Q is None and grad_R is None:
        return None
    gQ = torch.zeros_like(Q) if grad_Q is None else grad_Q
    gR = torch.zeros_like(R) if grad_R is None else grad_R
    R1 = R
    g1 = gR
    if m < n:
        R1 = R.narrow(-1, 0, m)
        g1 = gR.narrow(-1, 0, m)
        columns = torch.matmul(Q, R.narrow(-1, m, n - m))
        gQ = gQ + torch.matmul(columns, transposed_adjoint(gR.narrow(-1, m, n - m)))
    x = torch.matmul(g1, transposed_adjoint(R1)) - torch.matmul(transposed_adjoint(Q), gQ)
    above = x.triu(1)
    diagonal = x.diagonal(0, -2, -1)
    if x.is_complex():
        diagonal = torch.real(diagonal).to(x.dtype)
    x = above + transposed_adjoint(above) + torch.diag_embed(diagonal)
    out = torch.linalg.solve_triangular(transposed_adjoint(R1), gQ + torch.matmul(Q, x), upper=False, left=False)
    if m < n:
        return torch.cat([out, torch.matmul(Q, gR.narrow(-1, m, n - m))], -1)
    return out
)"},
    // The first columns of the product of the reflectors 1 - tau v v^H, the last one applied first.
    {"householder_made", R"(
def householder_made(input: Tensor, tau: Tensor) -> Tensor:
    m = input.size(-2)
    n = input.size(-1)
    assert m >= n, 'linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]'
    assert tau.dim() == input.dim() - 1 and tau.size(-1) <= n, 'linalg.householder_product: tau does not match input'
    out = torch.eye(m, n, dtype=input.dtype, device=input.device).expand(input.size())
    for back in range(tau.size(-1)):
        i = tau.size(-1) - 1 - back
        v = reflector(input, i)
        out = out - tau.narrow(-1, i, 1).unsqueeze(-1) * torch.matmul(v, torch.matmul(transposed_adjoint(v), out))
    return out.clone() if tau.size(-1) == 0 else out
)"},
    {"reflector", R"(
def reflector(input: Tensor, i: int) -> Tensor:
    m = input.size(-2)
    column = input.narrow(-1, i, 1)
    above = torch.zeros_like(column.narrow(-2, 0, i))
    one = torch.ones_like(column.narrow(-2, 0, 1))
    return torch.cat([above, one, column.narrow(-2, i + 1, m - i - 1)], -2)
)"},
    {"check_phase", R"(
def check_phase(diagonal: Tensor, what: str):
    if diagonal.is_complex():
        turn = torch.imag(diagonal.detach())
        if not torch.allclose(turn, torch.zeros_like(turn), 1e-2, 1e-2):
            raise RuntimeError(what + ' in the complex case are specified up to multiplication by e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined.')
)"},
    // With a = 1 on the diagonal, where nothing is divided.
    {"spectral_gaps", R"(
def spectral_gaps(values: Tensor) -> Tensor:
    d = values.unsqueeze(-2) - values.unsqueeze(-1)
    return d + torch.eye(values.size(-1), dtype=values.dtype, device=values.device)
)"},
    {"svd_gradient", R"(
def svd_gradient(grad_U: Optional[Tensor], grad_S: Optional[Tensor], grad_Vh: Optional[Tensor], full_U: Tensor, S: Tensor, full_Vh: Tensor) -> Optional[Tensor]:
    if full_U.dim() < 2 or full_Vh.dim() < 2:
        raise RuntimeError("svd_backward: the singular vectors, which the gradient needs, were not computed (compute_uv=False).")
    k = S.size(-1)
    U = full_U.narrow(-1, 0, k)
    Vh = full_Vh.narrow(-2, 0, k)
    if grad_U is None and grad_Vh is None:
        if grad_S is None:
            return None
        if U.size(-2) >= Vh.size(-1):
            return torch.matmul(U, grad_S.unsqueeze(-1) * Vh)
        return torch.matmul(U * grad_S.unsqueeze(-2), Vh)
    gU = torch.zeros_like(U) if grad_U is None else grad_U.narrow(-1, 0, k)
    gVh = torch.zeros_like(Vh) if grad_Vh is None else grad_Vh.narrow(-2, 0, k)
    u = torch.matmul(transposed_adjoint(U), gU)
    u = u - transposed_adjoint(u)
    v = torch.matmul(Vh, transposed_adjoint(gVh))
    v = v - transposed_adjoint(v)
    check_phase((u + v).diagonal(0, -2, -1), 'svd_backward: The singular vectors')
    down = S.unsqueeze(-1)
    along = S.unsqueeze(-2)
    middle = (u * along + down * v) / spectral_gaps(S * S)
    if grad_S is not None:
        middle = middle - torch.diag_embed(middle.diagonal(0, -2, -1)) + torch.diag_embed(grad_S)
    else:
        middle = middle - torch.diag_embed(middle.diagonal(0, -2, -1))
    if u.is_complex():
        middle = middle + torch.diag_embed(u.diagonal(0, -2, -1) / (2 * S))
    left = torch.matmul(U, middle)
    if grad_U is not None and U.size(-2) > k:
        outside = gU / along
        left = left + outside - torch.matmul(U, torch.matmul(transposed_adjoint(U), outside))
    out = torch.matmul(left, Vh)
    if grad_Vh is not None and Vh.size(-1) > k:
        outside = gVh / down
        outside = outside - torch.matmul(torch.matmul(outside, transposed_adjoint(Vh)), Vh)
        out = out + torch.matmul(U, outside)
    return out
)"},
    {"adjoint_if_any", R"(
def adjoint_if_any(t: Optional[Tensor]) -> Optional[Tensor]:
    if t is None:
        return None
    return transposed_adjoint(t)
)"},
    {"old_svd_gradient", R"(
def old_svd_gradient(grad_U: Optional[Tensor], grad_S: Optional[Tensor], grad_V: Optional[Tensor], self: Tensor, U: Tensor, S: Tensor, V: Tensor, compute_uv: bool) -> Optional[Tensor]:
    if compute_uv:
        return svd_gradient(grad_U, grad_S, adjoint_if_any(grad_V), U, S, transposed_adjoint(V))
    if grad_S is None:
        return None
    vectors, values, adjoint = torch.linalg.svd(self, False)
    return svd_gradient(None, grad_S, None, vectors, values, adjoint)
)"},
    {"eigh_gradient", R"(
def eigh_gradient(grad_L: Optional[Tensor], grad_V: Optional[Tensor], L: Tensor, V: Tensor, computed: bool) -> Optional[Tensor]:
    if not computed:
        raise RuntimeError('linalg_eig_backward: the eigenvectors, which the gradient needs, were not computed. Use torch.linalg.eigvalsh(A) instead.')
    Vh = transposed_adjoint(V)
    if grad_V is None:
        if grad_L is None:
            return None
        return torch.matmul(V * grad_L.unsqueeze(-2), Vh)
    m = torch.matmul(Vh, grad_V)
    check_phase(m.diagonal(0, -2, -1), 'linalg_eig_backward: The eigenvectors')
    m = 0.5 * (m - transposed_adjoint(m)) / spectral_gaps(L)
    m = m - torch.diag_embed(m.diagonal(0, -2, -1))
    if grad_L is not None:
        m = m + torch.diag_embed(grad_L)
    return torch.matmul(V, torch.matmul(m, Vh))
)"},
    {"eig_gradient", R"(
def eig_gradient(grad_L: Optional[Tensor], grad_V: Optional[Tensor], L: Tensor, V: Tensor) -> Optional[Tensor]:
    Vh = transposed_adjoint(V)
    if grad_V is None:
        if grad_L is None:
            return None
        return torch.linalg.solve(Vh, grad_L.unsqueeze(-1) * Vh)
    m = torch.matmul(Vh, grad_V)
    diagonal = m.diagonal(0, -2, -1)
    check_phase(diagonal, 'linalg_eig_backward: The eigenvectors')
    m = m - torch.matmul(Vh, V * torch.real(diagonal).unsqueeze(-2))
    m = m / spectral_gaps(L).conj()
    m = m - torch.diag_embed(m.diagonal(0, -2, -1))
    if grad_L is not None:
        m = m + torch.diag_embed(grad_L)
    return torch.linalg.solve(Vh, torch.matmul(m, Vh))
)"},
    // Where the rank does not change: with P the inverse,
    // dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P.
    {"pinv_gradient", R"(
def pinv_gradient(grad: Tensor, A: Tensor, P: Tensor) -> Tensor:
    Ph = transposed_adjoint(P)
    Gh = transposed_adjoint(grad)
    out = -torch.matmul(Ph, torch.matmul(grad, Ph))
    if A.size(-2) <= A.size(-1):
        left = torch.matmul(torch.matmul(Gh, P), Ph)
        middle = torch.matmul(Ph, P)
        right = torch.matmul(middle, Gh - torch.matmul(torch.matmul(Gh, P), A))
    else:
        middle = torch.matmul(P, Ph)
        left = torch.matmul(Gh, middle)
        right = torch.matmul(Ph, torch.matmul(P, Gh))
        right = right - torch.matmul(torch.matmul(right, P), A)
    return out + left - torch.matmul(A, torch.matmul(P, left)) + right
)"},
    {"lstsq_A", R"(
def lstsq_A(grad: Tensor, A: Tensor, b: Tensor, b_size: List[int]) -> Tensor:
    vectors = solves_vectors(A.size(), b_size)
    g = grad.unsqueeze(-1) if vectors else grad
    right = b.unsqueeze(-1) if vectors else b
    P = torch.linalg.pinv(A)
    return pinv_gradient(torch.matmul(g, transposed_adjoint(right)), A, P)
)"},
    {"lstsq_b", R"(
def lstsq_b(grad: Tensor, A: Tensor, b_size: List[int]) -> Tensor:
    adjoint = transposed_adjoint(torch.linalg.pinv(A))
    if solves_vectors(A.size(), b_size):
        return torch.matmul(adjoint, grad.unsqueeze(-1)).squeeze(-1)
    return torch.matmul(adjoint, grad)
)"},
    {"cond_made", R"(
def cond_made(self: Tensor, p: Optional[number]) -> Tensor:
    order = 2.0 if p is None else float(p)
    if order == 2 or order == -2:
        if self.numel() == 0:
            return torch.linalg.cond(self.detach(), p)
        S = torch.linalg.svdvals(self)
        high = S.select(-1, 0)
        low = S.select(-1, S.size(-1) - 1)
        return high / low if order > 0 else low / high
    inverse, info = torch.linalg.inv_ex(self)
    product = torch.linalg.matrix_norm(self, order) * torch.linalg.matrix_norm(inverse, order)
    return product.masked_fill(info != 0, float('inf'))
)"},
    {"cond_name_made", R"(
def cond_name_made(self: Tensor, p: str) -> Tensor:
    inverse, info = torch.linalg.inv_ex(self)
    product = torch.linalg.matrix_norm(self, p) * torch.linalg.matrix_norm(inverse, p)
    return product.masked_fill(info != 0, float('inf'))
)"},
};

constexpr FormulaText kDecompositionsFormulas[] = {
    {"aten::linalg_cholesky, aten::cholesky", "self: cholesky_gradient(grad, result, upper)"},
    {"aten::linalg_cholesky_ex", "results 0\nself: cholesky_gradient(grad0, result0, upper)"},
    {"aten::linalg_lu_factor, aten::linalg_lu_factor_ex",
     "results 0\nA: lu_factor_gradient(grad0, result0, result1)"},
    {"aten::_lu_with_info", "results 0\nself: lu_factor_gradient(grad0, result0, result1)"},
    {"aten::linalg_lu", R"(
results 1 2
A: lu_gradient(grad1, grad2, result0, result1, result2)
)"},
    {"aten::lu_unpack", R"(
results 1 2
let unused = grad1 is None or grad2 is None
LU_data: lu_unpack_gradient(grad1, grad2, LU_data)
)"},
    {"aten::linalg_qr", R"(
let unused = grad0 is None or grad1 is None
A: qr_gradient(grad0, grad1, result0, result1, mode)
)"},
    {"aten::qr", R"(
let unused = grad0 is None or grad1 is None
self: qr_gradient(grad0, grad1, result0, result1, 'reduced' if some else 'complete')
)"},
    {"aten::linalg_householder_product", "return householder_made(input, tau)"},
    {"aten::orgqr", "return householder_made(self, input2)"},

    {"aten::linalg_svd, aten::_linalg_svd", R"(
let unused = grad0 is None or grad1 is None or grad2 is None
A: svd_gradient(grad0, grad1, grad2, result0, result1, result2)
)"},
    {"aten::svd", R"(
let unused = grad0 is None or grad1 is None or grad2 is None
self: old_svd_gradient(grad0, grad1, grad2, self, result0, result1, result2, compute_uv)
)"},
    {"aten::linalg_svdvals", "return torch.linalg.svd(A, False, driver=driver)[1]"},
    {"aten::linalg_eigh", R"(
let unused = grad0 is None or grad1 is None
self: eigh_gradient(grad0, grad1, result0, result1, True)
)"},
    {"aten::_linalg_eigh", R"(
let unused = grad0 is None or grad1 is None
A: eigh_gradient(grad0, grad1, result0, result1, compute_v)
)"},
    {"aten::symeig", R"(
let unused = grad0 is None or grad1 is None
self: eigh_gradient(grad0, grad1, result0, result1, eigenvectors)
)"},
    {"aten::linalg_eigvalsh", "return torch.linalg.eigh(self, UPLO)[0]"},
    {"aten::linalg_eig", R"(
let unused = grad0 is None or grad1 is None
self: eig_gradient(grad0, grad1, result0, result1)
)"},
    {"aten::linalg_eigvals", "return torch.linalg.eig(self)[0]"},

    {R"(aten::linalg_pinv.atol_rtol_tensor, aten::linalg_pinv.atol_rtol_float, aten::linalg_pinv,
         aten::linalg_pinv.rcond_tensor, aten::pinverse)",
     "self: pinv_gradient(grad, self, result)"},
    {"aten::linalg_lstsq", R"(
results 0
self: lstsq_A(grad0, self, b, b_size)
b: lstsq_b(grad0, self, b_size)
)"},
    {"aten::linalg_cond", "return cond_made(self, p)"},
    {"aten::linalg_cond.p_str", "return cond_name_made(self, p)"},
};

const RegisterFormulas kDecompositionsRegistered(kDecompositionsFormulas, kDecompositionsHelpers);

}  // namespace

}  // namespace wick::autograd
