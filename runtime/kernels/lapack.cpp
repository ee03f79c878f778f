// The Fortran routines take everything by address. Character arguments carry a hidden length at the
// end, which is passed because a caller that leaves it out relies on luck.
#include "runtime/kernels/lapack.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "core/counted_vector.h"
#include "core/error.h"
#include "runtime/kernels/lapack_time.h"
#include "runtime/kernels/openblas.h"

namespace wick {

using namespace lapack;

namespace {

template <class T>
constexpr bool kComplex = !std::is_floating_point_v<T>;
template <class T>
constexpr char kLetter = 's';
template <>
constexpr char kLetter<double> = 'd';
template <>
constexpr char kLetter<std::complex<float>> = 'c';
template <>
constexpr char kLetter<std::complex<double>> = 'z';

constexpr size_t kOne = 1;  // the length of a character

// A name as an argument of templates.
template <size_t N>
struct Name {
  constexpr Name(const char (&text)[N]) { std::copy_n(text, N, chars); }
  char chars[N];
};
template <char kFirst, Name kRest>
constexpr auto kWithLetter = [] {
  std::array<char, sizeof(kRest.chars) + 1> all{kFirst};
  std::copy_n(kRest.chars, sizeof(kRest.chars), all.begin() + 1);
  return all;
}();

// Calls the routine whose name follows the letter of T.
template <class T, Name kName, class... Arguments>
void call(Arguments... arguments) {
  static_assert(((std::is_pointer_v<Arguments> || std::is_same_v<Arguments, size_t>)&&...));
  static constinit const OpenBlasRoutine<void(Arguments...)> routine{
      kWithLetter<kLetter<T>, kName>.data()};
  routine(arguments...);
}
// That of the first name for real numbers, of the second for complex ones.
template <class T, Name kOfReal, Name kOfComplex, class... Arguments>
void callEither(Arguments... arguments) {
  if constexpr (kComplex<T>) {
    call<T, kOfComplex>(arguments...);
  } else {
    call<T, kOfReal>(arguments...);
  }
}

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

// Runs f(work, lwork, info, reals...) twice: once to ask how much work space it wants, once with it.
// The routines of complex numbers also take `reals`, a space of `size` real numbers.
template <class T, class F>
int withWork(size_t size, F&& f) {
  CountedVector<typename Lapack<T>::R> reals(kComplex<T> ? size : 0);
  CountedVector<T> work(1);
  int lwork = -1, info = 0;
  const auto run = [&] {
    if constexpr (kComplex<T>) {
      f(work.data(), &lwork, &info, reals.data());
    } else {
      f(work.data(), &lwork, &info);
    }
  };
  run();
  if (info != 0) return info;
  lwork = static_cast<int>(asked(work[0]));
  work.resize(static_cast<size_t>(lwork));
  run();
  return info;
}

// The routine computes the size of its work space in 32 bits.
void checkBases(char job, int m, int n) {
  const double low = std::min(m, n);
  WICK_CHECK(job == 'N' || 5 * low * low < INT32_MAX,
             "linear algebra: a matrix of {} by {} is too large for LAPACK's singular vectors", m,
             n);
}

}  // namespace

template <class T>
int Lapack<T>::getrf(int m, int n, T* a, int* pivots) {
  checkTime<T>(Work::Products, luOperations(m, n), "an LU factorization");
  int info = 0, lda = atLeastOne(m);
  call<T, "getrf_">(&m, &n, a, &lda, pivots, &info);
  return info;
}
template <class T>
int Lapack<T>::getrs(char trans, int n, int nrhs, const T* lu, const int* pivots, T* b) {
  checkTime<T>(Work::Products, 2.0 * n * n * nrhs, "a solution from LU factors");
  int info = 0, ld = atLeastOne(n);
  call<T, "getrs_">(&trans, &n, &nrhs, lu, &ld, pivots, b, &ld, &info, kOne);
  return info;
}
template <class T>
int Lapack<T>::potrf(char uplo, int n, T* a) {
  checkTime<T>(Work::Products, luOperations(n, n) / 2, "a Cholesky factorization");
  int info = 0, ld = atLeastOne(n);
  call<T, "potrf_">(&uplo, &n, a, &ld, &info, kOne);
  return info;
}
template <class T>
int Lapack<T>::potrs(char uplo, int n, int nrhs, const T* a, T* b) {
  checkTime<T>(Work::Products, 2.0 * n * n * nrhs, "a solution from Cholesky factors");
  int info = 0, ld = atLeastOne(n);
  call<T, "potrs_">(&uplo, &n, &nrhs, a, &ld, b, &ld, &info, kOne);
  return info;
}
template <class T>
int Lapack<T>::potri(char uplo, int n, T* a) {
  checkTime<T>(Work::Products, luOperations(n, n), "an inverse from Cholesky factors");
  int info = 0, ld = atLeastOne(n);
  call<T, "potri_">(&uplo, &n, a, &ld, &info, kOne);
  return info;
}
template <class T>
int Lapack<T>::geqrf(int m, int n, T* a, T* tau) {
  checkTime<T>(Work::Products, qrOperations(m, n), "a QR factorization");
  int ld = atLeastOne(m);
  return withWork<T>(0, [&](T* work, int* lwork, int* info, auto*...) {
    call<T, "geqrf_">(&m, &n, a, &ld, tau, work, lwork, info);
  });
}
template <class T>
int Lapack<T>::orgqr(int m, int n, int k, T* a, const T* tau) {
  checkTime<T>(Work::Products, 4.0 * m * n * k, "a product of reflectors");
  int ld = atLeastOne(m);
  return withWork<T>(0, [&](T* work, int* lwork, int* info, auto*...) {
    callEither<T, "orgqr_", "ungqr_">(&m, &n, &k, a, &ld, tau, work, lwork, info);
  });
}
template <class T>
int Lapack<T>::ormqr(char side, char trans, int m, int n, int k, const T* a, int lda, const T* tau,
                     T* c) {
  checkTime<T>(Work::Products, 4.0 * m * n * k, "a product with reflectors");
  int ld = atLeastOne(m);
  return withWork<T>(0, [&](T* work, int* lwork, int* info, auto*...) {
    callEither<T, "ormqr_", "unmqr_">(&side, &trans, &m, &n, &k, a, &lda, tau, c, &ld, work, lwork,
                                      info, kOne, kOne);
  });
}
template <class T>
int Lapack<T>::gesdd(char job, int m, int n, T* a, R* s, T* u, T* vt) {
  checkBases(job, m, n);
  checkTime<T>(Work::Bidiagonal, singularOperations(job, m, n), "a singular value decomposition");
  int lda = atLeastOne(m);
  const auto low = static_cast<size_t>(std::min(m, n)), high = static_cast<size_t>(std::max(m, n));
  int ldvt = atLeastOne(job == 'A' ? n : job == 'S' ? static_cast<int>(low) : 1);
  CountedVector<int> iwork(8 * low + 1);
  const size_t reals =
      std::max(5 * low * low + 5 * low, 2 * high * low + 2 * low * low + low) + 7 * low + 1;
  return withWork<T>(reals, [&](T* work, int* lwork, int* info, [[maybe_unused]] auto*... rwork) {
    call<T, "gesdd_">(&job, &m, &n, a, &lda, s, u, &lda, vt, &ldvt, work, lwork, rwork...,
                      iwork.data(), info, kOne);
  });
}
template <class T>
int Lapack<T>::syevd(char job, char uplo, int n, T* a, R* w) {
  checkTime<T>(Work::Tridiagonal, symmetricOperations(job == 'V', n), "eigenvalues");
  int ld = atLeastOne(n), liwork = 5 * n + 3, lrwork = 2 * n * n + 5 * n + 1;
  CountedVector<int> iwork(static_cast<size_t>(liwork));
  return withWork<T>(static_cast<size_t>(lrwork),
                     [&](T* work, int* lwork, int* info, [[maybe_unused]] auto*... r) {
                       if constexpr (kComplex<T>) {
                         call<T, "heevd_">(&job, &uplo, &n, a, &ld, w, work, lwork, r..., &lrwork,
                                           iwork.data(), &liwork, info, kOne, kOne);
                       } else {
                         call<T, "syevd_">(&job, &uplo, &n, a, &ld, w, work, lwork, iwork.data(),
                                           &liwork, info, kOne, kOne);
                       }
                     });
}

namespace {

// What LAPACK has of real eigenvalues, apart, and of vectors: conjugate pairs share two columns, the
// real and the imaginary part.
template <class T>
void joinPairs(const CountedVector<T>& wr, const CountedVector<T>& wi, const CountedVector<T>& vr,
               std::complex<T>* w, std::complex<T>* v) {
  const size_t size = wr.size();
  for (size_t j = 0; j < size; ++j) w[j] = {wr[j], wi[j]};
  for (size_t j = 0; v && j < size; ++j) {
    const bool pair = wi[j] != 0 && j + 1 < size;
    for (size_t i = 0; i < size; ++i) {
      const T re = vr[j * size + i], im = pair ? vr[(j + 1) * size + i] : T(0);
      v[j * size + i] = {re, im};
      if (pair) v[(j + 1) * size + i] = {re, -im};
    }
    if (pair) ++j;
  }
}

}  // namespace

template <class T>
int Lapack<T>::geev(int n, T* a, std::complex<R>* w, std::complex<R>* v) {
  checkTime<T>(Work::Hessenberg, eigenOperations(v != nullptr, n), "eigenvalues");
  int ld = atLeastOne(n), one = 1;
  const char* job = v ? "V" : "N";
  const auto size = static_cast<size_t>(n);
  T none = 0;
  return withWork<T>(2 * size + 1,
                     [&](T* work, int* lwork, int* info, [[maybe_unused]] auto*... rwork) {
                       int* const ld_v = v ? &ld : &one;
                       if constexpr (kComplex<T>) {
                         call<T, "geev_">("N", job, &n, a, &ld, w, &none, &one, v ? v : &none, ld_v,
                                          work, lwork, rwork..., info, kOne, kOne);
                       } else {
                         CountedVector<T> wr(size), wi(size), vr(v ? size * size : 1);
                         call<T, "geev_">("N", job, &n, a, &ld, wr.data(), wi.data(), &none, &one,
                                          vr.data(), ld_v, work, lwork, info, kOne, kOne);
                         if (*lwork != -1) joinPairs(wr, wi, vr, w, v);
                       }
                     });
}
template <class T>
int Lapack<T>::sytrf(char uplo, int n, T* a, int* pivots, bool hermitian) {
  checkTime<T>(Work::Products, luOperations(n, n), "an LDL factorization");
  int ld = atLeastOne(n);
  return withWork<T>(0, [&](T* work, int* lwork, int* info, auto*...) {
    if (kComplex<T> && hermitian) {
      callEither<T, "sytrf_", "hetrf_">(&uplo, &n, a, &ld, pivots, work, lwork, info, kOne);
    } else {
      call<T, "sytrf_">(&uplo, &n, a, &ld, pivots, work, lwork, info, kOne);
    }
  });
}
template <class T>
int Lapack<T>::sytrs(char uplo, int n, int nrhs, const T* a, const int* pivots, T* b,
                     bool hermitian) {
  checkTime<T>(Work::Products, 2.0 * n * n * nrhs, "a solution from LDL factors");
  int info = 0, ld = atLeastOne(n);
  if (kComplex<T> && hermitian) {
    callEither<T, "sytrs_", "hetrs_">(&uplo, &n, &nrhs, a, &ld, pivots, b, &ld, &info, kOne);
  } else {
    call<T, "sytrs_">(&uplo, &n, &nrhs, a, &ld, pivots, b, &ld, &info, kOne);
  }
  return info;
}
template <class T>
int Lapack<T>::gels(int m, int n, int nrhs, T* a, T* b, int ldb) {
  checkTime<T>(Work::Products, qrOperations(m, n) + 4.0 * m * n * nrhs, "least squares");
  int ld = atLeastOne(m);
  return withWork<T>(0, [&](T* work, int* lwork, int* info, auto*...) {
    call<T, "gels_">("N", &m, &n, &nrhs, a, &ld, b, &ldb, work, lwork, info, kOne);
  });
}
template <class T>
int Lapack<T>::gelsy(int m, int n, int nrhs, T* a, T* b, int ldb, R rcond, int* rank) {
  checkTime<T>(Work::Products, 2 * qrOperations(m, n) + 4.0 * m * n * nrhs, "least squares");
  int ld = atLeastOne(m);
  CountedVector<int> jpvt(static_cast<size_t>(atLeastOne(n)));
  const auto reals = static_cast<size_t>(2 * n + 1);
  return withWork<T>(reals, [&](T* work, int* lwork, int* info, [[maybe_unused]] auto*... rwork) {
    call<T, "gelsy_">(&m, &n, &nrhs, a, &ld, b, &ldb, jpvt.data(), &rcond, rank, work, lwork,
                      rwork..., info);
  });
}
template <class T>
int Lapack<T>::gelsd(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank) {
  checkTime<T>(Work::Bidiagonal, singularOperations('N', m, n) + 4.0 * m * n * nrhs,
               "least squares");
  int ld = atLeastOne(m);
  const auto low = static_cast<size_t>(std::min(m, n)), rhs = static_cast<size_t>(nrhs);
  CountedVector<int> iwork(low * 128 + 128);
  const size_t reals = low * 1024 + 64 * low * rhs + (26 + rhs) * 27 * 27 + 4096;
  return withWork<T>(reals, [&](T* work, int* lwork, int* info, [[maybe_unused]] auto*... rwork) {
    call<T, "gelsd_">(&m, &n, &nrhs, a, &ld, b, &ldb, s, &rcond, rank, work, lwork, rwork...,
                      iwork.data(), info);
  });
}
template <class T>
int Lapack<T>::gelss(int m, int n, int nrhs, T* a, T* b, int ldb, R* s, R rcond, int* rank) {
  checkTime<T>(Work::Bidiagonal, singularOperations('S', m, n) + 4.0 * m * n * nrhs,
               "least squares");
  int ld = atLeastOne(m);
  const auto reals = static_cast<size_t>(5 * std::min(m, n) + 1);
  return withWork<T>(reals, [&](T* work, int* lwork, int* info, [[maybe_unused]] auto*... rwork) {
    call<T, "gelss_">(&m, &n, &nrhs, a, &ld, b, &ldb, s, &rcond, rank, work, lwork, rwork..., info);
  });
}
template <class T>
void Lapack<T>::trsm(char side, char uplo, char trans, char diag, int m, int n, const T* a, int lda,
                     T* b, int ldb) {
  checkTime<T>(Work::Products, 1.0 * m * n * (side == 'L' ? m : n), "a triangular solution");
  T alpha = 1;
  call<T, "trsm_">(&side, &uplo, &trans, &diag, &m, &n, &alpha, a, &lda, b, &ldb, kOne, kOne, kOne,
                   kOne);
}

template struct Lapack<float>;
template struct Lapack<double>;
template struct Lapack<std::complex<float>>;
template struct Lapack<std::complex<double>>;

}  // namespace wick
