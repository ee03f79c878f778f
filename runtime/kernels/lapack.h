// LAPACK for every floating and complex dtype, one matrix at a time. Matrices are column-major;
// results are LAPACK's `info` (0: success). Only sizes below 2^31 may be passed.
#pragma once

#include <complex>

namespace wick {

template <class T>
struct Lapack {
  using R = decltype(std::real(T()));

  static int getrf(int m, int n, T* a, int* pivots);
  static int getrs(char trans, int n, int nrhs, const T* lu, const int* pivots, T* b);
  static int potrf(char uplo, int n, T* a);
  static int potrs(char uplo, int n, int nrhs, const T* a, T* b);
  static int potri(char uplo, int n, T* a);
  static int geqrf(int m, int n, T* a, T* tau);
  // The first n columns of the m x m product of k reflectors.
  static int orgqr(int m, int n, int k, T* a, const T* tau);
  static int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau,
                   T* c);
  // job: 'A' all vectors, 'S' the leading ones, 'N' none.
  static int gesdd(char job, int m, int n, T* a, R* s, T* u, T* vt);
  static int syevd(char job, char uplo, int n, T* a, R* w);
  // Right eigenvectors when v is not null.
  static int geev(int n, T* a, std::complex<R>* w, std::complex<R>* v);
  static int sytrf(char uplo, int n, T* a, int* pivots, bool hermitian);
  static int sytrs(char uplo, int n, int nrhs, const T* a, const int* pivots, T* b, bool hermitian);
  static void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda,
                   T* b, int ldb);
  static int gels(int m, int n, int nrhs, T* a, T* b, int ldb);
  static int gelsy(int m, int n, int nrhs, T* a, T* b, int ldb, R rcond, int* rank);
  static int gelsd(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank);
  static int gelss(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank);
};

}  // namespace wick
