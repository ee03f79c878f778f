// Singular values, eigenvalues, least squares.
#include "runtime/ops/linear_algebra/spectral.h"

#include <limits>

#include "runtime/kernels/lapack.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/linear_algebra/matrices.h"

namespace wick {

namespace linalg {

namespace {
template <class T>
using Real = decltype(std::real(T()));

// LAPACK's iterations may not end on NaN or infinity.
void checkFinite(const char* op, const Tensor& a) {
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    Tensor x = a.contiguous();
    for (int64_t i = 0; i < x.numel(); ++i) {
      WICK_CHECK(std::isfinite(std::abs(x.data<T>()[i])),
                 "{}: The algorithm failed to converge because the input matrix contained "
                 "non-finite values.",
                 op);
    }
  });
}
}  // namespace

Svd svd(const char* op, const Tensor& a, bool full, bool vectors) {
  static const OperatorHandle kSvd("aten::_linalg_svd", "");
  checkMatrix(op, a);
  if (!a.device().isCpu()) {
    const std::vector<IValue> f = kSvd.all(a, full, vectors);
    if (!vectors) return {{}, f[1].toTensor(), {}};
    return {f[0].toTensor(), f[1].toTensor(), f[2].toTensor()};
  }
  checkFinite(op, a);
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  DimVector batch = batchSizes(a);
  Svd r;
  r.s = Tensor::empty(withSizes(batch, {k}), toRealType(a.dtype()));
  if (vectors) {
    r.u = emptyColumnMajor(withSizes(batch, {m, full ? m : k}), a.dtype());
    r.vh = emptyColumnMajor(withSizes(batch, {full ? n : k, n}), a.dtype());
  }
  if (k == 0) {
    // No singular value: the full bases are identities.
    auto identity = [&](const Tensor& t) {
      if (!t.defined() || t.numel() == 0) return;
      t.fill(0);
      for (int64_t i = 0; i < t.size(-1); ++i)
        t.select(t.dim() - 1, i).select(t.dim() - 2, i).fill(1);
    };
    identity(r.u);
    identity(r.vh);
    return r;
  }
  Tensor x = columnMajor(a), info = Tensor::zeros(batch, DType::Int);
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    char job = !vectors ? 'N' : full ? 'A' : 'S';
    int64_t u_size = m * (full ? m : k), v_size = n * (full ? n : k);
    T none = 0;
    for (int64_t i = 0; i < info.numel(); ++i) {
      info.data<int32_t>()[i] = Lapack<T>::gesdd(
          job, static_cast<int>(m), static_cast<int>(n), matrixAt<T>(x, i, m * n),
          matrixAt<Real<T>>(r.s, i, k), vectors ? matrixAt<T>(r.u, i, u_size) : &none,
          vectors ? matrixAt<T>(r.vh, i, v_size) : &none);
    }
  });
  checkInfo(op, info, Failure::NoConvergence);
  return r;
}

Eigh eigh(const char* op, const Tensor& a, bool upper, bool vectors) {
  static const OperatorHandle kEigh("aten::_linalg_eigh", "");
  checkSquare(op, a);
  if (!a.device().isCpu()) {
    const std::vector<IValue> f = kEigh.all(a, std::string(upper ? "U" : "L"), vectors);
    return {f[0].toTensor(), f[1].toTensor()};
  }
  checkFinite(op, a);
  int64_t n = a.size(-1);
  DimVector batch = batchSizes(a);
  Eigh r{Tensor::empty(withSizes(batch, {n}), toRealType(a.dtype())), columnMajor(a)};
  if (a.numel() == 0) return r;
  Tensor info = Tensor::zeros(batch, DType::Int);
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < info.numel(); ++i) {
      info.data<int32_t>()[i] =
          Lapack<T>::syevd(vectors ? 'V' : 'N', upper ? 'U' : 'L', static_cast<int>(n),
                           matrixAt<T>(r.vectors, i, n * n), matrixAt<Real<T>>(r.values, i, n));
    }
  });
  checkInfo(op, info, Failure::NoConvergence);
  return r;
}

}  // namespace linalg

namespace {

using namespace linalg;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using OptString = std::optional<std::string>;

void checkDriver(const char* op, const OptString& driver) {
  WICK_CHECK(!driver,
             "{}: keyword argument `driver=` is only supported on CUDA inputs with "
             "cuSOLVER backend.",
             op);
}

Triple linalgSvd(const Tensor& a, bool full, const OptString& driver) {
  checkDriver("torch.linalg.svd", driver);
  Svd r = svd("linalg.svd", a, full, true);
  return {r.u, r.s, r.vh};
}
Triple svdInternal(const Tensor& a, bool full, bool compute_uv, const OptString& driver) {
  checkDriver("torch.linalg.svd", driver);
  Svd r = svd("linalg.svd", a, full, compute_uv);
  Tensor none = Tensor::empty(DimVector{0}, a.dtype());
  return {compute_uv ? r.u : none, r.s, compute_uv ? r.vh : none};
}
Tensor svdvals(const Tensor& a, const OptString& driver) {
  checkDriver("torch.linalg.svdvals", driver);
  return svd("linalg.svdvals", a, false, false).s;
}
Triple svdOld(const Tensor& a, bool some, bool compute_uv) {
  Svd r = svd("svd", a, !some, compute_uv);
  if (compute_uv) return {r.u, r.s, adjoint(r.vh)};
  DimVector batch = batchSizes(a);
  return {Tensor::zeros(withSizes(batch, {a.size(-2), a.size(-2)}), a.dtype(), a.device()), r.s,
          Tensor::zeros(withSizes(batch, {a.size(-1), a.size(-1)}), a.dtype(), a.device())};
}

Pair linalgEigh(const Tensor& a, const std::string& uplo) {
  Eigh r = eigh("linalg.eigh", a, isUpper("linalg.eigh", uplo), true);
  return {r.values, r.vectors};
}
Pair eighInternal(const Tensor& a, const std::string& uplo, bool compute_v) {
  Eigh r = eigh("linalg.eigh", a, isUpper("linalg.eigh", uplo), compute_v);
  return {r.values, compute_v ? r.vectors : Tensor::empty(DimVector{0}, a.dtype())};
}
Tensor eigvalsh(const Tensor& a, const std::string& uplo) {
  return eigh("linalg.eigvalsh", a, isUpper("linalg.eigvalsh", uplo), false).values;
}
Pair symeig(const Tensor& a, bool vectors, bool upper) {
  Eigh r = eigh("symeig", a, upper, vectors);
  // Of a matrix without elements there are always vectors.
  const bool kept = vectors || a.numel() == 0;
  return {r.values, kept ? r.vectors : Tensor::empty(DimVector{0}, a.dtype(), a.device())};
}

Pair eigAny(const char* op, const Tensor& a, bool vectors) {
  checkSquare(op, a);
  checkFinite(op, a);
  int64_t n = a.size(-1);
  DimVector batch = batchSizes(a);
  DType dtype = toComplexType(a.dtype());
  Tensor values = Tensor::empty(withSizes(batch, {n}), dtype);
  Tensor v = vectors ? emptyColumnMajor(a.sizes(), dtype) : Tensor();
  if (a.numel() == 0) return {values, v};
  Tensor x = columnMajor(a), info = Tensor::zeros(batch, DType::Int);
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    using C = std::complex<Real<T>>;
    for (int64_t i = 0; i < info.numel(); ++i) {
      info.data<int32_t>()[i] =
          Lapack<T>::geev(static_cast<int>(n), matrixAt<T>(x, i, n * n), matrixAt<C>(values, i, n),
                          vectors ? matrixAt<C>(v, i, n * n) : nullptr);
    }
  });
  checkInfo(op, info, Failure::NoConvergence);
  return {values, v};
}
Pair linalgEig(const Tensor& a) {
  return eigAny("linalg.eig", a, true);
}
Tensor eigvals(const Tensor& a) {
  return std::get<0>(eigAny("linalg.eigvals", a, false));
}

// The solution of least norm by singular values, for any device; `x` is [..., m, n], `b` [..., m, r] of
// one batch. Of drivers that tell singular values, `s` are these; `gels` takes all ranks for full.
Four leastSquares(const Tensor& x, const Tensor& b, double rcond, const std::string& driver) {
  const char* op = "torch.linalg.lstsq";
  const int64_t m = x.size(-2), n = x.size(-1);
  const DType real = toRealType(x.dtype());
  const auto none = [&](DType dtype) { return Tensor::empty(DimVector{0}, dtype, x.device()); };
  const DimVector batch = batchSizes(x);
  Tensor rank = none(DType::Long), values = none(real);
  Tensor solution = Tensor::zeros(withSizes(batch, {n, b.size(-1)}), x.dtype(), x.device());
  bool full = m >= n;
  const bool ranks = driver != "gels", tells = driver == "gelsd" || driver == "gelss";
  if (ranks) rank = Tensor::zeros(batch, DType::Long, x.device());
  if (tells) values = Tensor::zeros(withSizes(batch, {std::min(m, n)}), real, x.device());
  if (x.numel() > 0) {
    const Svd f = svd(op, x, false, true);
    const Tensor limit = ops::mulScalar(ops::amax(f.s, DimVector{-1}, true), Scalar(rcond));
    const Tensor keep = ops::gt(f.s, limit);
    const Tensor found = ops::sumDims(keep, DimVector{-1});
    const Tensor zero = Tensor::zeros(DimVector{}, real, x.device());
    const Tensor inverse = ops::where(keep, ops::reciprocal(f.s), zero).to(x.dtype());
    const Tensor turned = ops::mul(inverse.unsqueeze(-1), matmul(adjoint(f.u), b));
    solution = matmul(adjoint(f.vh), turned);
    const bool all_full =
        found.numel() == 0 || ops::all(ops::eqScalar(found, std::min(m, n))).item<bool>();
    WICK_CHECK(ranks || all_full,
               "{}: The least squares solution could not be computed because the input matrix does "
               "not have full rank.",
               op);
    full = full && all_full;
    if (ranks) rank = found;
    if (tells) values = f.s;
  }
  Tensor residuals = none(real);
  if (m > n && driver != "gelsy" && full) {
    const Tensor rest = ops::vectorNorm(ops::sub(matmul(x, solution), b), 2, DimVector{-2});
    residuals = ops::mul(rest, rest);
  }
  return {solution, residuals, rank, values};
}

// Solves min |A x - B| with the LAPACK driver of this name.
Four lstsq(const Tensor& a, const Tensor& b_in, std::optional<double> rcond_in,
           const OptString& driver_in) {
  const char* op = "torch.linalg.lstsq";
  checkMatrix(op, a);
  std::string driver = driver_in.value_or("gelsy");
  WICK_CHECK(driver == "gels" || driver == "gelsy" || driver == "gelsd" || driver == "gelss",
             "{}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)", op);
  WICK_CHECK(a.dtype() == b_in.dtype(), "{}: Expected input and other to have the same dtype", op);
  int64_t m = a.size(-2), n = a.size(-1), high = std::max(m, n), low = std::min(m, n);
  bool vector =
      b_in.dim() == 1 ||
      (b_in.dim() == a.dim() - 1 &&
       DimVector(b_in.sizes()) == DimVector(a.sizes().first(static_cast<size_t>(a.dim() - 1))));
  Tensor b = vector ? b_in.unsqueeze(-1) : b_in;
  WICK_CHECK(b.dim() >= 2 && b.size(-2) == m, "{}: input.size(-2) should match other.size(-2)", op);
  int64_t r = b.size(-1);
  DimVector batch = broadcastShapes(batchSizes(a), batchSizes(b));
  if (!a.device().isCpu()) {
    const double epsilon = toRealType(a.dtype()) == DType::Float
                               ? double{std::numeric_limits<float>::epsilon()}
                               : std::numeric_limits<double>::epsilon();
    auto [solution, residuals, rank, values] =
        leastSquares(a.expand(withSizes(batch, {m, n})), b.expand(withSizes(batch, {m, r})),
                     rcond_in.value_or(epsilon * static_cast<double>(high)), driver);
    return {vector ? solution.squeeze(-1) : solution, residuals, rank, values};
  }
  int64_t count = checkedNumel(batch);
  Tensor x = columnMajor(a.expand(withSizes(batch, {m, n})));
  Tensor rhs = Tensor::zeros(withSizes(batch, {r, high}), a.dtype()).transpose(-2, -1);
  rhs.narrow(rhs.dim() - 2, 0, m).copyFrom(b);
  bool ranks = driver != "gels", values = driver == "gelsd" || driver == "gelss";
  Tensor rank = ranks ? Tensor::zeros(batch, DType::Long) : Tensor::empty({0}, DType::Long);
  DType real = toRealType(a.dtype());
  Tensor s = values ? Tensor::zeros(withSizes(batch, {low}), real) : Tensor::empty({0}, real);
  bool full = true;
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    using R = Real<T>;
    R rcond = rcond_in ? static_cast<R>(*rcond_in)
                       : std::numeric_limits<R>::epsilon() * static_cast<R>(high);
    int im = static_cast<int>(m), in = static_cast<int>(n), ir = static_cast<int>(r);
    int ld = static_cast<int>(std::max<int64_t>(1, high));
    for (int64_t i = 0; i < count && x.numel() > 0; ++i) {
      T* pa = matrixAt<T>(x, i, m * n);
      T* pb = matrixAt<T>(rhs, i, high * r);
      int got = static_cast<int>(low), info = 0;
      if (driver == "gels") {
        info = Lapack<T>::gels(im, in, ir, pa, pb, ld);
      } else if (driver == "gelsy") {
        info = Lapack<T>::gelsy(im, in, ir, pa, pb, ld, rcond, &got);
      } else if (driver == "gelsd") {
        info = Lapack<T>::gelsd(im, in, ir, pa, pb, ld, matrixAt<R>(s, i, low), rcond, &got);
      } else {
        info = Lapack<T>::gelss(im, in, ir, pa, pb, ld, matrixAt<R>(s, i, low), rcond, &got);
      }
      WICK_CHECK(info == 0,
                 "{}: The least squares solution could not be computed because the input "
                 "matrix does not have full rank (error code: {}).",
                 op, info);
      if (ranks) rank.data<int64_t>()[i] = got;
      full = full && got == n;
    }
  });
  Tensor solution = rhs.narrow(rhs.dim() - 2, 0, n);
  Tensor residuals = Tensor::empty({0}, real);
  if (m > n && driver != "gelsy" && full) {
    Tensor rest = ops::vectorNorm(rhs.narrow(rhs.dim() - 2, n, m - n), 2, DimVector{-2});
    residuals = ops::mul(rest, rest);
  }
  return {vector ? solution.squeeze(-1) : solution, residuals, rank, s};
}

constexpr OperatorRecord kSpectralRecords[] = {
    {"aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, "
     "Tensor S, Tensor Vh)",
     WICK_KERNEL(linalgSvd), kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? "
     "driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
     WICK_KERNEL(svdInternal)},
    {"aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor", WICK_KERNEL(svdvals),
     kOutForm | kOutSame | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor "
     "V)",
     WICK_KERNEL(svdOld), kNeutral | kEagerCastFull},
    {"aten::linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
     WICK_KERNEL(linalgEigh), kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, "
     "Tensor eigenvectors)",
     WICK_KERNEL(eighInternal)},
    {"aten::linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor", WICK_KERNEL(eigvalsh),
     kOutForm | kOutSame | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::symeig(Tensor self, bool eigenvectors=False, bool upper=True) -> (Tensor eigenvalues, "
     "Tensor eigenvectors)",
     WICK_KERNEL(symeig), kNeutral | kEagerCastFull},
    {"aten::linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
     WICK_KERNEL(linalgEig), kRaisesByElements | kEagerCastFull},
    {"aten::linalg_eigvals(Tensor self) -> Tensor", WICK_KERNEL(eigvals),
     kOutForm | kRaisesByElements | kEagerCastFull},
    {"aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor "
     "solution, Tensor residuals, Tensor rank, Tensor singular_values)",
     WICK_KERNEL(lstsq), kNeutral | kRaisesByElements | kEagerCastFull},
};

const RegisterOperators kSpectralRegistered(kSpectralRecords);

}  // namespace
}  // namespace wick
