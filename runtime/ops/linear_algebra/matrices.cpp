#include "runtime/ops/linear_algebra/matrices.h"

#include "core/device_backend.h"
#include "runtime/ops/common_calls.h"

namespace wick::linalg {

void checkMatrix(const char* op, const Tensor& a) {
  WICK_CHECK(a.dim() >= 2, "{}: The input tensor A must have at least 2 dimensions, but has {}", op,
             a.dim());
  WICK_CHECK(a.dtype() == DType::Float || a.dtype() == DType::Double || isComplex(a.dtype()),
             "{}: Expected a floating point or complex tensor as input. Got {}", op,
             scalarTypeName(a.dtype()));
  // LAPACK counts in 32 bits, and its work space grows with the square.
  WICK_CHECK(a.size(-1) < 30000 && a.size(-2) < 30000, "{}: matrices of shape {} are too large", op,
             formatInts(a.sizes()));
}

void checkSquare(const char* op, const Tensor& a) {
  checkMatrix(op, a);
  WICK_CHECK(a.size(-1) == a.size(-2),
             "{}: A must be batches of square matrices, but they are {} by {} matrices", op,
             a.size(-2), a.size(-1));
}

Tensor columnMajor(const Tensor& a) {
  return a.transpose(-2, -1).clone(MemoryFormat::Contiguous).transpose(-2, -1);
}

Tensor emptyColumnMajor(IntSpan sizes, DType dtype, Device device) {
  DimVector swapped(sizes);
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  return Tensor::empty(swapped, dtype, device).transpose(-2, -1);
}

DimVector withSizes(DimVector batch, std::initializer_list<int64_t> rest) {
  for (int64_t r : rest) batch.push_back(r);
  return batch;
}

Tensor adjoint(const Tensor& a) {
  Tensor t = a.transpose(-2, -1);
  return isComplex(a.dtype()) ? ops::conj(t) : t;
}

namespace {
void checkFits(const char* op, const Tensor& a, const Tensor& b, bool left) {
  WICK_CHECK((left ? b.size(-2) : b.size(-1)) == a.size(-1),
             "{}: Incompatible shapes of A and B for the equation {} ({}x{} and {}x{})", op,
             left ? "AX = B" : "XA = B", a.size(-2), a.size(-1), b.size(-2), b.size(-1));
}
}  // namespace

void checkSystem(const char* op, const Tensor& a, const Tensor& b, bool left) {
  checkSquare(op, a);
  checkMatrix(op, b);
  WICK_CHECK(a.dtype() == b.dtype(), "{}: Expected A and B to have the same dtype, got {} and {}",
             op, toString(a.dtype()), toString(b.dtype()));
  checkFits(op, a, b, left);
}

void checkFactored(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& b,
                   bool left) {
  checkSquare(op, lu);
  checkMatrix(op, b);
  WICK_CHECK(lu.dtype() == b.dtype() && pivots.dtype() == DType::Int &&
                 pivots.dim() == lu.dim() - 1 && pivots.size(-1) == lu.size(-1),
             "{}: expected factors of one dtype and 32-bit pivots, got {}, {} and {}", op,
             lu.describe(), pivots.describe(), b.describe());
  checkFits(op, lu, b, left);
}

void checkCholesky(const char* op, const Tensor& factor, const Tensor& b) {
  checkSquare(op, factor);
  checkMatrix(op, b);
  WICK_CHECK(
      b.size(-2) == factor.size(-1) && factor.dtype() == b.dtype(),
      "{}: Incompatible matrix sizes: each A matrix is {} by {} but each b matrix is {} by {}", op,
      factor.size(-1), factor.size(-1), b.size(-2), b.size(-1));
}

Triangles trianglesOf(const char* op, const Tensor& lu, const Tensor& pivots, bool data,
                      bool permutation) {
  WICK_CHECK(lu.dim() >= 2 && lu.size(-1) < 30000 && lu.size(-2) < 30000,
             "{}: expected matrices, and none of 30000 rows or columns, got {}", op, lu.describe());
  const int64_t k = std::min(lu.size(-2), lu.size(-1));
  WICK_CHECK(!permutation || (pivots.dtype() == DType::Int && pivots.dim() == lu.dim() - 1 &&
                              pivots.size(-1) == k && pivots.numel() == batchCount(lu) * k),
             "{}: LU_pivots is expected to be a batch of {} 32-bit integers, got {}", op, k,
             pivots.describe());
  const Tensor none = Tensor::empty(DimVector{0}, lu.dtype(), lu.device());
  if (!data) return {none, none};
  const Tensor l =
      ops::tril(lu.narrow(lu.dim() - 1, 0, k), int64_t{-1}).clone(MemoryFormat::Contiguous);
  if (l.numel() > 0) ops::diagonal(l, int64_t{0}, int64_t{-2}, int64_t{-1}).fill(1);
  return {l, ops::triu(lu.narrow(lu.dim() - 2, 0, k), int64_t{0})};
}

bool isUpper(const char* op, const std::string& uplo) {
  WICK_CHECK(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u",
             "{}: Expected UPLO argument to be 'L' or 'U', but got {}", op, uplo);
  return uplo == "U" || uplo == "u";
}

void checkReflectors(const char* op, const Tensor& a, const Tensor& tau) {
  checkMatrix(op, a);
  WICK_CHECK(a.size(-2) >= a.size(-1),
             "{}: input.shape[-2] must be greater than or equal to input.shape[-1]", op);
  WICK_CHECK(tau.dim() == a.dim() - 1 && tau.size(-1) <= a.size(-1) && tau.dtype() == a.dtype() &&
                 (tau.dim() == 1 || DimVector(tau.sizes().first(
                                        static_cast<size_t>(tau.dim() - 1))) == batchSizes(a)),
             "{}: Expected tau to match input of shape {}, got {}", op, formatInts(a.sizes()),
             tau.describe());
}

void checkReflected(const char* op, const Tensor& a, const Tensor& tau, const Tensor& other,
                    bool left) {
  checkMatrix(op, a);
  checkMatrix(op, other);
  const int64_t k = tau.dim() > 0 ? tau.size(-1) : 0;
  const int64_t rows = left ? other.size(-2) : other.size(-1);
  WICK_CHECK(a.size(-2) == rows && k <= a.size(-1) && k <= rows && a.dtype() == other.dtype() &&
                 tau.dtype() == a.dtype() && tau.dim() == a.dim() - 1 &&
                 batchSizes(a) == batchSizes(other) && tau.numel() == batchCount(a) * k,
             "{}: input, tau and other do not fit: {}, {} and {}", op, a.describe(), tau.describe(),
             other.describe());
}

void checkInfo(const char* op, const Tensor& given, Failure failure) {
  const Tensor info = moveTo(given, Device());
  for (int64_t i = 0; i < info.numel(); ++i) {
    int code = info.data<int32_t>()[i];
    if (code == 0) continue;
    std::string which = info.dim() == 0 ? "" : fmt::format("(Batch element {}): ", i);
    WICK_CHECK(code > 0, "{}: {}argument {} has an illegal value", op, which,
               -static_cast<int64_t>(code));
    switch (failure) {
      case Failure::SingularInverse:
        throwRuntimeError(
            "{}: {}The diagonal element {} is zero, the inversion could not be "
            "completed because the input matrix is singular.",
            op, which, code);
      case Failure::SingularSolve:
        throwRuntimeError("{}: {}The solver failed because the input matrix is singular.", op,
                          which);
      case Failure::NotPositive:
        throwRuntimeError(
            "{}: {}The factorization could not be completed because the input is not "
            "positive-definite (the leading minor of order {} is not "
            "positive-definite).",
            op, which, code);
      case Failure::NoConvergence:
        throwRuntimeError(
            "{}: {}The algorithm failed to converge because the input matrix is "
            "ill-conditioned or has too many repeated singular or eigen values "
            "(error code: {}).",
            op, which, code);
      case Failure::SingularFactor:
        throwRuntimeError(
            "{}: {}The factorization could not be completed because the diagonal "
            "element {} is zero.",
            op, which, code);
    }
  }
}

}  // namespace wick::linalg
