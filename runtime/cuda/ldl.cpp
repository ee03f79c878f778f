// LDL factorizations of symmetric and Hermitian matrices on CUDA devices, and systems that they
// solve. The method, its pivots among them, is LAPACK's without blocks (sytf2, hetf2): one block of
// threads a matrix. cuSOLVER has none for Hermitian matrices.
#include <fmt/format.h>

#include "codegen/cuda/scalar_text.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/matrices.h"

namespace wick::cuda {

namespace {

using namespace linalg;

constexpr const char* kNumbers = R"({numbers}
typedef {type} T;
typedef {real} R;
#define HERMITIAN {hermitian}
__device__ __forceinline__ R realOf(R v) {{ return v; }}
__device__ __forceinline__ R sizeOf(R v) {{ return fabs(v); }}
__device__ __forceinline__ R lengthOf(R v) {{ return fabs(v); }}
__device__ __forceinline__ R realOf(wickComplex<R> v) {{ return v.re; }}
__device__ __forceinline__ R sizeOf(wickComplex<R> v) {{ return fabs(v.re) + fabs(v.im); }}
__device__ __forceinline__ R lengthOf(wickComplex<R> v) {{ return hypot(v.re, v.im); }}
// What LAPACK calls the conjugate where the matrix is Hermitian.
__device__ __forceinline__ T other(T v) {{ return HERMITIAN ? wickConj(v) : v; }}
__device__ __forceinline__ T onDiagonal(T v) {{ return HERMITIAN ? T(realOf(v)) : v; }}
)";

constexpr const char* kFactor = R"(
struct Words { T* a; int* pivots; int* info; T* scratch; long long count, n; };
// The first of the largest of `count` elements, `step` apart.
__device__ long long largest(const T* v, long long count, long long step) {
  __shared__ R best_size[256];
  __shared__ long long best_at[256];
  R size = -1;
  long long at = 0;
  for (long long i = threadIdx.x; i < count; i += 256) {
    const R s = sizeOf(v[i * step]);
    if (s > size) { size = s; at = i; }
  }
  best_size[threadIdx.x] = size;
  best_at[threadIdx.x] = at;
  __syncthreads();
  long long found = best_at[0];
  R most = best_size[0];
  for (int t = 1; t < 256; ++t) {
    if (best_size[t] > most || (best_size[t] == most && best_at[t] < found)) {
      most = best_size[t];
      found = best_at[t];
    }
  }
  __syncthreads();
  return found;
}
__device__ __forceinline__ void exchange(T& x, T& y) { const T t = x; x = y; y = t; }

// Rows and columns kk and kp change places.
__device__ void exchangeRows(T* a, long long n, long long kk, long long kp) {
#define A(i, j) a[(i) + (j) * n]
  for (long long i = kp + 1 + threadIdx.x; i < n; i += 256) exchange(A(i, kk), A(i, kp));
  for (long long j = kk + 1 + threadIdx.x; j < kp; j += 256) {
    const T t = other(A(j, kk));
    A(j, kk) = other(A(kp, j));
    A(kp, j) = t;
  }
  if (threadIdx.x == 0) {
    if (HERMITIAN) A(kp, kk) = wickConj(A(kp, kk));
    const T t = onDiagonal(A(kk, kk));
    A(kk, kk) = onDiagonal(A(kp, kp));
    A(kp, kp) = t;
  }
}
// What stands to the right of one column of L, or of two, after them: x and y are what the columns
// become.
__device__ void update(T* a, long long n, long long first, const T* u, const T* v, const T* x,
                       const T* y) {
  const long long m = n - first;
  for (long long e = threadIdx.x; e < m * m; e += 256) {
    const long long i = first + e % m, j = first + e / m;
    if (i < j) continue;
    T value = A(i, j) - u[i] * other(x[j]);
    if (v) value = value - v[i] * other(y[j]);
    A(i, j) = i == j ? onDiagonal(value) : value;
  }
}

__device__ void factorOne(T* a, long long n, int* pivots, int* info, T* x) {
  const R alpha = (R)((1 + sqrt(17.0)) / 8);
  T* const y = x + n;
  int code = 0;
  for (long long k = 0; k < n;) {
    __syncthreads();
    long long kp = k, step = 1;
    const R own = HERMITIAN ? fabs(realOf(A(k, k))) : sizeOf(A(k, k));
    R colmax = 0;
    long long imax = k;
    if (k + 1 < n) {
      imax = k + 1 + largest(&A(k + 1, k), n - k - 1, 1);
      colmax = sizeOf(A(imax, k));
    }
    if ((own > colmax ? own : colmax) == 0 || own != own) {
      if (code == 0) code = (int)k + 1;
      __syncthreads();
      if (threadIdx.x == 0) {
        A(k, k) = onDiagonal(A(k, k));
        pivots[k] = (int)k + 1;
      }
      ++k;
      continue;
    }
    if (!(own >= alpha * colmax)) {
      R rowmax = sizeOf(A(imax, k + largest(&A(imax, k), imax - k, n)));
      if (imax + 1 < n) {
        const R below = sizeOf(A(imax + 1 + largest(&A(imax + 1, imax), n - imax - 1, 1), imax));
        rowmax = below > rowmax ? below : rowmax;
      }
      const R across = HERMITIAN ? fabs(realOf(A(imax, imax))) : sizeOf(A(imax, imax));
      if (own >= alpha * colmax * (colmax / rowmax)) {
        kp = k;
      } else {
        kp = imax;
        if (!(across >= alpha * rowmax)) step = 2;
      }
    }
    const long long kk = k + step - 1;
    __syncthreads();
    if (kp != kk) exchangeRows(a, n, kk, kp);
    __syncthreads();
    if (threadIdx.x == 0) {
      A(k, k) = onDiagonal(A(k, k));
      if (step == 2) {
        if (kp != kk) exchange(A(k + 1, k), A(kp, k));
        A(k + 1, k + 1) = onDiagonal(A(k + 1, k + 1));
      }
      pivots[k] = step == 1 ? (int)kp + 1 : -((int)kp + 1);
      if (step == 2) pivots[k + 1] = -((int)kp + 1);
    }
    __syncthreads();
    const long long first = k + step;
    if (step == 1) {
      const T d = HERMITIAN ? T(1 / realOf(A(k, k))) : T(1) / A(k, k);
      for (long long j = first + threadIdx.x; j < n; j += 256) x[j] = d * A(j, k);
      __syncthreads();
      update(a, n, first, &A(0, k), nullptr, x, nullptr);
    } else {
      const T low = A(k + 1, k);
      const R length = lengthOf(low);
      const T scale = HERMITIAN ? T(length) : low;
      const T d11 = A(k + 1, k + 1) / scale, d22 = A(k, k) / scale;
      const T t = T(1) / (d11 * d22 - T(1));
      const T d21 = HERMITIAN ? low / T(length) : T(1), d = t / scale;
      for (long long j = first + threadIdx.x; j < n; j += 256) {
        x[j] = d * (d11 * A(j, k) - d21 * A(j, k + 1));
        y[j] = d * (d22 * A(j, k + 1) - other(d21) * A(j, k));
      }
      __syncthreads();
      update(a, n, first, &A(0, k), &A(0, k + 1), x, y);
    }
    __syncthreads();
    for (long long j = first + threadIdx.x; j < n; j += 256) {
      A(j, k) = x[j];
      if (step == 2) A(j, k + 1) = y[j];
    }
    k = first;
  }
  __syncthreads();
  if (threadIdx.x == 0) *info = code;
}

extern "C" __global__ void __launch_bounds__(256) factor(const __grid_constant__ Words p) {
  for (long long m = blockIdx.x; m < p.count; m += gridDim.x) {
    factorOne(p.a + m * p.n * p.n, p.n, p.pivots + m * p.n, p.info + m, p.scratch + m * 2 * p.n);
  }
}
)";

// One thread a right-hand side.
constexpr const char* kSolve = R"(
struct Words {
  const T* a; const int* pivots; T* b;
  long long total, n, columns; long long* flag; long long complaint;
};
#define A(i, j) a[(i) + (j) * n]
__device__ bool solveOne(const T* a, const int* pivots, T* b, long long n) {
  for (long long k = 0; k < n;) {
    const long long p = pivots[k] < 0 ? -(long long)pivots[k] : pivots[k];
    if (p < 1 || p > n) return false;
    if (pivots[k] > 0) {
      T t = b[k]; b[k] = b[p - 1]; b[p - 1] = t;
      for (long long i = k + 1; i < n; ++i) b[i] = b[i] - A(i, k) * b[k];
      b[k] = b[k] / onDiagonal(A(k, k));
      ++k;
      continue;
    }
    if (k + 1 >= n || pivots[k + 1] != pivots[k]) return false;
    T t = b[k + 1]; b[k + 1] = b[p - 1]; b[p - 1] = t;
    for (long long i = k + 2; i < n; ++i) b[i] = b[i] - A(i, k) * b[k] - A(i, k + 1) * b[k + 1];
    const T low = A(k + 1, k);
    const T above = A(k, k) / other(low), own = A(k + 1, k + 1) / low;
    const T denominator = above * own - T(1);
    const T first = b[k] / other(low), second = b[k + 1] / low;
    b[k] = (own * first - second) / denominator;
    b[k + 1] = (above * second - first) / denominator;
    k += 2;
  }
  for (long long k = n - 1; k >= 0;) {
    const long long p = pivots[k] < 0 ? -(long long)pivots[k] : pivots[k];
    const long long width = pivots[k] > 0 ? 1 : 2;
    for (long long c = k; c > k - width; --c) {
      T sum = b[c];
      for (long long i = k + 1; i < n; ++i) sum = sum - other(A(i, c)) * b[i];
      b[c] = sum;
    }
    T t = b[k]; b[k] = b[p - 1]; b[p - 1] = t;
    k -= width;
  }
  return true;
}
extern "C" __global__ void __launch_bounds__(256) solve(const __grid_constant__ Words p) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {
    const long long m = i / p.columns;
    if (!solveOne(p.a + m * p.n * p.n, p.pivots + m * p.n, p.b + i * p.n, p.n)) {
      *(volatile long long*)p.flag = p.complaint;
    }
  }
}
)";

std::string textFor(const char* op, DType type, bool hermitian, const char* kernels) {
  WICK_CHECK(type == DType::Float || type == DType::Double || isComplex(type),
             "\"{}\" not implemented for '{}'", op, scalarTypeName(type));
  return textOf(kNumbers, type, fmt::arg("real", codegen::cudaType(toRealType(type))),
                fmt::arg("hermitian", hermitian ? "true" : "false")) +
         kernels;
}

Triple ldlFactorEx(const Tensor& a, bool hermitian, bool check_errors) {
  const char* op = "torch.linalg.ldl_factor_ex";
  checkSquare(op, a);
  const int64_t n = a.size(-1);
  WICK_CHECK(n <= INT32_MAX, "{}: {} rows are too many", op, n);
  const Tensor ld = columnMajor(ops::tril(a));
  const Tensor info = Tensor::zeros(batchSizes(a), DType::Int, a.device());
  const Tensor pivots = Tensor::zeros(withSizes(batchSizes(a), {n}), DType::Int, a.device());
  if (a.numel() > 0) {
    const int64_t count = info.numel();
    const Tensor scratch = Tensor::empty(DimVector{count, 2, n}, a.dtype(), a.device());
    launchPoints(a.device(), textFor(op, a.dtype(), hermitian && isComplex(a.dtype()), kFactor),
                 "factor", count * kTextBlock,
                 {wordOf(ld), wordOf(pivots), wordOf(info), wordOf(scratch), count, n});
  }
  if (check_errors) checkInfo(op, info, Failure::SingularFactor);
  return {ld, pivots, info};
}
Pair ldlFactor(const Tensor& a, bool hermitian) {
  const auto [ld, pivots, info] = ldlFactorEx(a, hermitian, true);
  return {ld, pivots};
}

Tensor ldlSolve(const Tensor& ld_in, const Tensor& pivots_in, const Tensor& b, bool hermitian) {
  const char* op = "torch.linalg.ldl_solve";
  checkSquare(op, ld_in);
  checkMatrix(op, b);
  const int64_t n = ld_in.size(-1), r = b.size(-1);
  WICK_CHECK(b.size(-2) == n && pivots_in.dtype() == DType::Int && ld_in.dtype() == b.dtype() &&
                 pivots_in.dim() == ld_in.dim() - 1 && pivots_in.size(-1) == n,
             "{}: LD, pivots and B do not fit: {}, {} and {}", op, ld_in.describe(),
             pivots_in.describe(), b.describe());
  const DimVector batch = broadcastShapes(batchSizes(ld_in), batchSizes(b));
  const Tensor ld = columnMajor(ld_in.expand(withSizes(batch, {n, n})));
  const Tensor pivots = pivots_in.expand(withSizes(batch, {n})).contiguous();
  const Tensor x = columnMajor(b.expand(withSizes(batch, {n, r})));
  if (x.numel() == 0) return x;
  const int64_t total = x.numel() / n;
  launchPoints(x.device(), textFor(op, b.dtype(), hermitian && isComplex(b.dtype()), kSolve),
               "solve", total, {wordOf(ld), wordOf(pivots), wordOf(x), total, n, r},
               fmt::format("{}: a pivot is out of range", op));
  return x;
}

const DeviceKernel kLdlKernels[] = {
    {"aten::linalg_ldl_factor_ex", WICK_KERNEL(ldlFactorEx)},
    {"aten::linalg_ldl_factor", WICK_KERNEL(ldlFactor)},
    {"aten::linalg_ldl_solve", WICK_KERNEL(ldlSolve)},
};
const RegisterDeviceKernels kLdlRegistered(DeviceType::CUDA, kLdlKernels);

}  // namespace

}  // namespace wick::cuda
