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

Tensor emptyColumnMajor(IntSpan sizes, DType dtype) {
  DimVector swapped(sizes);
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  return Tensor::empty(swapped, dtype).transpose(-2, -1);
}

DimVector withSizes(DimVector batch, std::initializer_list<int64_t> rest) {
  for (int64_t r : rest) batch.push_back(r);
  return batch;
}

Tensor adjoint(const Tensor& a) {
  Tensor t = a.transpose(-2, -1);
  return isComplex(a.dtype()) ? ops::conj(t) : t;
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
