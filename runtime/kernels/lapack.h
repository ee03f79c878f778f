// LAPACK for every floating and complex dtype, one matrix at a time: overloads over the element
// type hide the routines' letters. Matrices are column-major; `info` is LAPACK's (0: success). Only
// sizes below 2^31 may be passed.
#pragma once

#include <complex>
#include <vector>

namespace wick::lapack {

#define WICK_LAPACK_DECLARE(T, R)                                                                 \
  int getrf(int m, int n, T* a, int* pivots);                                                     \
  int getrs(char trans, int n, int nrhs, const T* lu, const int* pivots, T* b);                   \
  int potrf(char uplo, int n, T* a);                                                              \
  int potrs(char uplo, int n, int nrhs, const T* a, T* b);                                        \
  int potri(char uplo, int n, T* a);                                                              \
  int geqrf(int m, int n, T* a, T* tau);                                                          \
  /* The first n columns of the m x m product of k reflectors. */                                 \
  int orgqr(int m, int n, int k, T* a, const T* tau);                                             \
  int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c); \
  /* job: 'A' all vectors, 'S' the leading ones, 'N' none. */                                     \
  int gesdd(char job, int m, int n, T* a, R* s, T* u, T* vt);                                     \
  int syevd(char job, char uplo, int n, T* a, R* w);                                              \
  /* Right eigenvectors when v is not null. */                                                    \
  int geev(int n, T* a, std::complex<R>* w, std::complex<R>* v);                                  \
  int sytrf(char uplo, int n, T* a, int* pivots, bool hermitian);                                 \
  int sytrs(char uplo, int n, int nrhs, const T* a, const int* pivots, T* b, bool hermitian);     \
  void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b, \
            int ldb);                                                                             \
  int gels(int m, int n, int nrhs, T* a, T* b, int ldb);                                          \
  int gelsy(int m, int n, int nrhs, T* a, T* b, int ldb, R rcond, int* rank);                     \
  int gelsd(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank);               \
  int gelss(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank);

WICK_LAPACK_DECLARE(float, float)
WICK_LAPACK_DECLARE(double, double)
WICK_LAPACK_DECLARE(std::complex<float>, float)
WICK_LAPACK_DECLARE(std::complex<double>, double)
#undef WICK_LAPACK_DECLARE

}  // namespace wick::lapack
