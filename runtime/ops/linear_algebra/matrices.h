// Batches of matrices for the operators that LAPACK computes.
#pragma once

#include <string>

#include "core/dtype_dispatch.h"
#include "core/tensor.h"

namespace wick::linalg {

inline constexpr unsigned kMatrixDTypes = kFloats | kComplexes;

// RuntimeErrors that name `op` unless `a` is a (square) matrix or a batch of them of a floating or
// complex dtype, and of sizes that LAPACK takes.
void checkMatrix(const char* op, const Tensor& a);
void checkSquare(const char* op, const Tensor& a);

// A fresh copy whose matrices are column-major and follow each other.
Tensor columnMajor(const Tensor& a);
// Uninitialized, laid out the same way.
Tensor emptyColumnMajor(IntSpan sizes, DType dtype, Device device = {});

// The sizes of the batch: all but the last two.
inline DimVector batchSizes(const Tensor& a) {
  return DimVector(a.sizes().first(static_cast<size_t>(a.dim() - 2)));
}
// Those with other sizes behind them.
DimVector withSizes(DimVector batch, std::initializer_list<int64_t> rest);
inline int64_t batchCount(const Tensor& a) {
  return checkedNumel(batchSizes(a));
}

// The matrix (or row of per-matrix values) number `i` of a tensor with `each` elements a matrix.
template <class T>
T* matrixAt(const Tensor& t, int64_t i, int64_t each) {
  return t.data<T>() + i * each;
}

// Conjugate transpose; a view for real dtypes.
Tensor adjoint(const Tensor& a);

// RuntimeError unless A X = B, or X A = B, has square matrices A and ones of its size and dtype.
void checkSystem(const char* op, const Tensor& a, const Tensor& b, bool left);
// The same where A is given by LU factors and pivots.
void checkFactored(const char* op, const Tensor& lu, const Tensor& pivots, const Tensor& b,
                   bool left);
// The same where A is given by a Cholesky factor.
void checkCholesky(const char* op, const Tensor& factor, const Tensor& b);
// L (unit lower) and U of LU factors; without `data` both are empty. With `permutation` the pivots are checked.
struct Triangles {
  Tensor l, u;
};
Triangles trianglesOf(const char* op, const Tensor& lu, const Tensor& pivots, bool data,
                      bool permutation);
// Of "L" and "U" in either case. RuntimeError for others.
bool isUpper(const char* op, const std::string& uplo);

// RuntimeError unless `tau` holds the factors of the reflectors in the columns of `a`.
void checkReflectors(const char* op, const Tensor& a, const Tensor& tau);
// The same for a product of them with `other`, from the left or the right.
void checkReflected(const char* op, const Tensor& a, const Tensor& tau, const Tensor& other,
                    bool left);

// Raises what torch.linalg raises for the first non-zero entry of `given` (int32).
enum class Failure { SingularInverse, SingularSolve, NotPositive, NoConvergence, SingularFactor };
void checkInfo(const char* op, const Tensor& given, Failure failure);

}  // namespace wick::linalg
