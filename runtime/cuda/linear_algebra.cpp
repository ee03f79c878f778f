// Operators of linear algebra on CUDA devices: those that the others are made of. Factorizations are
// cuSOLVER's (solver.h); what follows from factors column by column has kernels here, one thread a
// column, so that results do not depend on how threads meet.
#include <fmt/format.h>

#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/solver.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/matrices.h"

namespace wick::cuda {

namespace {

using namespace linalg;

// Words: a, x, total columns, columns of a matrix, rows.
constexpr const char* kTriangularText = R"({preamble}{numbers}
typedef {type} T;
struct Words {{ const T* a; T* x; long long total, columns, n; }};
extern "C" __global__ void __launch_bounds__(256) triangular(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const T* const a = p.a + i / p.columns * p.n * p.n;
    T* const x = p.x + i * p.n;
    for (long long step = 0; step < p.n; ++step) {{
      const long long r = {upper} ? p.n - 1 - step : step;
      T v = x[r];
      for (long long k = {upper} ? r + 1 : 0; k < ({upper} ? p.n : r); ++k) v = v - a[k * p.n + r] * x[k];
      x[r] = {unit} ? v : v / a[r * p.n + r];
    }}
  }}
}}
)";

// Words: a, tau, c, total columns, columns of a matrix, rows, elements of a matrix of reflectors, how
// many reflectors.
constexpr const char* kReflectText = R"({preamble}{numbers}
typedef {type} T;
struct Words {{ const T* a; const T* tau; T* c; long long total, columns, m, each, k; }};
extern "C" __global__ void __launch_bounds__(256) reflect(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long matrix = i / p.columns;
    const T* const a = p.a + matrix * p.each;
    T* const c = p.c + i * p.m;
    for (long long step = 0; step < p.k; ++step) {{
      const long long j = {adjoint} ? step : p.k - 1 - step;
      const T* const v = a + j * p.m;
      const T tau = {adjoint} ? wickConj(p.tau[matrix * p.k + j]) : p.tau[matrix * p.k + j];
      T w = c[j];
      for (long long r = j + 1; r < p.m; ++r) w = w + wickConj(v[r]) * c[r];
      w = w * tau;
      c[j] = c[j] - w;
      for (long long r = j + 1; r < p.m; ++r) c[r] = c[r] - v[r] * w;
    }}
  }}
}}
)";

// The rows of each matrix exchanged as pivots say, one thread a column. Words: pivots (int32), x, total
// columns, columns of a matrix, rows, pivots of a matrix.
constexpr const char* kExchangeText = R"({preamble}{numbers}
typedef {type} T;
struct Words {{ const int* pivots; T* x; long long total, columns, n, k; }};
extern "C" __global__ void __launch_bounds__(256) exchange(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const int* const pivots = p.pivots + i / p.columns * p.k;
    T* const x = p.x + i * p.n;
    for (long long step = 0; step < p.k; ++step) {{
      const long long r = {backwards} ? p.k - 1 - step : step, with = pivots[r] - 1;
      if (with < 0 || with >= p.n) continue;
      const T v = x[r];
      x[r] = x[with];
      x[with] = v;
    }}
  }}
}}
)";

Tensor codesFor(const Tensor& a) {
  return Tensor::zeros(batchSizes(a), DType::Int, a.device());
}
Tensor identityLike(const Tensor& a, const DimVector& sizes) {
  const Tensor out = Tensor::zeros(sizes, a.dtype(), a.device());
  if (out.numel() > 0)
    ops::fillWith(ops::diagonal(out, int64_t{0}, int64_t{-2}, int64_t{-1}), Scalar(1));
  return out;
}

// ---- triangular systems ----

// a x = b for column-major x, in place.
void solveInPlace(const Tensor& a, const Tensor& x, bool upper, bool unit) {
  if (x.numel() == 0) return;
  const int64_t n = x.size(-2);
  const std::string text =
      textOf(kTriangularText, x.dtype(), fmt::arg("upper", upper ? "true" : "false"),
             fmt::arg("unit", unit ? "true" : "false"));
  const int64_t total = x.numel() / n;
  launchPoints(x.device(), text, "triangular", total, {wordOf(a), wordOf(x), total, x.size(-1), n});
}
// Reads one triangle of a; `how` is 'N', or 'T' or 'C' for its transpose or adjoint.
Tensor solveTriangle(const Tensor& a, const Tensor& b, bool upper, bool unit, char how) {
  const DimVector batch = broadcastShapes(batchSizes(a), batchSizes(b));
  const int64_t n = a.size(-1);
  const Tensor turned = how == 'N' ? a : how == 'T' ? a.transpose(-2, -1) : adjoint(a);
  const Tensor factors = columnMajor(turned.expand(withSizes(batch, {n, n})));
  const Tensor x = columnMajor(b.expand(withSizes(batch, {n, b.size(-1)})));
  solveInPlace(factors, x, upper != (how != 'N'), unit);
  return x;
}
Tensor linalgSolveTriangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  checkSystem("linalg.solve_triangular", a, b, left);
  if (left) return solveTriangle(a, b, upper, unit, 'N');
  return solveTriangle(a, b.transpose(-2, -1), upper, unit, 'T').transpose(-2, -1);
}
Pair triangularSolve(const Tensor& b, const Tensor& a, bool upper, bool transpose, bool unit) {
  checkSystem("triangular_solve", a, b, true);
  const Tensor x = solveTriangle(a, b, upper, unit, transpose ? 'T' : 'N');
  return {x, a.expand(withSizes(batchSizes(x), {a.size(-2), a.size(-1)})).clone()};
}

// ---- LU ----

Triple luFactorEx(const Tensor& a, bool pivot, bool check_errors) {
  const char* op = "linalg.lu_factor_ex";
  checkMatrix(op, a);
  const int64_t low = std::min(a.size(-2), a.size(-1));
  const Tensor lu = columnMajor(a), info = codesFor(a);
  const Tensor pivots = Tensor::zeros(withSizes(batchSizes(a), {low}), DType::Long, a.device());
  factorLu(op, lu, pivot ? pivots : Tensor(), info);
  if (check_errors) checkInfo(op, info, Failure::SingularFactor);
  // Without pivoting each row stays where it is.
  if (!pivot) pivots.copyFrom(ops::arangeFrom(int64_t{1}, low + 1).expand(pivots.sizes()));
  return {lu, pivots.to(DType::Int), info};
}
Triple luWithInfo(const Tensor& a, bool pivot, bool) {
  return luFactorEx(a, pivot, false);
}

void exchangeRows(const Tensor& pivots, const Tensor& x, bool backwards) {
  if (x.numel() == 0) return;
  const std::string text =
      textOf(kExchangeText, x.dtype(), fmt::arg("backwards", backwards ? "true" : "false"));
  const int64_t total = x.numel() / x.size(-2);
  launchPoints(x.device(), text, "exchange", total,
               {wordOf(pivots), wordOf(x), total, x.size(-1), x.size(-2), pivots.size(-1)});
}
Tensor luSolve(const Tensor& lu_in, const Tensor& pivots_in, const Tensor& b, bool left,
               bool adjoint_) {
  checkFactored("linalg.lu_solve", lu_in, pivots_in, b, left);
  // X A = B is A^H X^H = B^H.
  if (!left) return adjoint(luSolve(lu_in, pivots_in, adjoint(b), true, !adjoint_));
  const int64_t n = lu_in.size(-1);
  const DimVector batch = broadcastShapes(batchSizes(lu_in), batchSizes(b));
  const Tensor pivots = pivots_in.expand(withSizes(batch, {n})).contiguous();
  Tensor x = columnMajor(b.expand(withSizes(batch, {n, b.size(-1)})));
  if (x.numel() == 0) return x;
  if (!adjoint_) {
    exchangeRows(pivots, x, false);
    x = solveTriangle(lu_in, x, false, true, 'N');
    return solveTriangle(lu_in, x, true, false, 'N');
  }
  x = solveTriangle(lu_in, x, true, false, 'C');
  x = solveTriangle(lu_in, x, false, true, 'C');
  exchangeRows(pivots, x, true);
  return x;
}
Tensor luSolveOld(const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  return luSolve(lu, pivots, b, true, false);
}
Triple luUnpack(const Tensor& lu, const Tensor& pivots, bool data, bool permutation) {
  const auto [l, u] = trianglesOf("lu_unpack", lu, pivots, data, permutation);
  const DType type = lu.dtype();
  if (!permutation) return {Tensor::empty(DimVector{0}, type, lu.device()), l, u};
  // The exchanges undone on the columns of the identity.
  const Tensor real =
      Tensor::empty(DimVector{0}, isComplex(type) ? toRealType(type) : type, lu.device());
  const int64_t m = lu.size(-2);
  const Tensor p = columnMajor(identityLike(real, withSizes(batchSizes(lu), {m, m})));
  exchangeRows(pivots.contiguous(), p, true);
  return {p.to(type).contiguous(), l, u};
}

// ---- Cholesky ----

Pair choleskyEx(const Tensor& a, bool upper, bool check_errors) {
  const char* op = "linalg.cholesky_ex";
  checkSquare(op, a);
  const Tensor l = columnMajor(upper ? ops::triu(a) : ops::tril(a)), info = codesFor(a);
  factorCholesky(op, l, upper, info);
  if (check_errors) checkInfo(op, info, Failure::NotPositive);
  return {l, info};
}
Tensor choleskySolve(const Tensor& b, const Tensor& a, bool upper) {
  checkCholesky("cholesky_solve", a, b);
  const Tensor first = solveTriangle(a, b, upper, false, upper ? 'C' : 'N');
  return solveTriangle(a, first, upper, false, upper ? 'N' : 'C');
}
Tensor choleskyInverse(const Tensor& a, bool upper) {
  checkSquare("cholesky_inverse", a);
  return choleskySolve(identityLike(a, DimVector(a.sizes())), a, upper);
}

// ---- QR ----

Pair geqrf(const Tensor& a) {
  const char* op = "geqrf";
  checkMatrix(op, a);
  const int64_t low = std::min(a.size(-2), a.size(-1));
  const Tensor x = columnMajor(a);
  const Tensor tau = Tensor::zeros(withSizes(batchSizes(a), {low}), a.dtype(), a.device());
  factorQr(op, x, tau, codesFor(a));
  return {x, tau};
}
// Q c, or Q^H c, of the reflectors in `a`, into column-major c.
void reflect(const Tensor& a_in, const Tensor& tau_in, const Tensor& c, bool adjoint_) {
  if (c.numel() == 0) return;
  const Tensor a = columnMajor(a_in), tau = tau_in.contiguous();
  const std::string text =
      textOf(kReflectText, c.dtype(), fmt::arg("adjoint", adjoint_ ? "true" : "false"));
  const int64_t m = c.size(-2), total = c.numel() / m;
  launchPoints(
      c.device(), text, "reflect", total,
      {wordOf(a), wordOf(tau), wordOf(c), total, c.size(-1), m, m * a.size(-1), tau.size(-1)});
}
Tensor householderProduct(const Tensor& a, const Tensor& tau) {
  checkReflectors("linalg.householder_product", a, tau);
  const Tensor q = columnMajor(identityLike(a, DimVector(a.sizes())));
  reflect(a, tau, q, false);
  return q;
}
Tensor ormqr(const Tensor& self, const Tensor& tau, const Tensor& other, bool left,
             bool transpose) {
  checkReflected("ormqr", self, tau, other, left);
  if (left) {
    const Tensor c = columnMajor(other);
    reflect(self, tau, c, transpose);
    return c;
  }
  // C Q is (Q^H C^H)^H.
  const Tensor c = columnMajor(adjoint(other));
  reflect(self, tau, c, !transpose);
  return adjoint(c);
}

// ---- singular values and eigenvalues ----

void checkDriver(const char* op, const std::optional<std::string>& driver) {
  WICK_CHECK(!driver || *driver == "gesvd", "{}: the driver {} is not there", op,
             driver.value_or(""));
}
void checkFinite(const char* op, const Tensor& a) {
  if (a.numel() == 0) return;
  WICK_CHECK(ops::all(ops::isFinite(a)).item<bool>(),
             "{}: The algorithm failed to converge because the input matrix contained non-finite "
             "values.",
             op);
}
Triple svd(const Tensor& a, bool full, bool vectors, const std::optional<std::string>& driver) {
  const char* op = "linalg.svd";
  checkDriver(op, driver);
  checkMatrix(op, a);
  checkFinite(op, a);
  const int64_t m = a.size(-2), n = a.size(-1), low = std::min(m, n);
  const DimVector batch = batchSizes(a);
  const Tensor none = Tensor::empty(DimVector{0}, a.dtype(), a.device());
  const Tensor s = Tensor::empty(withSizes(batch, {low}), toRealType(a.dtype()), a.device());
  if (a.numel() == 0) {
    if (!vectors) return {none, s, none};
    return {identityLike(a, withSizes(batch, {m, full ? m : low})), s,
            identityLike(a, withSizes(batch, {full ? n : low, n}))};
  }
  // The routine takes no wide matrices: A^H = V S U^H.
  const bool wide = m < n;
  const int64_t high = std::max(m, n);
  const Tensor x = columnMajor(wide ? adjoint(a) : a), info = codesFor(a);
  Tensor u, vh;
  if (vectors) {
    u = emptyColumnMajor(withSizes(batch, {high, full ? high : low}), a.dtype(), a.device());
    vh = emptyColumnMajor(withSizes(batch, {low, low}), a.dtype(), a.device());
  }
  singularValues(op, x, s, u, vh, info);
  checkInfo(op, info, Failure::NoConvergence);
  if (!vectors) return {none, s, none};
  if (wide) return {adjoint(vh), s, adjoint(u)};
  return {u, s, vh};
}
Pair eigh(const Tensor& a, const std::string& uplo, bool vectors) {
  const char* op = "linalg.eigh";
  const bool upper = isUpper(op, uplo);
  checkSquare(op, a);
  checkFinite(op, a);
  const Tensor x = columnMajor(a), info = codesFor(a);
  const Tensor values =
      Tensor::empty(withSizes(batchSizes(a), {a.size(-1)}), toRealType(a.dtype()), a.device());
  hermitianEigenvalues(op, x, values, upper, vectors, info);
  checkInfo(op, info, Failure::NoConvergence);
  return {values, vectors ? x : Tensor::empty(DimVector{0}, a.dtype(), a.device())};
}
Pair eigAny(const char* op, const Tensor& a, bool vectors) {
  checkSquare(op, a);
  checkFinite(op, a);
  const DType dtype = toComplexType(a.dtype());
  const Tensor values = Tensor::empty(withSizes(batchSizes(a), {a.size(-1)}), dtype, a.device());
  const Tensor v = vectors ? emptyColumnMajor(DimVector(a.sizes()), dtype, a.device()) : Tensor();
  if (a.numel() == 0) return {values, v};
  const Tensor info = codesFor(a);
  eigenvalues(op, columnMajor(a.to(dtype)), values, v, info);
  checkInfo(op, info, Failure::NoConvergence);
  return {values, v};
}
Pair eig(const Tensor& a) {
  return eigAny("linalg.eig", a, true);
}
Tensor eigvals(const Tensor& a) {
  return std::get<0>(eigAny("linalg.eigvals", a, false));
}

const DeviceKernel kLinearAlgebraKernels[] = {
    {"aten::linalg_solve_triangular", WICK_KERNEL(linalgSolveTriangular)},
    {"aten::triangular_solve", WICK_KERNEL(triangularSolve)},
    {"aten::linalg_lu_factor_ex", WICK_KERNEL(luFactorEx)},
    {"aten::_lu_with_info", WICK_KERNEL(luWithInfo)},
    {"aten::linalg_lu_solve", WICK_KERNEL(luSolve)},
    {"aten::lu_solve", WICK_KERNEL(luSolveOld)},
    {"aten::lu_unpack", WICK_KERNEL(luUnpack)},
    {"aten::linalg_cholesky_ex", WICK_KERNEL(choleskyEx)},
    {"aten::cholesky_solve", WICK_KERNEL(choleskySolve)},
    {"aten::_cholesky_solve_helper", WICK_KERNEL(choleskySolve)},
    {"aten::cholesky_inverse", WICK_KERNEL(choleskyInverse)},
    {"aten::geqrf", WICK_KERNEL(geqrf)},
    {"aten::linalg_householder_product", WICK_KERNEL(householderProduct)},
    {"aten::orgqr", WICK_KERNEL(householderProduct)},
    {"aten::ormqr", WICK_KERNEL(ormqr)},
    {"aten::_linalg_svd", WICK_KERNEL(svd)},
    {"aten::_linalg_eigh", WICK_KERNEL(eigh)},
    {"aten::linalg_eig", WICK_KERNEL(eig)},
    {"aten::linalg_eigvals", WICK_KERNEL(eigvals)},
};
const RegisterDeviceKernels kLinearAlgebraRegistered(DeviceType::CUDA, kLinearAlgebraKernels);

}  // namespace

}  // namespace wick::cuda
