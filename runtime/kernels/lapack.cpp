// The Fortran routines take everything by address. Character arguments carry a hidden length at the
// end, which is passed because a caller that leaves it out relies on luck.
#include "runtime/kernels/lapack.h"

#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "core/counted_vector.h"
#include "core/error.h"
#include "runtime/kernels/lapack_time.h"
#include "runtime/kernels/openblas.h"

namespace wick::lapack {

namespace {

using CF = std::complex<float>;
using CD = std::complex<double>;
using Int = const int*;
using Chr = const char*;

constexpr int atLeastOne(int n) {
  return std::max(n, 1);
}

// The size that a workspace query left in work[0]. A float32 holds large ones only roughly.
template <class T>
size_t asked(const T& v) {
  using R = decltype(std::real(v));
  constexpr double kExact = 1.0 / std::numeric_limits<R>::epsilon();
  const double size = std::max(1.0, static_cast<double>(std::real(v)));
  const double rounded = size < kExact ? size : size * (1 + std::numeric_limits<R>::epsilon());
  WICK_CHECK(rounded < INT32_MAX, "linear algebra: a matrix is too large for LAPACK");
  return static_cast<size_t>(rounded);
}

// The routine computes the size of its work space in 32 bits.
void checkBases(char job, int m, int n) {
  const double low = std::min(m, n);
  WICK_CHECK(job == 'N' || 5 * low * low < INT32_MAX,
             "linear algebra: a matrix of {} by {} is too large for LAPACK's singular vectors", m,
             n);
}

}  // namespace

#define WICK_ROUTINE(name, ...) constinit const OpenBlasRoutine<void(__VA_ARGS__)> name{#name};

namespace {

#define WICK_FORTRAN(p, T, R)                                                                      \
  WICK_ROUTINE(p##getrf_, Int m, Int n, T* a, Int lda, int* ipiv, int* info)                       \
  WICK_ROUTINE(p##getrs_, Chr trans, Int n, Int nrhs, const T* a, Int lda, Int ipiv, T* b,         \
               Int ldb, int* info, size_t)                                                         \
  WICK_ROUTINE(p##potrf_, Chr uplo, Int n, T* a, Int lda, int* info, size_t)                       \
  WICK_ROUTINE(p##potrs_, Chr uplo, Int n, Int nrhs, const T* a, Int lda, T* b, Int ldb,           \
               int* info, size_t)                                                                  \
  WICK_ROUTINE(p##potri_, Chr uplo, Int n, T* a, Int lda, int* info, size_t)                       \
  WICK_ROUTINE(p##geqrf_, Int m, Int n, T* a, Int lda, T* tau, T* work, Int lwork, int* info)      \
  WICK_ROUTINE(p##sytrf_, Chr uplo, Int n, T* a, Int lda, int* ipiv, T* work, Int lwork,           \
               int* info, size_t)                                                                  \
  WICK_ROUTINE(p##sytrs_, Chr uplo, Int n, Int nrhs, const T* a, Int lda, Int ipiv, T* b, Int ldb, \
               int* info, size_t)                                                                  \
  WICK_ROUTINE(p##gels_, Chr trans, Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, T* work, \
               Int lwork, int* info, size_t)
WICK_FORTRAN(s, float, float)
WICK_FORTRAN(d, double, double)
WICK_FORTRAN(c, CF, float)
WICK_FORTRAN(z, CD, double)
#undef WICK_FORTRAN

#define WICK_FORTRAN_Q(gqr, mqr, T)                                                          \
  WICK_ROUTINE(gqr##_, Int m, Int n, Int k, T* a, Int lda, const T* tau, T* work, Int lwork, \
               int* info)                                                                    \
  WICK_ROUTINE(mqr##_, Chr side, Chr trans, Int m, Int n, Int k, const T* a, Int lda,        \
               const T* tau, T* c, Int ldc, T* work, Int lwork, int* info, size_t, size_t)
WICK_FORTRAN_Q(sorgqr, sormqr, float)
WICK_FORTRAN_Q(dorgqr, dormqr, double)
WICK_FORTRAN_Q(cungqr, cunmqr, CF)
WICK_FORTRAN_Q(zungqr, zunmqr, CD)
#undef WICK_FORTRAN_Q

#define WICK_FORTRAN_REAL(p, T)                                                              \
  WICK_ROUTINE(p##gesdd_, Chr job, Int m, Int n, T* a, Int lda, T* s, T* u, Int ldu, T* vt,  \
               Int ldvt, T* work, Int lwork, int* iwork, int* info, size_t)                  \
  WICK_ROUTINE(p##syevd_, Chr job, Chr uplo, Int n, T* a, Int lda, T* w, T* work, Int lwork, \
               int* iwork, Int liwork, int* info, size_t, size_t)                            \
  WICK_ROUTINE(p##geev_, Chr jobvl, Chr jobvr, Int n, T* a, Int lda, T* wr, T* wi, T* vl,    \
               Int ldvl, T* vr, Int ldvr, T* work, Int lwork, int* info, size_t, size_t)     \
  WICK_ROUTINE(p##gelsy_, Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, int* jpvt,   \
               const T* rcond, int* rank, T* work, Int lwork, int* info)                     \
  WICK_ROUTINE(p##gelsd_, Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, T* s,        \
               const T* rcond, int* rank, T* work, Int lwork, int* iwork, int* info)         \
  WICK_ROUTINE(p##gelss_, Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, T* s,        \
               const T* rcond, int* rank, T* work, Int lwork, int* info)
WICK_FORTRAN_REAL(s, float)
WICK_FORTRAN_REAL(d, double)
#undef WICK_FORTRAN_REAL

#define WICK_FORTRAN_COMPLEX(p, T, R)                                                              \
  WICK_ROUTINE(p##gesdd_, Chr job, Int m, Int n, T* a, Int lda, R* s, T* u, Int ldu, T* vt,        \
               Int ldvt, T* work, Int lwork, R* rwork, int* iwork, int* info, size_t)              \
  WICK_ROUTINE(p##heevd_, Chr job, Chr uplo, Int n, T* a, Int lda, R* w, T* work, Int lwork,       \
               R* rwork, Int lrwork, int* iwork, Int liwork, int* info, size_t, size_t)            \
  WICK_ROUTINE(p##geev_, Chr jobvl, Chr jobvr, Int n, T* a, Int lda, T* w, T* vl, Int ldvl, T* vr, \
               Int ldvr, T* work, Int lwork, R* rwork, int* info, size_t, size_t)                  \
  WICK_ROUTINE(p##hetrf_, Chr uplo, Int n, T* a, Int lda, int* ipiv, T* work, Int lwork,           \
               int* info, size_t)                                                                  \
  WICK_ROUTINE(p##hetrs_, Chr uplo, Int n, Int nrhs, const T* a, Int lda, Int ipiv, T* b, Int ldb, \
               int* info, size_t)                                                                  \
  WICK_ROUTINE(p##gelsy_, Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, int* jpvt,         \
               const R* rcond, int* rank, T* work, Int lwork, R* rwork, int* info)                 \
  WICK_ROUTINE(p##gelsd_, Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, R* s,              \
               const R* rcond, int* rank, T* work, Int lwork, R* rwork, int* iwork, int* info)     \
  WICK_ROUTINE(p##gelss_, Int m, Int n, Int nrhs, T* a, Int lda, T* b, Int ldb, R* s,              \
               const R* rcond, int* rank, T* work, Int lwork, R* rwork, int* info)
WICK_FORTRAN_COMPLEX(c, CF, float)
WICK_FORTRAN_COMPLEX(z, CD, double)
#undef WICK_FORTRAN_COMPLEX
}  // namespace
#undef WICK_ROUTINE

// Runs call(work, lwork) twice: once to ask how much work space it wants, once with it.
#define WICK_WITH_WORK(T, call)               \
  {                                           \
    CountedVector<T> work(1);                 \
    int lwork = -1;                           \
    call;                                     \
    if (info != 0) return info;               \
    lwork = static_cast<int>(asked(work[0])); \
    work.resize(static_cast<size_t>(lwork));  \
    call;                                     \
    return info;                              \
  }

#define WICK_DEFINE(p, T)                                                                        \
  int getrf(int m, int n, T* a, int* pivots) {                                                   \
    checkTime<T>(Work::Products, luOperations(m, n), "an LU factorization");                     \
    int info = 0, lda = atLeastOne(m);                                                           \
    p##getrf_(&m, &n, a, &lda, pivots, &info);                                                   \
    return info;                                                                                 \
  }                                                                                              \
  int getrs(char trans, int n, int nrhs, const T* lu, const int* pivots, T* b) {                 \
    checkTime<T>(Work::Products, 2.0 * n * n * nrhs, "a solution from LU factors");              \
    int info = 0, ld = atLeastOne(n);                                                            \
    p##getrs_(&trans, &n, &nrhs, lu, &ld, pivots, b, &ld, &info, 1);                             \
    return info;                                                                                 \
  }                                                                                              \
  int potrf(char uplo, int n, T* a) {                                                            \
    checkTime<T>(Work::Products, luOperations(n, n) / 2, "a Cholesky factorization");            \
    int info = 0, ld = atLeastOne(n);                                                            \
    p##potrf_(&uplo, &n, a, &ld, &info, 1);                                                      \
    return info;                                                                                 \
  }                                                                                              \
  int potrs(char uplo, int n, int nrhs, const T* a, T* b) {                                      \
    checkTime<T>(Work::Products, 2.0 * n * n * nrhs, "a solution from Cholesky factors");        \
    int info = 0, ld = atLeastOne(n);                                                            \
    p##potrs_(&uplo, &n, &nrhs, a, &ld, b, &ld, &info, 1);                                       \
    return info;                                                                                 \
  }                                                                                              \
  int potri(char uplo, int n, T* a) {                                                            \
    checkTime<T>(Work::Products, luOperations(n, n), "an inverse from Cholesky factors");        \
    int info = 0, ld = atLeastOne(n);                                                            \
    p##potri_(&uplo, &n, a, &ld, &info, 1);                                                      \
    return info;                                                                                 \
  }                                                                                              \
  int geqrf(int m, int n, T* a, T* tau) {                                                        \
    checkTime<T>(Work::Products, qrOperations(m, n), "a QR factorization");                      \
    int info = 0, ld = atLeastOne(m);                                                            \
    WICK_WITH_WORK(T, p##geqrf_(&m, &n, a, &ld, tau, work.data(), &lwork, &info))                \
  }                                                                                              \
  int gels(int m, int n, int nrhs, T* a, T* b, int ldb) {                                        \
    checkTime<T>(Work::Products, qrOperations(m, n) + 4.0 * m * n * nrhs, "least squares");      \
    int info = 0, ld = atLeastOne(m);                                                            \
    WICK_WITH_WORK(T,                                                                            \
                   p##gels_("N", &m, &n, &nrhs, a, &ld, b, &ldb, work.data(), &lwork, &info, 1)) \
  }
WICK_DEFINE(s, float)
WICK_DEFINE(d, double)
WICK_DEFINE(c, CF)
WICK_DEFINE(z, CD)
#undef WICK_DEFINE

#define WICK_DEFINE_Q(gqr, mqr, T)                                                                 \
  int orgqr(int m, int n, int k, T* a, const T* tau) {                                             \
    checkTime<T>(Work::Products, 4.0 * m * n * k, "a product of reflectors");                      \
    int info = 0, ld = atLeastOne(m);                                                              \
    WICK_WITH_WORK(T, gqr##_(&m, &n, &k, a, &ld, tau, work.data(), &lwork, &info))                 \
  }                                                                                                \
  int ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau, T* c) { \
    checkTime<T>(Work::Products, 4.0 * m * n * k, "a product with reflectors");                    \
    int info = 0, ld = atLeastOne(m);                                                              \
    WICK_WITH_WORK(T, mqr##_(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ld, work.data(), &lwork, \
                             &info, 1, 1))                                                         \
  }
WICK_DEFINE_Q(sorgqr, sormqr, float)
WICK_DEFINE_Q(dorgqr, dormqr, double)
WICK_DEFINE_Q(cungqr, cunmqr, CF)
WICK_DEFINE_Q(zungqr, zunmqr, CD)
#undef WICK_DEFINE_Q

#define WICK_DEFINE_REAL(p, T)                                                                     \
  int gesdd(char job, int m, int n, T* a, T* s, T* u, T* vt) {                                     \
    checkBases(job, m, n);                                                                         \
    checkTime<T>(Work::Bidiagonal, singularOperations(job, m, n),                                  \
                 "a singular value decomposition");                                                \
    int info = 0, lda = atLeastOne(m), k = std::min(m, n);                                         \
    int ldvt = atLeastOne(job == 'A' ? n : job == 'S' ? k : 1);                                    \
    CountedVector<int> iwork(static_cast<size_t>(8 * k + 1));                                      \
    WICK_WITH_WORK(T, p##gesdd_(&job, &m, &n, a, &lda, s, u, &lda, vt, &ldvt, work.data(), &lwork, \
                                iwork.data(), &info, 1))                                           \
  }                                                                                                \
  int syevd(char job, char uplo, int n, T* a, T* w) {                                              \
    checkTime<T>(Work::Tridiagonal, symmetricOperations(job == 'V', n), "eigenvalues");            \
    int info = 0, ld = atLeastOne(n), liwork = 5 * n + 3;                                          \
    CountedVector<int> iwork(static_cast<size_t>(liwork));                                         \
    WICK_WITH_WORK(T, p##syevd_(&job, &uplo, &n, a, &ld, w, work.data(), &lwork, iwork.data(),     \
                                &liwork, &info, 1, 1))                                             \
  }                                                                                                \
  static int geevReal(int n, T* a, T* wr, T* wi, T* v) {                                           \
    int info = 0, ld = atLeastOne(n), one = 1;                                                     \
    const char* job = v ? "V" : "N";                                                               \
    T none = 0;                                                                                    \
    WICK_WITH_WORK(T, p##geev_("N", job, &n, a, &ld, wr, wi, &none, &one, v ? v : &none,           \
                               v ? &ld : &one, work.data(), &lwork, &info, 1, 1))                  \
  }                                                                                                \
  int geev(int n, T* a, std::complex<T>* w, std::complex<T>* v) {                                  \
    checkTime<T>(Work::Hessenberg, eigenOperations(v != nullptr, n), "eigenvalues");               \
    size_t size = static_cast<size_t>(n);                                                          \
    CountedVector<T> wr(size), wi(size), vr(v ? size*size : 0);                                    \
    int info = geevReal(n, a, wr.data(), wi.data(), v ? vr.data() : nullptr);                      \
    for (size_t j = 0; j < size; ++j) w[j] = {wr[j], wi[j]};                                       \
    if (!v) return info;                                                                           \
    /* Conjugate pairs share two columns: the real and the imaginary part. */                      \
    for (size_t j = 0; j < size; ++j) {                                                            \
      bool pair = wi[j] != 0 && j + 1 < size;                                                      \
      for (size_t i = 0; i < size; ++i) {                                                          \
        T re = vr[j * size + i], im = pair ? vr[(j + 1) * size + i] : T(0);                        \
        v[j * size + i] = {re, im};                                                                \
        if (pair) v[(j + 1) * size + i] = {re, -im};                                               \
      }                                                                                            \
      if (pair) ++j;                                                                               \
    }                                                                                              \
    return info;                                                                                   \
  }                                                                                                \
  int sytrf(char uplo, int n, T* a, int* pivots, bool) {                                           \
    checkTime<T>(Work::Products, luOperations(n, n), "an LDL factorization");                      \
    int info = 0, ld = atLeastOne(n);                                                              \
    WICK_WITH_WORK(T, p##sytrf_(&uplo, &n, a, &ld, pivots, work.data(), &lwork, &info, 1))         \
  }                                                                                                \
  int sytrs(char uplo, int n, int nrhs, const T* a, const int* pivots, T* b, bool) {               \
    checkTime<T>(Work::Products, 2.0 * n * n * nrhs, "a solution from LDL factors");               \
    int info = 0, ld = atLeastOne(n);                                                              \
    p##sytrs_(&uplo, &n, &nrhs, a, &ld, pivots, b, &ld, &info, 1);                                 \
    return info;                                                                                   \
  }                                                                                                \
  int gelsy(int m, int n, int nrhs, T* a, T* b, int ldb, T rcond, int* rank) {                     \
    checkTime<T>(Work::Products, 2 * qrOperations(m, n) + 4.0 * m * n * nrhs, "least squares");    \
    int info = 0, ld = atLeastOne(m);                                                              \
    CountedVector<int> jpvt(static_cast<size_t>(atLeastOne(n)));                                   \
    WICK_WITH_WORK(T, p##gelsy_(&m, &n, &nrhs, a, &ld, b, &ldb, jpvt.data(), &rcond, rank,         \
                                work.data(), &lwork, &info))                                       \
  }                                                                                                \
  int gelsd(int m, int n, int nrhs, T* a, T* b, int ldb, T* s, T rcond, int* rank) {               \
    checkTime<T>(Work::Bidiagonal, singularOperations('N', m, n) + 4.0 * m * n * nrhs,             \
                 "least squares");                                                                 \
    int info = 0, ld = atLeastOne(m);                                                              \
    CountedVector<int> iwork(static_cast<size_t>(std::min(m, n)) * 128 + 128);                     \
    WICK_WITH_WORK(T, p##gelsd_(&m, &n, &nrhs, a, &ld, b, &ldb, s, &rcond, rank, work.data(),      \
                                &lwork, iwork.data(), &info))                                      \
  }                                                                                                \
  int gelss(int m, int n, int nrhs, T* a, T* b, int ldb, T* s, T rcond, int* rank) {               \
    checkTime<T>(Work::Bidiagonal, singularOperations('S', m, n) + 4.0 * m * n * nrhs,             \
                 "least squares");                                                                 \
    int info = 0, ld = atLeastOne(m);                                                              \
    WICK_WITH_WORK(                                                                                \
        T, p##gelss_(&m, &n, &nrhs, a, &ld, b, &ldb, s, &rcond, rank, work.data(), &lwork, &info)) \
  }
WICK_DEFINE_REAL(s, float)
WICK_DEFINE_REAL(d, double)
#undef WICK_DEFINE_REAL

#define WICK_DEFINE_COMPLEX(p, T, R)                                                               \
  int gesdd(char job, int m, int n, T* a, R* s, T* u, T* vt) {                                     \
    checkBases(job, m, n);                                                                         \
    checkTime<T>(Work::Bidiagonal, singularOperations(job, m, n),                                  \
                 "a singular value decomposition");                                                \
    int info = 0, lda = atLeastOne(m);                                                             \
    size_t low = static_cast<size_t>(std::min(m, n)), high = static_cast<size_t>(std::max(m, n));  \
    int ldvt = atLeastOne(job == 'A' ? n : job == 'S' ? static_cast<int>(low) : 1);                \
    CountedVector<int> iwork(8 * low + 1);                                                         \
    CountedVector<R> rwork(                                                                        \
        std::max(5 * low * low + 5 * low, 2 * high * low + 2 * low * low + low) + 7 * low + 1);    \
    WICK_WITH_WORK(T, p##gesdd_(&job, &m, &n, a, &lda, s, u, &lda, vt, &ldvt, work.data(), &lwork, \
                                rwork.data(), iwork.data(), &info, 1))                             \
  }                                                                                                \
  int syevd(char job, char uplo, int n, T* a, R* w) {                                              \
    checkTime<T>(Work::Tridiagonal, symmetricOperations(job == 'V', n), "eigenvalues");            \
    int info = 0, ld = atLeastOne(n), liwork = 5 * n + 3;                                          \
    int lrwork = 2 * n * n + 5 * n + 1;                                                            \
    CountedVector<int> iwork(static_cast<size_t>(liwork));                                         \
    CountedVector<R> rwork(static_cast<size_t>(lrwork));                                           \
    WICK_WITH_WORK(T, p##heevd_(&job, &uplo, &n, a, &ld, w, work.data(), &lwork, rwork.data(),     \
                                &lrwork, iwork.data(), &liwork, &info, 1, 1))                      \
  }                                                                                                \
  int geev(int n, T* a, T* w, T* v) {                                                              \
    checkTime<T>(Work::Hessenberg, eigenOperations(v != nullptr, n), "eigenvalues");               \
    int info = 0, ld = atLeastOne(n), one = 1;                                                     \
    const char* job = v ? "V" : "N";                                                               \
    T none = 0;                                                                                    \
    CountedVector<R> rwork(static_cast<size_t>(2 * n + 1));                                        \
    WICK_WITH_WORK(T, p##geev_("N", job, &n, a, &ld, w, &none, &one, v ? v : &none,                \
                               v ? &ld : &one, work.data(), &lwork, rwork.data(), &info, 1, 1))    \
  }                                                                                                \
  int sytrf(char uplo, int n, T* a, int* pivots, bool hermitian) {                                 \
    checkTime<T>(Work::Products, luOperations(n, n), "an LDL factorization");                      \
    int info = 0, ld = atLeastOne(n);                                                              \
    const auto& routine = hermitian ? p##hetrf_ : p##sytrf_;                                       \
    WICK_WITH_WORK(T, routine(&uplo, &n, a, &ld, pivots, work.data(), &lwork, &info, 1))           \
  }                                                                                                \
  int sytrs(char uplo, int n, int nrhs, const T* a, const int* pivots, T* b, bool hermitian) {     \
    checkTime<T>(Work::Products, 2.0 * n * n * nrhs, "a solution from LDL factors");               \
    int info = 0, ld = atLeastOne(n);                                                              \
    (hermitian ? p##hetrs_ : p##sytrs_)(&uplo, &n, &nrhs, a, &ld, pivots, b, &ld, &info, 1);       \
    return info;                                                                                   \
  }                                                                                                \
  int gelsy(int m, int n, int nrhs, T* a, T* b, int ldb, R rcond, int* rank) {                     \
    checkTime<T>(Work::Products, 2 * qrOperations(m, n) + 4.0 * m * n * nrhs, "least squares");    \
    int info = 0, ld = atLeastOne(m);                                                              \
    CountedVector<int> jpvt(static_cast<size_t>(atLeastOne(n)));                                   \
    CountedVector<R> rwork(static_cast<size_t>(2 * n + 1));                                        \
    WICK_WITH_WORK(T, p##gelsy_(&m, &n, &nrhs, a, &ld, b, &ldb, jpvt.data(), &rcond, rank,         \
                                work.data(), &lwork, rwork.data(), &info))                         \
  }                                                                                                \
  int gelsd(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank) {               \
    checkTime<T>(Work::Bidiagonal, singularOperations('N', m, n) + 4.0 * m * n * nrhs,             \
                 "least squares");                                                                 \
    int info = 0, ld = atLeastOne(m);                                                              \
    size_t low = static_cast<size_t>(std::min(m, n)), rhs = static_cast<size_t>(nrhs);             \
    CountedVector<int> iwork(low * 128 + 128);                                                     \
    CountedVector<R> rwork(low * 1024 + 64 * low * rhs + (26 + rhs) * 27 * 27 + 4096);             \
    WICK_WITH_WORK(T, p##gelsd_(&m, &n, &nrhs, a, &ld, b, &ldb, s, &rcond, rank, work.data(),      \
                                &lwork, rwork.data(), iwork.data(), &info))                        \
  }                                                                                                \
  int gelss(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank) {               \
    checkTime<T>(Work::Bidiagonal, singularOperations('S', m, n) + 4.0 * m * n * nrhs,             \
                 "least squares");                                                                 \
    int info = 0, ld = atLeastOne(m);                                                              \
    CountedVector<R> rwork(static_cast<size_t>(5 * std::min(m, n) + 1));                           \
    WICK_WITH_WORK(T, p##gelss_(&m, &n, &nrhs, a, &ld, b, &ldb, s, &rcond, rank, work.data(),      \
                                &lwork, rwork.data(), &info))                                      \
  }
WICK_DEFINE_COMPLEX(c, CF, float)
WICK_DEFINE_COMPLEX(z, CD, double)
#undef WICK_DEFINE_COMPLEX

namespace {
CBLAS_SIDE sideOf(char c) {
  return c == 'L' ? CblasLeft : CblasRight;
}
CBLAS_UPLO uploOf(char c) {
  return c == 'U' ? CblasUpper : CblasLower;
}
CBLAS_TRANSPOSE transOf(char c) {
  return c == 'N' ? CblasNoTrans : c == 'T' ? CblasTrans : CblasConjTrans;
}
CBLAS_DIAG diagOf(char c) {
  return c == 'U' ? CblasUnit : CblasNonUnit;
}
}  // namespace

#define WICK_DEFINE_TRSM(T, routine, one)                                                         \
  void trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda, T* b, \
            int ldb) {                                                                            \
    checkTime<T>(Work::Products, 1.0 * m * n * (side == 'L' ? m : n), "a triangular solution");   \
    static constinit const OpenBlasRoutine<decltype(routine)> solve{#routine};                    \
    T alpha = 1;                                                                                  \
    solve(CblasColMajor, sideOf(side), uploOf(uplo), transOf(trans), diagOf(diag), m, n, one, a,  \
          lda, b, ldb);                                                                           \
  }
WICK_DEFINE_TRSM(float, cblas_strsm, alpha)
WICK_DEFINE_TRSM(double, cblas_dtrsm, alpha)
WICK_DEFINE_TRSM(CF, cblas_ctrsm, &alpha)
WICK_DEFINE_TRSM(CD, cblas_ztrsm, &alpha)
#undef WICK_DEFINE_TRSM

}  // namespace wick::lapack
