// Factorizations of matrices on CUDA devices, by cuSOLVER, one matrix after the other.
//
// Matrices are column-major and follow each other; `info` has an int32 for each, as LAPACK gives it. All
// are dense, on one device, and of float32, float64 or a complex dtype of these.
#pragma once

#include "core/tensor.h"

namespace wick::cuda {

// Of `a` [..., m, n] in place; `pivots` is int64 [..., min(m, n)], and counts from 1. Without pivoting
// where it is undefined.
void factorLu(const char* op, const Tensor& a, const Tensor& pivots, const Tensor& info);
// One triangle of `a` [..., n, n] in place.
void factorCholesky(const char* op, const Tensor& a, bool upper, const Tensor& info);
// Reflectors below R in place; `tau` [..., min(m, n)].
void factorQr(const char* op, const Tensor& a, const Tensor& tau, const Tensor& info);
// Of `a` [..., m, n] with m >= n, which is written over. `u` [..., m, m or n] and `vh` [..., n, n] are
// undefined when only values are wanted.
void singularValues(const char* op, const Tensor& a, const Tensor& s, const Tensor& u,
                    const Tensor& vh, const Tensor& info);
// Of Hermitian matrices, ascending; vectors, when they are wanted, take the place of `a`.
void hermitianEigenvalues(const char* op, const Tensor& a, const Tensor& values, bool upper,
                          bool vectors, const Tensor& info);
// `values` [..., n] and `vectors` [..., n, n], which may be undefined, are complex; `a` is too, and is
// written over.
void eigenvalues(const char* op, const Tensor& a, const Tensor& values, const Tensor& vectors,
                 const Tensor& info);

}  // namespace wick::cuda
