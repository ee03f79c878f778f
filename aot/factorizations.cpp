// The operators on the device "ahead" that the engine's linear algebra asks for on devices: all else is made of these.
#include "aot/factorizations.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/matrices.h"

namespace wick::aot {

namespace {

using linalg::batchSizes;
using linalg::withSizes;

// Whose codes a tensor may hold, as the recording notes it, and what codes above zero mean.
struct Codes {
  const char* what;
  const char* complaint;
};
constexpr Codes kLu{"codes of LU factors",
                    "the matrix is singular: a diagonal element of its factor is zero"},
    kCholesky{"codes of Cholesky factors",
              "the factorization could not be completed because the input is not "
              "positive-definite"},
    kSpectral{"codes of decompositions",
              "the algorithm failed to converge because the input matrix is ill-conditioned or has "
              "too many repeated singular or eigen values"};

Tensor codesFor(const DimVector& batch) {
  return Tensor::empty(batch, DType::Int, Device{kAhead, -1});
}
void noteCodes(const Codes& codes, const Tensor& info) {
  Recording::current().noteComputed(codes.what, info, info);
}

void requireReal(const char* op, const Tensor& a) {
  linalg::checkMatrix(op, a);
  if (isComplex(a.dtype())) {
    throw NotAhead(fmt::format("{} of {} is not available ahead of time", op, toString(a.dtype())));
  }
}
void requireSquare(const char* op, const Tensor& a) {
  requireReal(op, a);
  linalg::checkSquare(op, a);
}

Tensor columnMajor(const Tensor& a) {
  return linalg::columnMajor(here(a));
}
Tensor empty(const DimVector& sizes, DType dtype) {
  return Tensor::empty(sizes, dtype, Device{kAhead, -1});
}

void call(const char* op, const char* function, const Tensor& like,
          std::vector<FunctionStep::Operand> operands, std::vector<int64_t> numbers,
          std::string complaint = "") {
  addFunction(op, fmt::format("lapack::{}<{}>", function, elementType(op, like)),
              std::move(operands), std::move(numbers), std::move(complaint));
}

// ---- LU ----

Triple luFactors(const char* op, const Tensor& a) {
  requireReal(op, a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const DimVector batch = batchSizes(a);
  const Tensor lu = columnMajor(a), pivots = empty(withSizes(batch, {k}), DType::Int);
  const Tensor info = codesFor(batch);
  if (a.numel() == 0) return {lu, pivots.fill(0), info.numel() > 0 ? info.fill(0) : info};
  call(op, "luFactors", lu, {changes(lu), writes(pivots), writes(info)},
       {checkedNumel(batch), m, n});
  noteCodes(kLu, info);
  return {lu, pivots, info};
}
// The compiled model raises unless all codes are zero.
void requireZeros(const Tensor& info, const std::string& complaint) {
  if (info.numel() == 0) return;
  Recording::current().require(ops::all(ops::eqScalar(info, Scalar(int64_t{0}))), complaint);
}
Triple luFactorEx(const Tensor& a, bool pivot, bool check_errors) {
  const char* op = "linalg.lu_factor_ex";
  WICK_CHECK(pivot || a.numel() == 0, "{}: LU without pivoting is not implemented on the CPU", op);
  Triple all = luFactors(op, a);
  if (check_errors) requireZeros(std::get<2>(all), kLu.complaint);
  return all;
}
Triple luWithInfo(const Tensor& a, bool pivot, bool) {
  return luFactorEx(a, pivot, false);
}

Triple luUnpack(const Tensor& given, const Tensor& pivots, bool data, bool permutation) {
  const char* op = "lu_unpack";
  const Tensor lu = here(given);
  const auto [l, u] = linalg::trianglesOf(op, lu, pivots, data, permutation);
  if (!permutation) return {empty(DimVector{0}, lu.dtype()), l, u};
  const int64_t m = lu.size(-2), k = std::min(m, lu.size(-1));
  const DimVector batch = batchSizes(lu);
  const Tensor p = empty(withSizes(batch, {m, m}), lu.dtype());
  if (p.numel() > 0) {
    call(op, "permutations", p,
         {reads(here(pivots).contiguous()), writes(empty(DimVector{m}, DType::Long)), writes(p)},
         {checkedNumel(batch), m, k}, fmt::format("{}: a pivot is out of range", op));
  }
  return {p, l, u};
}

Tensor luSolveLeft(const char* op, const Tensor& lu_in, const Tensor& pivots_in, const Tensor& b,
                   bool transposed) {
  const int64_t n = lu_in.size(-1), r = b.size(-1);
  const DimVector batch = broadcastShapes(batchSizes(lu_in), batchSizes(b));
  const Tensor lu = columnMajor(here(lu_in).expand(withSizes(batch, {n, n})));
  const Tensor pivots = here(pivots_in).expand(withSizes(batch, {n})).contiguous();
  const Tensor x = columnMajor(here(b).expand(withSizes(batch, {n, r})));
  if (x.numel() == 0) return x;
  call(op, "luSolutions", x, {reads(lu), reads(pivots), changes(x)},
       {checkedNumel(batch), n, r, transposed ? 1 : 0},
       fmt::format("{}: a pivot is out of range", op));
  return x;
}
Tensor luSolve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  const char* op = "linalg.lu_solve";
  requireReal(op, lu);
  linalg::checkFactored(op, lu, pivots, b, left);
  if (left) return luSolveLeft(op, lu, pivots, b, adjoint);
  return luSolveLeft(op, lu, pivots, b.transpose(-2, -1), !adjoint).transpose(-2, -1);
}
Tensor luSolveOld(const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  return luSolve(lu, pivots, b, true, false);
}

// ---- determinants ----

struct Determinants {
  Tensor sign, log_abs, det, lu, pivots;
};
// As the engine: of a dense matrix its transpose is factored.
Determinants determinantsOf(const char* op, const Tensor& a_in) {
  requireSquare(op, a_in);
  const Tensor a = here(a_in);
  const auto [lu, pivots, info] = luFactors(op, a.isContiguous() ? a.transpose(-2, -1) : a);
  const DimVector batch = batchSizes(a);
  const Determinants d{empty(batch, a.dtype()), empty(batch, a.dtype()), empty(batch, a.dtype()),
                       lu, pivots};
  if (d.det.numel() == 0) return d;
  if (a.size(-1) == 0) {
    throw NotAhead(fmt::format("{} of empty matrices is not available ahead of time", op));
  }
  call(op, "determinants", a,
       {reads(lu), reads(pivots), writes(d.sign), writes(d.log_abs), writes(d.det)},
       {d.det.numel(), a.size(-1)});
  return d;
}
Tensor det(const Tensor& a) {
  return determinantsOf("linalg.det", a).det;
}
Triple detInternal(const Tensor& a) {
  const Determinants d = determinantsOf("linalg.det", a);
  return {d.det, d.lu, d.pivots};
}
Pair slogdet(const Tensor& a) {
  const Determinants d = determinantsOf("linalg.slogdet", a);
  return {d.sign, d.log_abs};
}
std::tuple<Tensor, Tensor, Tensor, Tensor> slogdetInternal(const Tensor& a) {
  const Determinants d = determinantsOf("linalg.slogdet", a);
  return {d.sign, d.log_abs, d.lu, d.pivots};
}
Tensor logdet(const Tensor& a) {
  const Determinants d = determinantsOf("logdet", a);
  return ops::add(ops::log(d.sign), d.log_abs);
}

// ---- Cholesky ----

Pair choleskyEx(const Tensor& a, bool upper, bool check_errors) {
  const char* op = "linalg.cholesky_ex";
  requireSquare(op, a);
  const Tensor l = columnMajor((upper ? ops::triu : ops::tril)(a, int64_t{0}));
  const Tensor info = codesFor(batchSizes(a));
  if (a.numel() == 0) return {l, info.numel() > 0 ? info.fill(0) : info};
  call(op, "choleskyFactors", l, {changes(l), writes(info)},
       {info.numel(), a.size(-1), upper ? 1 : 0});
  noteCodes(kCholesky, info);
  if (check_errors) requireZeros(info, kCholesky.complaint);
  return {l, info};
}
Tensor choleskySolve(const Tensor& b, const Tensor& a, bool upper) {
  const char* op = "cholesky_solve";
  requireReal(op, a);
  linalg::checkCholesky(op, a, b);
  const int64_t n = a.size(-1), r = b.size(-1);
  const DimVector batch = broadcastShapes(batchSizes(a), batchSizes(b));
  const Tensor l = columnMajor(here(a).expand(withSizes(batch, {n, n})));
  const Tensor x = columnMajor(here(b).expand(withSizes(batch, {n, r})));
  if (x.numel() == 0) return x;
  call(op, "choleskySolutions", x, {reads(l), changes(x)},
       {checkedNumel(batch), n, r, upper ? 1 : 0});
  return x;
}
Tensor choleskyInverse(const Tensor& a, bool upper) {
  const char* op = "cholesky_inverse";
  requireSquare(op, a);
  const Tensor x = columnMajor(a);
  if (x.numel() == 0) return x;
  call(op, "choleskyInverses", x, {changes(x)},
       {checkedNumel(batchSizes(a)), a.size(-1), upper ? 1 : 0},
       fmt::format("{}: a diagonal element is zero, the inversion could not be completed because "
                   "the input matrix is singular",
                   op));
  return x;
}

// ---- QR ----

Pair geqrf(const Tensor& a) {
  const char* op = "geqrf";
  requireReal(op, a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const DimVector batch = batchSizes(a);
  const Tensor x = columnMajor(a), tau = empty(withSizes(batch, {k}), a.dtype());
  if (x.numel() == 0) return {x, tau.numel() > 0 ? tau.fill(0) : tau};
  call(op, "reflectors", x, {changes(x), writes(tau)}, {checkedNumel(batch), m, n},
       fmt::format("{}: memory cannot be had", op));
  return {x, tau};
}
Tensor householderProduct(const Tensor& a, const Tensor& tau) {
  const char* op = "linalg.householder_product";
  requireReal(op, a);
  linalg::checkReflectors(op, a, tau);
  const Tensor q = columnMajor(a);
  if (q.numel() == 0) return q;
  call(op, "productOfReflectors", q, {changes(q), reads(here(tau).contiguous())},
       {checkedNumel(batchSizes(a)), a.size(-2), a.size(-1), tau.size(-1)},
       fmt::format("{}: memory cannot be had", op));
  return q;
}

// ---- singular values and eigenvalues ----

std::string notFinite(const char* op) {
  return fmt::format("{}: the input is not finite, or memory cannot be had", op);
}

Tensor identities(const DimVector& batch, int64_t rows, int64_t columns, DType dtype) {
  const Tensor one = Tensor::zeros(DimVector{rows, columns}, dtype);
  for (int64_t i = 0; i < std::min(rows, columns); ++i) one.select(0, i).select(0, i).fill(1);
  return here(one).expand(withSizes(batch, {rows, columns})).contiguous();
}

Triple svd(const Tensor& a, bool full, bool vectors, const std::optional<std::string>& driver) {
  const char* op = "linalg.svd";
  WICK_CHECK(!driver,
             "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
             "cuSOLVER backend.");
  requireReal(op, a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const DimVector batch = batchSizes(a);
  const Tensor s = empty(withSizes(batch, {k}), a.dtype());
  Tensor u = empty(DimVector{0}, a.dtype()), vh = u;
  if (vectors && k == 0) {
    u = identities(batch, m, full ? m : k, a.dtype());
    vh = identities(batch, full ? n : k, n, a.dtype());
  } else if (vectors) {
    u = linalg::emptyColumnMajor(withSizes(batch, {m, full ? m : k}), a.dtype(), s.device());
    vh = linalg::emptyColumnMajor(withSizes(batch, {full ? n : k, n}), a.dtype(), s.device());
  }
  if (s.numel() == 0) return {u, s, vh};
  const Tensor x = columnMajor(a), info = codesFor(batch);
  call(op, "singularValues", x,
       {changes(x), writes(s), writes(vectors ? u : Tensor()), writes(vectors ? vh : Tensor()),
        writes(info)},
       {checkedNumel(batch), m, n, full ? 1 : 0}, notFinite(op));
  requireZeros(info, fmt::format("{}: {}", op, kSpectral.complaint));
  return {u, s, vh};
}

Pair eigh(const Tensor& a, const std::string& uplo, bool vectors) {
  const char* op = "linalg.eigh";
  requireSquare(op, a);
  const bool upper = linalg::isUpper(op, uplo);
  const DimVector batch = batchSizes(a);
  const Tensor values = empty(withSizes(batch, {a.size(-1)}), a.dtype()), x = columnMajor(a);
  if (a.numel() == 0) return {values, x};
  const Tensor info = codesFor(batch);
  call(op, "eigenvalues", x, {changes(x), writes(values), writes(info)},
       {checkedNumel(batch), a.size(-1), upper ? 1 : 0, vectors ? 1 : 0}, notFinite(op));
  requireZeros(info, fmt::format("{}: {}", op, kSpectral.complaint));
  return {values, x};
}

// ---- triangular systems ----

Tensor solveTriangular(const char* op, const Tensor& a_in, const Tensor& b_in, bool upper,
                       bool left, bool unit, bool transposed) {
  requireReal(op, a_in);
  linalg::checkSystem(op, a_in, b_in, left);
  const int64_t n = a_in.size(-1), rows = b_in.size(-2), columns = b_in.size(-1);
  const DimVector batch = broadcastShapes(batchSizes(a_in), batchSizes(b_in));
  const Tensor a = columnMajor(here(a_in).expand(withSizes(batch, {n, n})));
  const Tensor x = columnMajor(here(b_in).expand(withSizes(batch, {rows, columns})));
  if (x.numel() == 0) return x;
  call(op, "triangularSolutions", x, {reads(a), changes(x)},
       {checkedNumel(batch), rows, columns, n, left ? 1 : 0, upper ? 1 : 0, transposed ? 1 : 0,
        unit ? 1 : 0});
  return x;
}
Tensor linalgSolveTriangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  return solveTriangular("linalg.solve_triangular", a, b, upper, left, unit, false);
}
Pair triangularSolve(const Tensor& b, const Tensor& a, bool upper, bool transpose, bool unit) {
  const Tensor x = solveTriangular("triangular_solve", a, b, upper, true, unit, transpose);
  return {x, here(a).expand(withSizes(batchSizes(x), {a.size(-2), a.size(-1)})).clone()};
}

const DeviceKernel kFactorizationsKernels[] = {
    {"aten::linalg_lu_factor_ex", WICK_KERNEL(luFactorEx)},
    {"aten::_lu_with_info", WICK_KERNEL(luWithInfo)},
    {"aten::lu_unpack", WICK_KERNEL(luUnpack)},
    {"aten::linalg_lu_solve", WICK_KERNEL(luSolve)},
    {"aten::lu_solve", WICK_KERNEL(luSolveOld)},
    {"aten::linalg_det", WICK_KERNEL(det)},
    {"aten::det", WICK_KERNEL(det)},
    {"aten::_linalg_det", WICK_KERNEL(detInternal)},
    {"aten::linalg_slogdet", WICK_KERNEL(slogdet)},
    {"aten::slogdet", WICK_KERNEL(slogdet)},
    {"aten::_linalg_slogdet", WICK_KERNEL(slogdetInternal)},
    {"aten::logdet", WICK_KERNEL(logdet)},
    {"aten::linalg_cholesky_ex", WICK_KERNEL(choleskyEx)},
    {"aten::cholesky_solve", WICK_KERNEL(choleskySolve)},
    {"aten::cholesky_inverse", WICK_KERNEL(choleskyInverse)},
    {"aten::geqrf", WICK_KERNEL(geqrf)},
    {"aten::linalg_householder_product", WICK_KERNEL(householderProduct)},
    {"aten::_linalg_svd", WICK_KERNEL(svd)},
    {"aten::_linalg_eigh", WICK_KERNEL(eigh)},
    {"aten::linalg_solve_triangular", WICK_KERNEL(linalgSolveTriangular)},
    {"aten::triangular_solve", WICK_KERNEL(triangularSolve)},
};
const RegisterDeviceKernels kFactorizationsRegistered(kAhead, kFactorizationsKernels);

}  // namespace

std::optional<std::string> complaintOfCodes(const Tensor& t) {
  if (t.dtype() != DType::Int || t.numel() == 0) return std::nullopt;
  for (const Codes& codes : {kLu, kCholesky, kSpectral}) {
    if (Recording::current().findComputed(codes.what, t).defined()) return codes.complaint;
  }
  return std::nullopt;
}

}  // namespace wick::aot
