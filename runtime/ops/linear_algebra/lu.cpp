// LU factorization and what follows from it: determinants, inverses, solutions.
#include <cmath>

#include "core/budget.h"
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/device_backend.h"
#include "runtime/kernels/lapack.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/matrices.h"

namespace wick {
namespace {

using namespace linalg;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

struct Factors {
  Tensor lu, pivots, info;
};

// What follows works on tensors of any device: there the operators of the factorizations are asked.
Factors factor(const char* op, const Tensor& a, bool pivot = true) {
  static const OperatorHandle kFactor("aten::linalg_lu_factor_ex", "");
  checkMatrix(op, a);
  if (!a.device().isCpu()) {
    const std::vector<IValue> f = kFactor.all(a, pivot, false);
    return {f[0].toTensor(), f[1].toTensor(), f[2].toTensor()};
  }
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  DimVector batch = batchSizes(a);
  Factors f{columnMajor(a), Tensor::zeros(withSizes(batch, {k}), DType::Int),
            Tensor::zeros(batch, DType::Int)};
  if (a.numel() == 0) return f;
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < f.info.numel(); ++i) {
      f.info.data<int32_t>()[i] =
          Lapack<T>::getrf(static_cast<int>(m), static_cast<int>(n), matrixAt<T>(f.lu, i, m * n),
                           matrixAt<int32_t>(f.pivots, i, k));
    }
  });
  return f;
}

// What PyTorch factors in place of a real contiguous matrix, because it needs no copy then: the
// transpose. The factors are results of some operators, and every last bit depends on them.
bool factorsTransposed(const Tensor& a) {
  return a.isContiguous() && !isComplex(a.dtype());
}
Factors factorEither(const char* op, const Tensor& a) {
  return factor(op, factorsTransposed(a) ? a.transpose(-2, -1) : a);
}

void checkPivoting(const char* op, bool pivot, const Tensor& a) {
  WICK_CHECK(pivot || a.numel() == 0 || !a.device().isCpu(),
             "{}: LU without pivoting is not implemented on the CPU", op);
}

Triple luFactorEx(const Tensor& a, bool pivot, bool check_errors) {
  const char* op = "linalg.lu_factor_ex";
  checkPivoting(op, pivot, a);
  Factors f = factor(op, a);
  if (check_errors) checkInfo(op, f.info, Failure::SingularFactor);
  return {f.lu, f.pivots, f.info};
}
// It raises nothing, whatever it is asked to check.
Triple luWithInfo(const Tensor& a, bool pivot, bool) {
  return luFactorEx(a, pivot, false);
}
Pair luFactor(const Tensor& a, bool pivot) {
  checkPivoting("linalg.lu_factor", pivot, a);
  Factors f = factor("linalg.lu_factor", a, pivot);
  checkInfo("torch.linalg.lu_factor", f.info, Failure::SingularFactor);
  return {f.lu, f.pivots};
}

// L (unit lower), U and the permutation matrix that undoes the row exchanges.
Triple unpack(const char* op, const Tensor& lu, const Tensor& pivots, bool data, bool permutation) {
  static const OperatorHandle kUnpack("aten::lu_unpack", "");
  if (!lu.device().isCpu()) {
    const std::vector<IValue> parts = kUnpack.all(lu, pivots, data, permutation);
    return {parts[0].toTensor(), parts[1].toTensor(), parts[2].toTensor()};
  }
  const auto [l, u] = trianglesOf(op, lu, pivots, data, permutation);
  constexpr unsigned kUnpacked = kMatrixDTypes | kRealNumbers;
  const int64_t m = lu.size(-2), k = std::min(m, lu.size(-1));
  Tensor p = Tensor::empty(DimVector{0}, lu.dtype());
  if (permutation) {
    p = Tensor::zeros(withSizes(batchSizes(lu), {m, m}), lu.dtype());
    Tensor exchanges = pivots.contiguous();
    dispatch<kUnpacked>(op, lu.dtype(), [&]<class T>() {
      CountedVector<int64_t> rows(static_cast<size_t>(m));
      Pace pace;
      for (int64_t i = 0; i < batchCount(lu); ++i) {
        pace.step(m + 1);
        for (int64_t r = 0; r < m; ++r) rows[static_cast<size_t>(r)] = r;
        for (int64_t r = 0; r < k; ++r) {
          int64_t with = matrixAt<int32_t>(exchanges, i, k)[r] - 1;
          WICK_CHECK(with >= 0 && with < m, "{}: pivot {} is out of range", op, with + 1);
          std::swap(rows[static_cast<size_t>(r)], rows[static_cast<size_t>(with)]);
        }
        for (int64_t r = 0; r < m; ++r) {
          matrixAt<T>(p, i, m * m)[rows[static_cast<size_t>(r)] * m + r] = T(1);
        }
      }
    });
  }
  return {p, l, u};
}

Triple luUnpack(const Tensor& lu, const Tensor& pivots, bool data, bool permutation) {
  return unpack("lu_unpack", lu, pivots, data, permutation);
}
Triple linalgLu(const Tensor& a, bool pivot) {
  checkPivoting("linalg.lu", pivot, a);
  Factors f = factor("linalg.lu", a, pivot);
  return unpack("linalg.lu", f.lu, f.pivots, true, pivot);
}

// Solves with factors; trans 'N', 'T' or 'C'. `b` [..., n, r] is broadcast with the factors.
Tensor solveFactored(const char* op, const Tensor& lu_in, const Tensor& pivots_in, const Tensor& b,
                     char trans) {
  int64_t n = lu_in.size(-1), r = b.size(-1);
  WICK_CHECK(b.size(-2) == n,
             "{}: Incompatible shapes of A and B for the equation AX = B ({}x{} and "
             "{}x{})",
             op, n, n, b.size(-2), r);
  static const OperatorHandle kSolve("aten::linalg_lu_solve", "");
  if (!lu_in.device().isCpu()) return kSolve(lu_in, pivots_in, b, true, trans == 'C');
  DimVector batch = broadcastShapes(batchSizes(lu_in), batchSizes(b));
  Tensor lu = columnMajor(lu_in.expand(withSizes(batch, {n, n})));
  Tensor pivots = pivots_in.expand(withSizes(batch, {n})).contiguous();
  Tensor x = columnMajor(b.expand(withSizes(batch, {n, r})));
  if (x.numel() == 0) return x;
  for (int64_t i = 0; i < pivots.numel(); ++i) {
    int32_t p = pivots.data<int32_t>()[i];
    WICK_CHECK(p >= 1 && p <= n, "{}: pivot {} is out of range", op, p);
  }
  dispatch<kMatrixDTypes>(op, lu.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < checkedNumel(batch); ++i) {
      Lapack<T>::getrs(trans, static_cast<int>(n), static_cast<int>(r), matrixAt<T>(lu, i, n * n),
                       matrixAt<int32_t>(pivots, i, n), matrixAt<T>(x, i, n * r));
    }
  });
  return x;
}

Tensor luSolve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left, bool adjoint_) {
  const char* op = "linalg.lu_solve";
  checkFactored(op, lu, pivots, b, left);
  if (left) return solveFactored(op, lu, pivots, b, adjoint_ ? 'C' : 'N');
  // X A = B is A^H X^H = B^H.
  return adjoint(solveFactored(op, lu, pivots, adjoint(b), adjoint_ ? 'N' : 'C'));
}
Tensor luSolveOld(const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  return luSolve(lu, pivots, b, true, false);
}

struct Solution {
  Tensor x, lu, pivots, info;
};

Solution solve(const char* op, const Tensor& a, const Tensor& b, bool left) {
  checkSquare(op, a);
  WICK_CHECK(a.dtype() == b.dtype(), "{}: Expected A and B to have the same dtype, got {} and {}",
             op, toString(a.dtype()), toString(b.dtype()));
  // As in NumPy, B is a batch of vectors when it has the batch's shape and one dimension more.
  bool vector = b.dim() == 1 || (a.dim() - 1 == b.dim() &&
                                 DimVector(b.sizes()) ==
                                     DimVector(a.sizes().first(static_cast<size_t>(a.dim() - 1))));
  Tensor rhs = vector ? b.unsqueeze(-1) : b;
  WICK_CHECK(left || !vector,
             "{}: Vector broadcasting of the left hand side is not supported for "
             "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)",
             op);
  WICK_CHECK(rhs.dim() >= 2, "{}: B must have at least one dimension", op);
  const bool transposed = factorsTransposed(a);
  Factors f = factorEither(op, a);
  Tensor x = left
                 ? solveFactored(op, f.lu, f.pivots, rhs, transposed ? 'C' : 'N')
                 : adjoint(solveFactored(op, f.lu, f.pivots, adjoint(rhs), transposed ? 'N' : 'C'));
  return {vector ? x.squeeze(-1) : x, f.lu, f.pivots, f.info};
}

Tensor linalgSolve(const Tensor& a, const Tensor& b, bool left) {
  Solution s = solve("linalg.solve", a, b, left);
  checkInfo("torch.linalg.solve", s.info, Failure::SingularSolve);
  return s.x;
}
Pair linalgSolveEx(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  Solution s = solve("linalg.solve_ex", a, b, left);
  if (check_errors) checkInfo("torch.linalg.solve_ex", s.info, Failure::SingularSolve);
  return {s.x, s.info};
}
Four linalgSolveInternal(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  Solution s = solve("linalg.solve_ex", a, b, left);
  if (check_errors) checkInfo("torch.linalg.solve_ex", s.info, Failure::SingularSolve);
  return {s.x, s.lu, s.pivots, s.info};
}

Tensor identityLike(const Tensor& a) {
  int64_t n = a.size(-1);
  Tensor eye = Tensor::zeros(DimVector{n, n}, a.dtype(), a.device());
  if (n > 0) ops::fillWith(ops::diagonal(eye), Scalar(1));
  return eye;
}

Pair invert(const char* op, const Tensor& a) {
  checkSquare(op, a);
  Solution s = solve(op, a, identityLike(a).expand(a.sizes()), true);
  return {s.x, s.info};
}
Tensor linalgInv(const Tensor& a) {
  auto [inverse, info] = invert("linalg.inv", a);
  checkInfo("linalg.inv", info, Failure::SingularInverse);
  return inverse;
}
Pair linalgInvEx(const Tensor& a, bool check_errors) {
  auto result = invert("linalg.inv_ex", a);
  if (check_errors) checkInfo("linalg.inv_ex", std::get<1>(result), Failure::SingularInverse);
  return result;
}

struct LogDeterminant {
  Tensor sign, log_abs, det;
};

// The same by operators, for any device.
LogDeterminant determinantByOperators(const Factors& f) {
  static const OperatorHandle kBits{"aten::bitwise_and", "Scalar"}, kSgn{"aten::sgn", ""};
  const int64_t n = f.lu.size(-1);
  const Tensor places =
      moveTo(ops::arangeFrom(int64_t{1}, n + 1).to(DType::Int), f.pivots.device());
  const Tensor exchanges = ops::sumDims(ops::ne(f.pivots, places), DimVector{-1});
  const Tensor odd = kBits(exchanges, int64_t{1}).to(toRealType(f.lu.dtype()));
  const Tensor parity = ops::addScalar(ops::mulScalar(odd, Scalar(-2)), Scalar(1));
  const Tensor diagonal = ops::diagonal(f.lu, int64_t{0}, int64_t{-2}, int64_t{-1});
  return {ops::mul(ops::prodDim(kSgn(diagonal), int64_t{-1}), parity),
          ops::sumDims(ops::log(ops::abs(diagonal)), DimVector{-1}),
          ops::mul(ops::prodDim(diagonal, int64_t{-1}), parity)};
}

// From the diagonal of U and the parity of the exchanges.
LogDeterminant determinantOf(const char* op, const Factors& f) {
  if (!f.lu.device().isCpu()) return determinantByOperators(f);
  int64_t n = f.lu.size(-1);
  DimVector batch = batchSizes(f.lu);
  DType dtype = f.lu.dtype();
  LogDeterminant d{Tensor::empty(batch, dtype), Tensor::empty(batch, toRealType(dtype)),
                   Tensor::empty(batch, dtype)};
  dispatch<kMatrixDTypes>(op, dtype, [&]<class T>() {
    for (int64_t i = 0; i < d.sign.numel(); ++i) {
      const T* lu = matrixAt<T>(f.lu, i, n * n);
      T det = T(1), sign = T(1);
      double log_abs = 0;
      for (int64_t j = 0; j < n; ++j) {
        T e = lu[j * n + j];
        if (matrixAt<int32_t>(f.pivots, i, n)[j] != j + 1) {
          det = -det;
          sign = -sign;
        }
        det *= e;
        double size = static_cast<double>(std::abs(e));
        log_abs += std::log(size);
        if constexpr (kIsComplex<T>) {
          sign *= size == 0 ? T(0) : e / static_cast<typename T::value_type>(size);
        } else {
          sign *= static_cast<T>((e > 0) - (e < 0));
        }
      }
      d.det.data<T>()[i] = det;
      d.sign.data<T>()[i] = sign;
      dispatch<kFloats>(op, d.log_abs.dtype(),
                        [&]<class R>() { d.log_abs.data<R>()[i] = static_cast<R>(log_abs); });
    }
  });
  return d;
}

Tensor det(const Tensor& a) {
  checkSquare("linalg.det", a);
  return determinantOf("linalg.det", factorEither("linalg.det", a)).det;
}
Triple detInternal(const Tensor& a) {
  checkSquare("linalg.det", a);
  Factors f = factorEither("linalg.det", a);
  return {determinantOf("linalg.det", f).det, f.lu, f.pivots};
}
Pair slogdet(const Tensor& a) {
  checkSquare("linalg.slogdet", a);
  LogDeterminant d = determinantOf("linalg.slogdet", factorEither("linalg.slogdet", a));
  return {d.sign, d.log_abs};
}
Four slogdetInternal(const Tensor& a) {
  checkSquare("linalg.slogdet", a);
  Factors f = factorEither("linalg.slogdet", a);
  LogDeterminant d = determinantOf("linalg.slogdet", f);
  return {d.sign, d.log_abs, f.lu, f.pivots};
}
Tensor logdet(const Tensor& a) {
  checkSquare("logdet", a);
  LogDeterminant d = determinantOf("logdet", factorEither("logdet", a));
  return ops::add(ops::log(d.sign), d.log_abs);
}

// Triangular systems; `left`: A X = B, else X A = B.
Tensor solveTriangular(const char* op, const Tensor& a_in, const Tensor& b_in, bool upper,
                       bool left, bool unit, char trans) {
  checkSystem(op, a_in, b_in, left);
  int64_t n = a_in.size(-1), rows = b_in.size(-2), columns = b_in.size(-1);
  DimVector batch = broadcastShapes(batchSizes(a_in), batchSizes(b_in));
  Tensor a = columnMajor(a_in.expand(withSizes(batch, {n, n})));
  Tensor x = columnMajor(b_in.expand(withSizes(batch, {rows, columns})));
  if (x.numel() == 0) return x;
  dispatch<kMatrixDTypes>(op, a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < checkedNumel(batch); ++i) {
      Lapack<T>::trsm(left ? 'L' : 'R', upper ? 'U' : 'L', trans, unit ? 'U' : 'N',
                      static_cast<int>(rows), static_cast<int>(columns), matrixAt<T>(a, i, n * n),
                      static_cast<int>(n), matrixAt<T>(x, i, rows * columns),
                      static_cast<int>(rows));
    }
  });
  return x;
}

Tensor linalgSolveTriangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  return solveTriangular("linalg.solve_triangular", a, b, upper, left, unit, 'N');
}
Pair triangularSolve(const Tensor& b, const Tensor& a, bool upper, bool transpose, bool unit) {
  Tensor x = solveTriangular("triangular_solve", a, b, upper, true, unit, transpose ? 'T' : 'N');
  DimVector sizes = withSizes(batchSizes(x), {a.size(-2), a.size(-1)});
  return {x, columnMajor(a.expand(sizes))};
}

#define WICK_LU_INFO "(Tensor LU, Tensor pivots, Tensor info)"

// Raises what the function `api` would have said of these codes.
void linalgCheckErrors(const Tensor& info, const std::string& api, bool) {
  WICK_CHECK(info.dtype() == DType::Int, "_linalg_check_errors: expected codes of int32, got {}",
             toString(info.dtype()));
  auto isAbout = [&](const char* part) { return api.find(part) != std::string::npos; };
  Failure failure = Failure::NoConvergence;
  if (isAbout("inv")) failure = Failure::SingularInverse;
  if (isAbout("cholesky")) failure = Failure::NotPositive;
  if (isAbout("solve")) failure = Failure::SingularSolve;
  if (isAbout("lu_factor")) failure = Failure::SingularFactor;
  checkInfo(api.c_str(), info.contiguous(), failure);
}

constexpr OperatorRecord kLuRecords[] = {
    {"aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
     WICK_KERNEL(linalgCheckErrors), kSideEffects | kNeutral},
    {"aten::linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) "
     "-> " WICK_LU_INFO,
     WICK_KERNEL(luFactorEx)},
    {"aten::_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> " WICK_LU_INFO,
     WICK_KERNEL(luWithInfo)},
    {"aten::linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
     WICK_KERNEL(luFactor), kNeutral | kRaisesByElements},
    {"aten::linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
     WICK_KERNEL(linalgLu), kNeutral},
    {"aten::lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool "
     "unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
     WICK_KERNEL(luUnpack)},
    {"aten::linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool "
     "adjoint=False) -> Tensor",
     WICK_KERNEL(luSolve), kOutForm | kOutSame},
    {"aten::lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
     WICK_KERNEL(luSolveOld), kOutForm | kOutSame | kEagerCastFull},
    {"aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
     WICK_KERNEL(linalgSolve), kOutForm | kOutSame | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
     "(Tensor result, Tensor info)",
     WICK_KERNEL(linalgSolveEx), kNeutral},
    {"aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
     "(Tensor result, Tensor LU, Tensor pivots, Tensor info)",
     WICK_KERNEL(linalgSolveInternal), kNeutral},
    {"aten::linalg_inv(Tensor A) -> Tensor", WICK_KERNEL(linalgInv),
     kOutForm | kOutSame | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::inverse(Tensor self) -> Tensor", WICK_KERNEL(linalgInv),
     kOutForm | kOutSame | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
     WICK_KERNEL(linalgInvEx), kNeutral | kEagerCastFull},
    {"aten::linalg_det(Tensor A) -> Tensor", WICK_KERNEL(det), kOutForm | kOutSame | kNeutral},
    {"aten::det(Tensor self) -> Tensor", WICK_KERNEL(det), kNeutral},
    {"aten::_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
     WICK_KERNEL(detInternal), kNeutral},
    {"aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", WICK_KERNEL(slogdet),
     kNeutral},
    {"aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", WICK_KERNEL(slogdet),
     kNeutral},
    {"aten::_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
     WICK_KERNEL(slogdetInternal), kNeutral},
    {"aten::logdet(Tensor self) -> Tensor", WICK_KERNEL(logdet), kNeutral | kRaisesByElements},
    {"aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
     "unitriangular=False) -> Tensor",
     WICK_KERNEL(linalgSolveTriangular), kOutForm | kOutSame},
    {"aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
     "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
     WICK_KERNEL(triangularSolve), kEagerCastFull},
};

const RegisterOperators kLuRegistered(kLuRecords);

}  // namespace
}  // namespace wick
