// The operators on the device "ahead" that the engine's linear algebra asks for on devices: all else is made of these.
#include "aot/factorizations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
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

namespace wick::aot {

namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

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
  WICK_CHECK(a.dim() >= 2, "{}: The input tensor A must have at least 2 dimensions, but has {}", op,
             a.dim());
  WICK_CHECK(a.dtype() == DType::Float || a.dtype() == DType::Double || isComplex(a.dtype()),
             "{}: Expected a floating point or complex tensor as input. Got {}", op,
             scalarTypeName(a.dtype()));
  if (isComplex(a.dtype())) {
    throw NotAhead(fmt::format("{} of {} is not available ahead of time", op, toString(a.dtype())));
  }
  WICK_CHECK(a.size(-1) < 30000 && a.size(-2) < 30000, "{}: matrices of shape {} are too large", op,
             formatInts(a.sizes()));
}
void requireSquare(const char* op, const Tensor& a) {
  requireReal(op, a);
  WICK_CHECK(a.size(-1) == a.size(-2),
             "{}: A must be batches of square matrices, but they are {} by {} matrices", op,
             a.size(-2), a.size(-1));
}

// As runtime/ops/linear_algebra/matrices.h has them.
Tensor columnMajor(const Tensor& a) {
  return here(a).transpose(-2, -1).clone(MemoryFormat::Contiguous).transpose(-2, -1);
}
DimVector batchOf(const Tensor& a) {
  return DimVector(a.sizes().first(static_cast<size_t>(a.dim() - 2)));
}
DimVector with(DimVector batch, std::initializer_list<int64_t> rest) {
  for (const int64_t r : rest) batch.push_back(r);
  return batch;
}
Tensor empty(const DimVector& sizes, DType dtype) {
  return Tensor::empty(sizes, dtype, Device{kAhead, -1});
}
Tensor emptyColumnMajor(DimVector sizes, DType dtype) {
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return empty(sizes, dtype).transpose(-2, -1);
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
  const DimVector batch = batchOf(a);
  const Tensor lu = columnMajor(a), pivots = empty(with(batch, {k}), DType::Int);
  const Tensor info = codesFor(batch);
  if (a.numel() == 0) return {lu, pivots.fill(0), info.numel() > 0 ? info.fill(0) : info};
  call(op, "luFactors", lu, {changes(lu), writes(pivots), writes(info)},
       {checkedNumel(batch), m, n});
  noteCodes(kLu, info);
  return {lu, pivots, info};
}
// The compiled model raises unless all codes are zero.
void requireZeros(const Tensor& info, const std::string& complaint) {
  static const OperatorHandle kEqual{"aten::eq", "Scalar"}, kAll{"aten::all", ""};
  if (info.numel() == 0) return;
  Recording::current().require(kAll(kEqual(info, Scalar(int64_t{0}))), complaint);
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

Triple luUnpack(const Tensor& lu_in, const Tensor& pivots, bool data, bool permutation) {
  static const OperatorHandle kTril("aten::tril", ""), kTriu("aten::triu", "");
  const char* op = "lu_unpack";
  WICK_CHECK(lu_in.dim() >= 2 && lu_in.size(-1) < 30000 && lu_in.size(-2) < 30000,
             "{}: expected matrices, and none of 30000 rows or columns, got {}", op,
             lu_in.describe());
  const Tensor lu = here(lu_in);
  const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  const DimVector batch = batchOf(lu);
  const Tensor none = empty(DimVector{0}, lu.dtype());
  Tensor p = none, l = none, u = none;
  if (data) {
    l = Tensor(kTril(lu.narrow(lu.dim() - 1, 0, k), int64_t{-1})).clone(MemoryFormat::Contiguous);
    u = kTriu(lu.narrow(lu.dim() - 2, 0, k), int64_t{0});
    if (l.numel() > 0) Tensor(ops::diagonal(l, int64_t{0}, int64_t{-2}, int64_t{-1})).fill(1);
  }
  if (permutation) {
    WICK_CHECK(pivots.dtype() == DType::Int && pivots.dim() == lu.dim() - 1 &&
                   pivots.size(-1) == k && pivots.numel() == checkedNumel(batch) * k,
               "{}: LU_pivots is expected to be a batch of {} 32-bit integers, got {}", op, k,
               pivots.describe());
    p = empty(with(batch, {m, m}), lu.dtype());
    if (p.numel() > 0) {
      call(op, "permutations", p,
           {reads(here(pivots).contiguous()), writes(empty(DimVector{m}, DType::Long)), writes(p)},
           {checkedNumel(batch), m, k}, fmt::format("{}: a pivot is out of range", op));
    }
  }
  return {p, l, u};
}

Tensor luSolveLeft(const char* op, const Tensor& lu_in, const Tensor& pivots_in, const Tensor& b,
                   bool transposed) {
  const int64_t n = lu_in.size(-1), r = b.size(-1);
  WICK_CHECK(b.size(-2) == n,
             "{}: Incompatible shapes of A and B for the equation AX = B ({}x{} and {}x{})", op, n,
             n, b.size(-2), r);
  const DimVector batch = broadcastShapes(batchOf(lu_in), batchOf(b));
  const Tensor lu = columnMajor(here(lu_in).expand(with(batch, {n, n})));
  const Tensor pivots = here(pivots_in).expand(with(batch, {n})).contiguous();
  const Tensor x = columnMajor(here(b).expand(with(batch, {n, r})));
  if (x.numel() == 0) return x;
  call(op, "luSolutions", x, {reads(lu), reads(pivots), changes(x)},
       {checkedNumel(batch), n, r, transposed ? 1 : 0},
       fmt::format("{}: a pivot is out of range", op));
  return x;
}
Tensor luSolve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint) {
  const char* op = "linalg.lu_solve";
  requireSquare(op, lu);
  requireReal(op, b);
  WICK_CHECK(lu.dtype() == b.dtype() && pivots.dtype() == DType::Int &&
                 pivots.dim() == lu.dim() - 1 && pivots.size(-1) == lu.size(-1),
             "{}: expected factors of one dtype and 32-bit pivots, got {}, {} and {}", op,
             lu.describe(), pivots.describe(), b.describe());
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
  const DimVector batch = batchOf(a);
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
  static const OperatorHandle kTril("aten::tril", ""), kTriu("aten::triu", "");
  const char* op = "linalg.cholesky_ex";
  requireSquare(op, a);
  const Tensor l = columnMajor((upper ? kTriu : kTril)(a, int64_t{0}));
  const Tensor info = codesFor(batchOf(a));
  if (a.numel() == 0) return {l, info.numel() > 0 ? info.fill(0) : info};
  call(op, "choleskyFactors", l, {changes(l), writes(info)},
       {info.numel(), a.size(-1), upper ? 1 : 0});
  noteCodes(kCholesky, info);
  if (check_errors) requireZeros(info, kCholesky.complaint);
  return {l, info};
}
Tensor choleskySolve(const Tensor& b, const Tensor& a, bool upper) {
  const char* op = "cholesky_solve";
  requireSquare(op, a);
  requireReal(op, b);
  const int64_t n = a.size(-1), r = b.size(-1);
  WICK_CHECK(b.size(-2) == n && a.dtype() == b.dtype(),
             "{}: Incompatible matrix sizes: each A matrix is {} by {} but each b matrix is {} by "
             "{}",
             op, n, n, b.size(-2), r);
  const DimVector batch = broadcastShapes(batchOf(a), batchOf(b));
  const Tensor l = columnMajor(here(a).expand(with(batch, {n, n})));
  const Tensor x = columnMajor(here(b).expand(with(batch, {n, r})));
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
       {checkedNumel(batchOf(a)), a.size(-1), upper ? 1 : 0},
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
  const DimVector batch = batchOf(a);
  const Tensor x = columnMajor(a), tau = empty(with(batch, {k}), a.dtype());
  if (x.numel() == 0) return {x, tau.numel() > 0 ? tau.fill(0) : tau};
  call(op, "reflectors", x, {changes(x), writes(tau)}, {checkedNumel(batch), m, n},
       fmt::format("{}: memory cannot be had", op));
  return {x, tau};
}
Tensor householderProduct(const Tensor& a, const Tensor& tau) {
  const char* op = "linalg.householder_product";
  requireReal(op, a);
  WICK_CHECK(a.size(-2) >= a.size(-1),
             "{}: input.shape[-2] must be greater than or equal to input.shape[-1]", op);
  WICK_CHECK(tau.dim() == a.dim() - 1 && tau.size(-1) <= a.size(-1) && tau.dtype() == a.dtype() &&
                 tau.numel() == checkedNumel(batchOf(a)) * tau.size(-1),
             "{}: Expected tau to match input of shape {}, got {}", op, formatInts(a.sizes()),
             tau.describe());
  const Tensor q = columnMajor(a);
  if (q.numel() == 0) return q;
  call(op, "productOfReflectors", q, {changes(q), reads(here(tau).contiguous())},
       {checkedNumel(batchOf(a)), a.size(-2), a.size(-1), tau.size(-1)},
       fmt::format("{}: memory cannot be had", op));
  return q;
}

// ---- singular values and eigenvalues ----

std::string notFinite(const char* op) {
  return fmt::format("{}: the input is not finite, or memory cannot be had", op);
}

Triple svd(const Tensor& a, bool full, bool vectors, const std::optional<std::string>& driver) {
  const char* op = "linalg.svd";
  WICK_CHECK(!driver,
             "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
             "cuSOLVER backend.");
  requireReal(op, a);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const DimVector batch = batchOf(a);
  if (k == 0) throw NotAhead("linalg.svd of empty matrices is not available ahead of time");
  const Tensor s = empty(with(batch, {k}), a.dtype());
  Tensor u = empty(DimVector{0}, a.dtype()), vh = u;
  if (vectors) {
    u = emptyColumnMajor(with(batch, {m, full ? m : k}), a.dtype());
    vh = emptyColumnMajor(with(batch, {full ? n : k, n}), a.dtype());
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
  WICK_CHECK(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u",
             "{}: Expected UPLO argument to be 'L' or 'U', but got {}", op, uplo);
  const DimVector batch = batchOf(a);
  const Tensor values = empty(with(batch, {a.size(-1)}), a.dtype()), x = columnMajor(a);
  if (a.numel() == 0) return {values, x};
  const Tensor info = codesFor(batch);
  call(op, "eigenvalues", x, {changes(x), writes(values), writes(info)},
       {checkedNumel(batch), a.size(-1), uplo == "U" || uplo == "u" ? 1 : 0, vectors ? 1 : 0},
       notFinite(op));
  requireZeros(info, fmt::format("{}: {}", op, kSpectral.complaint));
  return {values, x};
}

// ---- triangular systems ----

Tensor solveTriangular(const char* op, const Tensor& a_in, const Tensor& b_in, bool upper,
                       bool left, bool unit, bool transposed) {
  requireSquare(op, a_in);
  requireReal(op, b_in);
  WICK_CHECK(a_in.dtype() == b_in.dtype(),
             "{}: Expected A and B to have the same dtype, got {} and {}", op,
             toString(a_in.dtype()), toString(b_in.dtype()));
  const int64_t n = a_in.size(-1), rows = b_in.size(-2), columns = b_in.size(-1);
  WICK_CHECK((left ? rows : columns) == n,
             "{}: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})", op,
             left ? "AX = B" : "XA = B", n, n, rows, columns);
  const DimVector batch = broadcastShapes(batchOf(a_in), batchOf(b_in));
  const Tensor a = columnMajor(here(a_in).expand(with(batch, {n, n})));
  const Tensor x = columnMajor(here(b_in).expand(with(batch, {rows, columns})));
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
  return {x, here(a).expand(with(batchOf(x), {a.size(-2), a.size(-1)})).clone()};
}

// The engine's own, which copy what the operators behind them gave.
void own(CallFrame& frame) {
  frame.op->record().kernel(frame);
}

const DeviceKernel kKernels[] = {
    {"aten::geqrf.a", own},
    {"aten::linalg_cholesky_ex.L", own},
    {"aten::linalg_eigh.eigvals", own},
    {"aten::linalg_inv_ex.inverse", own},
    {"aten::linalg_lu.out", own},
    {"aten::linalg_lu_factor.out", own},
    {"aten::linalg_lu_factor_ex.out", own},
    {"aten::linalg_qr.out", own},
    {"aten::linalg_slogdet.out", own},
    {"aten::linalg_solve_ex.out", own},
    {"aten::linalg_svd.U", own},
    {"aten::lu_unpack.out", own},
    {"aten::qr.Q", own},
    {"aten::slogdet.out", own},
    {"aten::svd.U", own},
    {"aten::triangular_solve.X", own},
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
const RegisterDeviceKernels registered(kAhead, kKernels);

}  // namespace

std::optional<std::string> complaintOfCodes(const Tensor& t) {
  if (t.dtype() != DType::Int || t.numel() == 0) return std::nullopt;
  for (const Codes& codes : {kLu, kCholesky, kSpectral}) {
    if (Recording::current().findComputed(codes.what, t).defined()) return codes.complaint;
  }
  return std::nullopt;
}

}  // namespace wick::aot
