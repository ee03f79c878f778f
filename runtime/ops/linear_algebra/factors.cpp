// Cholesky, QR and LDL factorizations.
#include "runtime/kernels/lapack.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/matrices.h"

namespace wick {
namespace {

using namespace linalg;

// The other triangle becomes zero.
Pair choleskyFactor(const char* op, const Tensor& a, bool upper) {
  static const OperatorHandle kFactor("aten::linalg_cholesky_ex", "");
  checkSquare(op, a);
  if (!a.device().isCpu()) {
    const std::vector<IValue> f = kFactor.all(a, upper, false);
    return {f[0].toTensor(), f[1].toTensor()};
  }
  int64_t n = a.size(-1);
  Tensor l = columnMajor(upper ? ops::triu(a) : ops::tril(a));
  Tensor info = Tensor::zeros(batchSizes(a), DType::Int);
  if (a.numel() > 0) {
    dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
      for (int64_t i = 0; i < info.numel(); ++i) {
        info.data<int32_t>()[i] =
            Lapack<T>::potrf(upper ? 'U' : 'L', static_cast<int>(n), matrixAt<T>(l, i, n * n));
      }
    });
  }
  return {l, info};
}

Pair choleskyEx(const Tensor& a, bool upper, bool check_errors) {
  auto result = choleskyFactor("linalg.cholesky_ex", a, upper);
  if (check_errors) checkInfo("linalg.cholesky_ex", std::get<1>(result), Failure::NotPositive);
  return result;
}
Tensor linalgCholesky(const Tensor& a, bool upper) {
  auto [l, info] = choleskyFactor("linalg.cholesky", a, upper);
  checkInfo("linalg.cholesky", info, Failure::NotPositive);
  return l;
}
Tensor cholesky(const Tensor& a, bool upper) {
  auto [l, info] = choleskyFactor("cholesky", a, upper);
  checkInfo("cholesky", info, Failure::NotPositive);
  return l;
}

Tensor choleskySolve(const Tensor& b, const Tensor& a, bool upper) {
  const char* op = "cholesky_solve";
  checkCholesky(op, a, b);
  int64_t n = a.size(-1), r = b.size(-1);
  DimVector batch = broadcastShapes(batchSizes(a), batchSizes(b));
  Tensor l = columnMajor(a.expand(withSizes(batch, {n, n})));
  Tensor x = columnMajor(b.expand(withSizes(batch, {n, r})));
  if (x.numel() == 0) return x;
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < checkedNumel(batch); ++i) {
      Lapack<T>::potrs(upper ? 'U' : 'L', static_cast<int>(n), static_cast<int>(r),
                       matrixAt<T>(l, i, n * n), matrixAt<T>(x, i, n * r));
    }
  });
  return x;
}

Tensor choleskyInverse(const Tensor& a, bool upper) {
  const char* op = "cholesky_inverse";
  checkSquare(op, a);
  int64_t n = a.size(-1);
  Tensor x = columnMajor(a);
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    for (int64_t i = 0; x.numel() > 0 && i < batchCount(x); ++i) {
      T* m = matrixAt<T>(x, i, n * n);
      int info = Lapack<T>::potri(upper ? 'U' : 'L', static_cast<int>(n), m);
      WICK_CHECK(info == 0,
                 "{}: The diagonal element {} is zero, the inversion could not be "
                 "completed because the input matrix is singular.",
                 op, info);
      // The routine fills one triangle; the inverse is Hermitian.
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t r = c + 1; r < n; ++r) {
          T& low = m[c * n + r];
          T& high = m[r * n + c];
          T v = upper ? high : low;
          if constexpr (!std::is_floating_point_v<T>) {
            (upper ? low : high) = std::conj(v);
          } else {
            (upper ? low : high) = v;
          }
        }
      }
    }
  });
  return x;
}

// Reflectors below R, and their factors.
Pair geqrf(const Tensor& a) {
  const char* op = "geqrf";
  static const OperatorHandle kFactor("aten::geqrf", "");
  checkMatrix(op, a);
  if (!a.device().isCpu()) {
    const std::vector<IValue> f = kFactor.all(a);
    return {f[0].toTensor(), f[1].toTensor()};
  }
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  Tensor x = columnMajor(a), tau = Tensor::zeros(withSizes(batchSizes(a), {k}), a.dtype());
  if (x.numel() == 0) return {x, tau};
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < batchCount(x); ++i) {
      Lapack<T>::geqrf(static_cast<int>(m), static_cast<int>(n), matrixAt<T>(x, i, m * n),
                       matrixAt<T>(tau, i, k));
    }
  });
  return {x, tau};
}

// The first `columns` columns of the product of the reflectors in `a` [..., m, >= columns].
Tensor householder(const char* op, const Tensor& a, const Tensor& tau_in, int64_t columns) {
  static const OperatorHandle kProduct("aten::linalg_householder_product", "");
  if (!a.device().isCpu()) return kProduct(a.narrow(a.dim() - 1, 0, columns), tau_in);
  int64_t m = a.size(-2), k = tau_in.size(-1);
  Tensor q = columnMajor(a.narrow(a.dim() - 1, 0, columns));
  Tensor tau = tau_in.contiguous();
  if (q.numel() == 0) return q;
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < batchCount(q); ++i) {
      Lapack<T>::orgqr(static_cast<int>(m), static_cast<int>(columns), static_cast<int>(k),
                       matrixAt<T>(q, i, m * columns), matrixAt<T>(tau, i, k));
    }
  });
  return q;
}

Tensor householderProduct(const Tensor& a, const Tensor& tau) {
  const char* op = "linalg.householder_product";
  checkReflectors(op, a, tau);
  return householder(op, a, tau, a.size(-1));
}

Tensor ormqr(const Tensor& self, const Tensor& tau_in, const Tensor& other, bool left,
             bool transpose) {
  const char* op = "ormqr";
  checkReflected(op, self, tau_in, other, left);
  int64_t k = tau_in.size(-1), m = other.size(-2), n = other.size(-1), rows = left ? m : n;
  Tensor a = columnMajor(self), tau = tau_in.contiguous(), c = columnMajor(other);
  if (c.numel() == 0) return c;
  dispatch<kMatrixDTypes>(op, self.dtype(), [&]<class T>() {
    char trans = !transpose ? 'N' : std::is_floating_point_v<T> ? 'T' : 'C';
    for (int64_t i = 0; i < batchCount(c); ++i) {
      Lapack<T>::ormqr(left ? 'L' : 'R', trans, static_cast<int>(m), static_cast<int>(n),
                       static_cast<int>(k), matrixAt<T>(a, i, rows * self.size(-1)),
                       static_cast<int>(rows), matrixAt<T>(tau, i, k), matrixAt<T>(c, i, m * n));
    }
  });
  return c;
}

Pair qrAny(const char* op, const Tensor& a, bool complete, bool want_q) {
  checkMatrix(op, a);
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), columns = complete ? m : k;
  auto [factors, tau] = geqrf(a);
  Tensor r =
      columnMajor(ops::triu(factors.narrow(a.dim() - 2, 0, want_q ? std::min(columns, m) : k)));
  if (!want_q) return {Tensor::empty(DimVector{0}, a.dtype(), a.device()), r};
  Tensor source = factors;
  if (columns > n) {
    source = Tensor::zeros(withSizes(batchSizes(a), {m, columns}), a.dtype(), a.device());
    source.narrow(a.dim() - 1, 0, n).copyFrom(factors);
  }
  if (k == 0) {
    // No reflector: Q is the identity.
    Tensor q = Tensor::zeros(withSizes(batchSizes(a), {m, columns}), a.dtype(), a.device());
    if (q.numel() > 0) {
      ops::fillWith(ops::diagonal(q, int64_t{0}, int64_t{-2}, int64_t{-1}), Scalar(1));
    }
    return {q, r};
  }
  return {householder(op, source, tau, columns), r};
}

Pair linalgQr(const Tensor& a, const std::string& mode) {
  WICK_CHECK(mode == "reduced" || mode == "complete" || mode == "r",
             "qr received unrecognized mode '{}' but expected one of 'reduced' (default), 'r', or "
             "'complete'",
             mode);
  return qrAny("linalg.qr", a, mode == "complete", mode != "r");
}
Pair qr(const Tensor& a, bool some) {
  return qrAny("qr", a, !some, true);
}

Triple ldlFactorEx(const Tensor& a, bool hermitian, bool check_errors) {
  const char* op = "torch.linalg.ldl_factor_ex";
  checkSquare(op, a);
  int64_t n = a.size(-1);
  Tensor ld = columnMajor(ops::tril(a)), info = Tensor::zeros(batchSizes(a), DType::Int);
  Tensor pivots = Tensor::zeros(withSizes(batchSizes(a), {n}), DType::Int);
  if (a.numel() > 0) {
    dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
      for (int64_t i = 0; i < info.numel(); ++i) {
        info.data<int32_t>()[i] =
            Lapack<T>::sytrf('L', static_cast<int>(n), matrixAt<T>(ld, i, n * n),
                             matrixAt<int32_t>(pivots, i, n), hermitian);
      }
    });
  }
  if (check_errors) checkInfo(op, info, Failure::SingularFactor);
  return {ld, pivots, info};
}
Pair ldlFactor(const Tensor& a, bool hermitian) {
  auto [ld, pivots, info] = ldlFactorEx(a, hermitian, true);
  return {ld, pivots};
}

Tensor ldlSolve(const Tensor& ld_in, const Tensor& pivots_in, const Tensor& b, bool hermitian) {
  const char* op = "torch.linalg.ldl_solve";
  checkSquare(op, ld_in);
  checkMatrix(op, b);
  int64_t n = ld_in.size(-1), r = b.size(-1);
  WICK_CHECK(b.size(-2) == n && pivots_in.dtype() == DType::Int && ld_in.dtype() == b.dtype() &&
                 pivots_in.dim() == ld_in.dim() - 1 && pivots_in.size(-1) == n,
             "{}: LD, pivots and B do not fit: {}, {} and {}", op, ld_in.describe(),
             pivots_in.describe(), b.describe());
  DimVector batch = broadcastShapes(batchSizes(ld_in), batchSizes(b));
  Tensor ld = columnMajor(ld_in.expand(withSizes(batch, {n, n})));
  Tensor pivots = pivots_in.expand(withSizes(batch, {n})).contiguous();
  Tensor x = columnMajor(b.expand(withSizes(batch, {n, r})));
  if (x.numel() == 0) return x;
  // Negative ones come in pairs, which LAPACK takes together.
  for (int64_t i = 0; i < pivots.numel(); ++i) {
    const int32_t* const pivot = pivots.data<int32_t>() + i;
    const int64_t p = std::abs(static_cast<int64_t>(*pivot));
    WICK_CHECK(p >= 1 && p <= n && (*pivot > 0 || ((i + 1) % n != 0 && pivot[1] == *pivot)),
               "{}: pivot {} is out of range", op, p);
    if (*pivot < 0) ++i;
  }
  dispatch<kMatrixDTypes>(op, b.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < checkedNumel(batch); ++i) {
      Lapack<T>::sytrs('L', static_cast<int>(n), static_cast<int>(r), matrixAt<T>(ld, i, n * n),
                       matrixAt<int32_t>(pivots, i, n), matrixAt<T>(x, i, n * r), hermitian);
    }
  });
  return x;
}

constexpr OperatorRecord kFactorsRecords[] = {
    {"aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "
     "(Tensor L, Tensor info)",
     WICK_KERNEL(choleskyEx), kEagerCastFull},
    {"aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
     WICK_KERNEL(linalgCholesky),
     kOutForm | kOutSame | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::cholesky(Tensor self, bool upper=False) -> Tensor", WICK_KERNEL(cholesky),
     kOutForm | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
     WICK_KERNEL(choleskySolve), kOutForm | kEagerCastFull},
    {"aten::_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
     WICK_KERNEL(choleskySolve)},
    {"aten::cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
     WICK_KERNEL(choleskyInverse), kOutForm | kRaisesByElements | kEagerCastFull},
    {"aten::geqrf(Tensor self) -> (Tensor a, Tensor tau)", WICK_KERNEL(geqrf), kEagerCastFull},
    {"aten::linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
     WICK_KERNEL(householderProduct), kOutForm | kEagerCastFull},
    {"aten::orgqr(Tensor self, Tensor input2) -> Tensor", WICK_KERNEL(householderProduct),
     kOutForm | kEagerCastFull},
    {"aten::ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) "
     "-> Tensor",
     WICK_KERNEL(ormqr), kOutForm | kOutSame | kEagerCastFull},
    {"aten::linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
     WICK_KERNEL(linalgQr), kNeutral | kEagerCastFull},
    {"aten::qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", WICK_KERNEL(qr),
     kNeutral | kEagerCastFull},
    {"aten::linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> "
     "(Tensor LD, Tensor pivots, Tensor info)",
     WICK_KERNEL(ldlFactorEx)},
    {"aten::linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
     WICK_KERNEL(ldlFactor), kRaisesByElements},
    {"aten::linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> "
     "Tensor",
     WICK_KERNEL(ldlSolve), kOutForm | kOutSame},
};

const RegisterOperators kFactorsRegistered(kFactorsRecords);

}  // namespace
}  // namespace wick
