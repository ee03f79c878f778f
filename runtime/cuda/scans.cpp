// Operators that go along a dimension from its beginning to its end, on CUDA devices.
#include "runtime/cuda/scans.h"

#include <fmt/format.h>

#include "codegen/cuda/scalar_text.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

// ---- sums and products: a block of threads for each row ----

constexpr const char* kScan = R"({preamble}{numbers}
typedef {type} T;
typedef {accumulator} A;
template <class S> __device__ __forceinline__ S wickUp(S v, int step) {{
  return __shfl_up_sync(0xffffffffu, v, step);
}}
template <class R> __device__ __forceinline__ wickComplex<R> wickUp(wickComplex<R> v, int step) {{
  return {{__shfl_up_sync(0xffffffffu, v.re, step), __shfl_up_sync(0xffffffffu, v.im, step)}};
}}
struct Words {{ const T* x; T* y; long long rows, n, inner; }};
__device__ __forceinline__ A combine(A a, A b) {{ return {combine}; }}
extern "C" __global__ void __launch_bounds__(256) scan(const __grid_constant__ Words p) {{
  __shared__ A parts[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (long long row = blockIdx.x; row < p.rows; row += gridDim.x) {{
    const long long at = row / p.inner * p.n * p.inner + row % p.inner;
    A before = (A){identity};
    for (long long begin = 0; begin < p.n; begin += 256) {{
      const long long i = begin + threadIdx.x;
      A v = (A){identity};
      if (i < p.n) {{ const T e = p.x[at + i * p.inner]; v = {summed}; }}
      for (int step = 1; step < 32; step *= 2) {{
        const A other = wickUp(v, step);
        if (lane >= step) v = combine(other, v);
      }}
      if (lane == 31) parts[warp] = v;
      __syncthreads();
      A left = before, all = before;
      for (int w = 0; w < 8; ++w) {{
        if (w < warp) left = combine(left, parts[w]);
        all = combine(all, parts[w]);
      }}
      v = combine(left, v);
      if (i < p.n) p.y[at + i * p.inner] = {store};
      before = all;
      __syncthreads();
    }}
  }}
}}
)";

// ---- what looks at one element after the other: a thread for each row ----

constexpr const char* kWalk = R"({preamble}
typedef {type} T;
typedef {wide} A;
struct Words {{ const T* x; T* y; long long* indices; long long rows, n, inner; }};
extern "C" __global__ void __launch_bounds__(256) walk(const __grid_constant__ Words p) {{
  for (long long row = blockIdx.x * 256ll + threadIdx.x; row < p.rows; row += gridDim.x * 256ll) {{
    const long long at = row / p.inner * p.n * p.inner + row % p.inner;
    A best = (A)0;
    long long place = 0;
    for (long long i = 0; i < p.n; ++i) {{
      const T e = p.x[at + i * p.inner];
      const A v = {load};
      if (i == 0) {{ best = v; }} else {{ {step} }}
      p.y[at + i * p.inner] = {store};
      {index}
    }}
  }}
}}
)";

}  // namespace

std::string scanText(DType type, bool product) {
  const DType wide = isReducedFloat(type)      ? DType::Float
                     : isIntegral(type, false) ? DType::Long
                                               : type;
  return textOf(kScan, type, fmt::arg("accumulator", numberType(wide)),
                fmt::arg("combine", product ? "a * b" : "a + b"),
                fmt::arg("identity", product ? 1 : 0),
                fmt::arg("summed", codegen::cudaConvert("e", type, wide)),
                fmt::arg("store", codegen::cudaConvert("v", wide, type)));
}

std::string walkText(DType type, Walked what) {
  // The latest of equal elements, and of NaN.
  const char* const step = what == Walked::Largest
                               ? "if (v != v || v >= best) { best = v; place = i; }"
                           : what == Walked::Smallest
                               ? "if (v != v || v <= best) { best = v; place = i; }"
                               : "const A low = v < best ? v : best, high = v < best ? best : v;\n"
                                 "      best = v != v || best != best ? v + best\n"
                                 "             : low == high && low - low != low - low ? low\n"
                                 "                                                     : high + "
                                 "log1p(exp(low - high));";
  return textOf(
      kWalk, type, fmt::arg("step", step), fmt::arg("store", narrowedText("best", type)),
      fmt::arg("index", what != Walked::LogSum ? "p.indices[at + i * p.inner] = place;" : ""));
}

namespace {

Tensor scanned(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype,
               bool product) {
  const DType type = dtype.value_or(isIntegral(self.dtype(), true) ? DType::Long : self.dtype());
  WICK_CHECK(type != DType::Bool, "{}: not available for {} on CUDA devices", op, toString(type));
  const Tensor x = self.to(type).contiguous();
  dim = wrapDim(dim, x.dim());
  if (x.dim() == 0) return x.clone();
  const Tensor out = Tensor::empty(x.sizes(), type, x.device());
  if (x.numel() == 0) return out;
  const ops::DimSplit split = ops::splitAt(x.sizes(), dim);
  const int64_t rows = split.outer * split.inner;
  launchText(enter(x.device()), scanText(type, product), "scan",
             static_cast<unsigned>(std::min<int64_t>(rows, 1 << 20)),
             {wordOf(x), wordOf(out), rows, split.size, split.inner});
  return out;
}
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return scanned("cumsum", self, dim, dtype, false);
}
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return scanned("cumprod", self, dim, dtype, true);
}

Pair walked(const Tensor& self, int64_t dim, Walked what) {
  const bool want_indices = what != Walked::LogSum;
  const Tensor x = self.contiguous();
  const Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  Tensor indices;
  if (want_indices) indices = Tensor::zeros(x.sizes(), DType::Long, x.device());
  dim = wrapDim(dim, x.dim());
  if (x.numel() == 0) return {out, indices};
  const DimVector sizes = x.dim() == 0 ? DimVector{1} : DimVector(x.sizes());
  const ops::DimSplit split = ops::splitAt(sizes, dim);
  const int64_t rows = split.outer * split.inner;
  launchPoints(
      x.device(), walkText(x.dtype(), what), "walk", rows,
      {wordOf(x), wordOf(out), want_indices ? wordOf(indices) : 0, rows, split.size, split.inner});
  return {out, indices};
}

Pair cummax(const Tensor& self, int64_t dim) {
  return walked(self, dim, Walked::Largest);
}
Pair cummin(const Tensor& self, int64_t dim) {
  return walked(self, dim, Walked::Smallest);
}
Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  WICK_CHECK(isFloating(self.dtype()), "logcumsumexp: not available for {} on CUDA devices",
             toString(self.dtype()));
  return std::get<0>(walked(self, dim, Walked::LogSum));
}

const DeviceKernel kScansKernels[] = {
    {"aten::cumsum", WICK_KERNEL(cumsum)},
    {"aten::cumprod", WICK_KERNEL(cumprod)},
    {"aten::cummax", WICK_KERNEL(cummax)},
    {"aten::cummin", WICK_KERNEL(cummin)},
    {"aten::logcumsumexp", WICK_KERNEL(logcumsumexp)},
};
const RegisterDeviceKernels kScansRegistered(DeviceType::CUDA, kScansKernels);

}  // namespace

}  // namespace wick::cuda
