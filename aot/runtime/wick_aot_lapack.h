// Factorizations of models that were compiled ahead of time, by LAPACK: OpenBLAS, or any other library with its
// functions. C++17. Matrices are column-major and follow each other. Functions take memory to work in while they run, and return
// false where there is none, or where they say so.
#ifndef WICK_AOT_LAPACK_H
#define WICK_AOT_LAPACK_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

extern "C" {
#define WICK_AOT_LAPACK(p, T, orgqr)                                                              \
  void p##getrf_(const int*, const int*, T*, const int*, int*, int*);                             \
  void p##getrs_(const char*, const int*, const int*, const T*, const int*, const int*, T*,       \
                 const int*, int*, size_t);                                                       \
  void p##potrf_(const char*, const int*, T*, const int*, int*, size_t);                          \
  void p##potrs_(const char*, const int*, const int*, const T*, const int*, T*, const int*, int*, \
                 size_t);                                                                         \
  void p##potri_(const char*, const int*, T*, const int*, int*, size_t);                          \
  void p##geqrf_(const int*, const int*, T*, const int*, T*, T*, const int*, int*);               \
  void orgqr##_(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*,     \
                int*);                                                                            \
  void p##gesdd_(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,     \
                 const int*, T*, const int*, int*, int*, size_t);                                 \
  void p##syevd_(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*,  \
                 const int*, int*, size_t, size_t);                                               \
  void p##trsm_(const char*, const char*, const char*, const char*, const int*, const int*,       \
                const T*, const T*, const int*, T*, const int*, size_t, size_t, size_t, size_t);
WICK_AOT_LAPACK(s, float, sorgqr)
WICK_AOT_LAPACK(d, double, dorgqr)
#undef WICK_AOT_LAPACK
// Complex numbers are pairs.
#define WICK_AOT_LAPACK(p, T)                                                                     \
  void p##gemm_(const char*, const char*, const int*, const int*, const int*, const T*, const T*, \
                const int*, const T*, const int*, const T*, T*, const int*, size_t, size_t);
WICK_AOT_LAPACK(c, float)
WICK_AOT_LAPACK(z, double)
#undef WICK_AOT_LAPACK
/* Of OpenBLAS; others have none. */
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) void openblas_set_num_threads(int);
}

namespace wick_aot {
namespace lapack {

// OpenBLAS on the calling thread alone while it lives: its threads wait for each other by polling.
class OneThread {
 public:
  OneThread() : before_(openblas_get_num_threads ? openblas_get_num_threads() : 1) {
    if (before_ != 1 && openblas_set_num_threads) openblas_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1 && openblas_set_num_threads) openblas_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

// The functions of one type.
template <class T>
struct Routines;
#define WICK_AOT_LAPACK(p, T, orgqr_of)         \
  template <>                                   \
  struct Routines<T> {                          \
    static constexpr auto& getrf = p##getrf_;   \
    static constexpr auto& getrs = p##getrs_;   \
    static constexpr auto& potrf = p##potrf_;   \
    static constexpr auto& potrs = p##potrs_;   \
    static constexpr auto& potri = p##potri_;   \
    static constexpr auto& geqrf = p##geqrf_;   \
    static constexpr auto& orgqr = orgqr_of##_; \
    static constexpr auto& gesdd = p##gesdd_;   \
    static constexpr auto& syevd = p##syevd_;   \
    static constexpr auto& trsm = p##trsm_;     \
  };
WICK_AOT_LAPACK(s, float, sorgqr)
WICK_AOT_LAPACK(d, double, dorgqr)
#undef WICK_AOT_LAPACK

inline int whole(int64_t n) {
  return static_cast<int>(n);
}
inline int least(int64_t n) {
  return static_cast<int>(std::max<int64_t>(n, 1));
}

// Runs call(work, lwork) twice: to ask how much memory it wants, and with it. False where there is none.
template <class T, class Call>
inline bool withWork(int* info, Call call) {
  T wanted = 0;
  call(&wanted, -1);
  if (*info != 0) return true;
  constexpr double kExact = 1.0 / std::numeric_limits<T>::epsilon();
  double size = std::max(1.0, static_cast<double>(wanted));
  // A float holds large sizes only roughly.
  if (size >= kExact) size *= 1 + static_cast<double>(std::numeric_limits<T>::epsilon());
  if (!(size < 2147483647.0)) return false;
  const int count = static_cast<int>(size);
  const std::unique_ptr<T[]> work(new (std::nothrow) T[static_cast<size_t>(count)]);
  if (!work) return false;
  call(work.get(), count);
  return true;
}

template <class T>
inline bool areFinite(const T* x, int64_t count) {
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) finite = finite && std::isfinite(x[i]);
  return finite;
}

template <class T>
inline void luFactors(T* a, int32_t* pivots, int32_t* codes, int64_t batch, int64_t m, int64_t n) {
  const OneThread alone;
  const int im = whole(m), in = whole(n), lda = least(m);
  for (int64_t i = 0; i < batch; ++i) {
    Routines<T>::getrf(&im, &in, a + i * m * n, &lda, pivots + i * std::min(m, n), codes + i);
  }
}
// False when a pivot names no row.
template <class T>
inline bool luSolutions(const T* lu, const int32_t* pivots, T* x, int64_t batch, int64_t n,
                        int64_t r, int64_t transposed) {
  for (int64_t i = 0; i < batch * n; ++i) {
    if (pivots[i] < 1 || pivots[i] > n) return false;
  }
  const OneThread alone;
  const int in = whole(n), ir = whole(r), ld = least(n);
  for (int64_t i = 0; i < batch; ++i) {
    int info = 0;
    Routines<T>::getrs(transposed != 0 ? "C" : "N", &in, &ir, lu + i * n * n, &ld, pivots + i * n,
                       x + i * n * r, &ld, &info, 1);
  }
  return true;
}
// The row-major matrices that undo the exchanges of rows. False when a pivot names no row.
template <class T>
inline bool permutations(const int32_t* pivots, int64_t* rows, T* to, int64_t batch, int64_t m,
                         int64_t k) {
  std::fill(to, to + batch * m * m, T(0));
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t r = 0; r < m; ++r) rows[r] = r;
    for (int64_t r = 0; r < k; ++r) {
      const int64_t with = int64_t{pivots[i * k + r]} - 1;
      if (with < 0 || with >= m) return false;
      std::swap(rows[r], rows[with]);
    }
    for (int64_t r = 0; r < m; ++r) to[i * m * m + rows[r] * m + r] = T(1);
  }
  return true;
}

// From row- or column-major factors: signs, logarithms of sizes, and determinants.
template <class T>
inline void determinants(const T* lu, const int32_t* pivots, T* signs, T* logarithms, T* to,
                         int64_t batch, int64_t n) {
  for (int64_t i = 0; i < batch; ++i) {
    T all = 1, sign = 1;
    double logarithm = 0;
    for (int64_t j = 0; j < n; ++j) {
      const T e = lu[(i * n + j) * n + j];
      if (pivots[i * n + j] != j + 1) {
        all = -all;
        sign = -sign;
      }
      all *= e;
      logarithm += std::log(static_cast<double>(std::abs(e)));
      sign *= static_cast<T>((e > 0) - (e < 0));
    }
    to[i] = all;
    signs[i] = sign;
    logarithms[i] = static_cast<T>(logarithm);
  }
}

template <class T>
inline void choleskyFactors(T* a, int32_t* codes, int64_t batch, int64_t n, int64_t upper) {
  const OneThread alone;
  const int in = whole(n), ld = least(n);
  for (int64_t i = 0; i < batch; ++i) {
    Routines<T>::potrf(upper != 0 ? "U" : "L", &in, a + i * n * n, &ld, codes + i, 1);
  }
}
template <class T>
inline void choleskySolutions(const T* a, T* x, int64_t batch, int64_t n, int64_t r,
                              int64_t upper) {
  const OneThread alone;
  const int in = whole(n), ir = whole(r), ld = least(n);
  for (int64_t i = 0; i < batch; ++i) {
    int info = 0;
    Routines<T>::potrs(upper != 0 ? "U" : "L", &in, &ir, a + i * n * n, &ld, x + i * n * r, &ld,
                       &info, 1);
  }
}
// Inverses from factors, both triangles. False when a factor has a zero on its diagonal.
template <class T>
inline bool choleskyInverses(T* a, int64_t batch, int64_t n, int64_t upper) {
  const OneThread alone;
  const int in = whole(n), ld = least(n);
  for (int64_t i = 0; i < batch; ++i) {
    T* const one = a + i * n * n;
    int info = 0;
    Routines<T>::potri(upper != 0 ? "U" : "L", &in, one, &ld, &info, 1);
    if (info != 0) return false;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t r = c + 1; r < n; ++r) {
        (upper != 0 ? one[c * n + r] : one[r * n + c]) =
            upper != 0 ? one[r * n + c] : one[c * n + r];
      }
    }
  }
  return true;
}

template <class T>
inline bool reflectors(T* a, T* tau, int64_t batch, int64_t m, int64_t n) {
  const OneThread alone;
  const int im = whole(m), in = whole(n), ld = least(m);
  for (int64_t i = 0; i < batch; ++i) {
    int info = 0;
    const bool worked = withWork<T>(&info, [&](T* work, int size) {
      Routines<T>::geqrf(&im, &in, a + i * m * n, &ld, tau + i * std::min(m, n), work, &size,
                         &info);
    });
    if (!worked) return false;
  }
  return true;
}
template <class T>
inline bool productOfReflectors(T* q, const T* tau, int64_t batch, int64_t m, int64_t columns,
                                int64_t k) {
  const OneThread alone;
  const int im = whole(m), in = whole(columns), ik = whole(k), ld = least(m);
  for (int64_t i = 0; i < batch; ++i) {
    int info = 0;
    const bool worked = withWork<T>(&info, [&](T* work, int size) {
      Routines<T>::orgqr(&im, &in, &ik, q + i * m * columns, &ld, tau + i * k, work, &size, &info);
    });
    if (!worked) return false;
  }
  return true;
}

// Without vectors `u` and `vh` are null. False when an element is not finite, too.
template <class T>
inline bool singularValues(T* x, T* s, T* u, T* vh, int32_t* codes, int64_t batch, int64_t m,
                           int64_t n, int64_t full) {
  if (!areFinite(x, batch * m * n)) return false;
  const OneThread alone;
  const int64_t k = std::min(m, n);
  const char* const job = !u ? "N" : full != 0 ? "A" : "S";
  const int im = whole(m), in = whole(n), lda = least(m);
  const int ldvt = least(!u ? 1 : full != 0 ? n : k);
  const std::unique_ptr<int[]> small(new (std::nothrow) int[static_cast<size_t>(8 * k + 1)]);
  if (!small) return false;
  T none = 0;
  for (int64_t i = 0; i < batch; ++i) {
    T* const ui = u ? u + i * m * (full != 0 ? m : k) : &none;
    T* const vi = u ? vh + i * n * (full != 0 ? n : k) : &none;
    int info = 0;
    const bool worked = withWork<T>(&info, [&](T* work, int size) {
      Routines<T>::gesdd(job, &im, &in, x + i * m * n, &lda, s + i * k, ui, &lda, vi, &ldvt, work,
                         &size, small.get(), &info, 1);
    });
    if (!worked) return false;
    codes[i] = info;
  }
  return true;
}

// Of symmetric matrices, whose one triangle is read; vectors take their place. False when an element is not finite, too.
template <class T>
inline bool eigenvalues(T* a, T* values, int32_t* codes, int64_t batch, int64_t n, int64_t upper,
                        int64_t vectors) {
  if (!areFinite(a, batch * n * n)) return false;
  const OneThread alone;
  const int in = whole(n), ld = least(n), small_size = 5 * in + 3;
  const std::unique_ptr<int[]> small(new (std::nothrow) int[static_cast<size_t>(small_size)]);
  if (!small) return false;
  for (int64_t i = 0; i < batch; ++i) {
    int info = 0;
    const bool worked = withWork<T>(&info, [&](T* work, int size) {
      Routines<T>::syevd(vectors != 0 ? "V" : "N", upper != 0 ? "U" : "L", &in, a + i * n * n, &ld,
                         values + i * n, work, &size, small.get(), &small_size, &info, 1, 1);
    });
    if (!worked) return false;
    codes[i] = info;
  }
  return true;
}

// Of systems with triangular matrices of n rows: a x, or with `left` 0 x a, is x.
template <class T>
inline void triangularSolutions(const T* a, T* x, int64_t batch, int64_t rows, int64_t columns,
                                int64_t n, int64_t left, int64_t upper, int64_t transposed,
                                int64_t unit) {
  const OneThread alone;
  const int im = whole(rows), in = whole(columns), lda = least(n), ldb = least(rows);
  const T one = 1;
  for (int64_t i = 0; i < batch; ++i) {
    Routines<T>::trsm(left != 0 ? "L" : "R", upper != 0 ? "U" : "L", transposed != 0 ? "T" : "N",
                      unit != 0 ? "U" : "N", &im, &in, &one, a + i * n * n, &lda,
                      x + i * rows * columns, &ldb, 1, 1, 1, 1);
  }
}

// ---- products of complex matrices ----

inline void multiplyComplex(const char* ta, const char* tb, int m, int n, int k, const float* a,
                            int lda, const float* b, int ldb, float* c, int ldc) {
  const float one[] = {1, 0}, zero[] = {0, 0};
  cgemm_(ta, tb, &m, &n, &k, one, a, &lda, b, &ldb, zero, c, &ldc, 1, 1);
}
inline void multiplyComplex(const char* ta, const char* tb, int m, int n, int k, const double* a,
                            int lda, const double* b, int ldb, double* c, int ldc) {
  const double one[] = {1, 0}, zero[] = {0, 0};
  zgemm_(ta, tb, &m, &n, &k, one, a, &lda, b, &ldb, zero, c, &ldc, 1, 1);
}
// Row-major c[m, n] = a[m, k] b[k, n] for each of a batch; a row-major factor is told by `rows_of_`. The longer side is cut into parts of
// `length`, as the engine does it.
template <class R>
inline void complexProducts(const R* a, const R* b, R* c, int64_t batches, int64_t m, int64_t n,
                            int64_t k, int64_t rows_of_a, int64_t lda, int64_t a_step,
                            int64_t rows_of_b, int64_t ldb, int64_t b_step, int64_t length) {
  const OneThread alone;
  const int64_t side = m >= n ? m : n;
  for (int64_t i = 0; i < batches; ++i, a += 2 * a_step, b += 2 * b_step, c += 2 * m * n) {
    for (int64_t first = 0; first < side; first += length) {
      const int64_t count = length < side - first ? length : side - first;
      const R *from = a, *by = b;
      R* to = c;
      if (m >= n) {
        from += 2 * first * (rows_of_a != 0 ? lda : 1);
        to += 2 * first * n;
      } else {
        by += 2 * first * (rows_of_b != 0 ? 1 : ldb);
        to += 2 * first;
      }
      // LAPACK's matrices are column-major: transposed, with the factors exchanged.
      multiplyComplex(rows_of_b != 0 ? "N" : "T", rows_of_a != 0 ? "N" : "T",
                      whole(m >= n ? n : count), whole(m >= n ? count : m), whole(k), by,
                      whole(ldb), from, whole(lda), to, whole(n));
    }
  }
}

}  // namespace lapack
}  // namespace wick_aot

#endif
