// Looking values up in sorted sequences and counting integers on CUDA devices.
#include <fmt/format.h>

#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/element_texts.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/reduce_at.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/indexing/searched.h"

namespace wick::cuda {

namespace {

constexpr const char* kPositions = R"({preamble}
typedef {type} T;
typedef {wide} W;
struct Words {{
  const T* sequence; const T* values; const long long* order; long long* out;
  long long total, n, row; long long* flag; long long complaint;
}};
extern "C" __global__ void __launch_bounds__(256) positions(const __grid_constant__ Words p) {{
  bool bad = false;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    T e = p.values[i];
    const W v = {load};
    const long long start = p.row == 0 ? 0 : i / p.row * p.n;
    long long low = 0, high = p.n;
    while (low < high) {{
      const long long middle = low + (high - low) / 2;
      long long at = middle;
      if (p.order) at = p.order[start + middle];
      if (at < 0 || at >= p.n) {{ bad = true; break; }}
      e = p.sequence[start + at];
      const W m = {load};
      if (!(m {compare} v)) low = middle + 1; else high = middle;
    }}
    p.out[i] = low;
  }}
  if (bad) *(volatile long long*)p.flag = p.complaint;
}}
)";

}  // namespace

std::string positionsText(DType type, bool right) {
  return textOf(kPositions, type, fmt::arg("compare", right ? ">" : ">="));
}

namespace {

// As the record's kernel on the CPU. A position of `order` outside of its sequence raises when the
// device is waited for.
Tensor sortedPositions(const Tensor& sequence, const Tensor& values, const Tensor& order,
                       bool right) {
  const char* op = "torch.searchsorted()";
  const int64_t n = ops::checkSearched(op, sequence, values, order);
  const DType type = sequence.dtype();
  WICK_CHECK(isFloating(type) || isIntegral(type, false), "\"{}\" not implemented for '{}'", op,
             scalarTypeName(type));
  const Tensor out = Tensor::empty(values.sizes(), DType::Long, values.device());
  if (out.numel() == 0) return out;
  const Tensor bounds = sequence.contiguous(), wanted = values.contiguous();
  const Tensor places = order.defined() ? order.contiguous() : order;
  const int64_t row = sequence.dim() == 1 ? 0 : values.sizes().back();
  launchPoints(out.device(), positionsText(type, right), "positions", out.numel(),
               {wordOf(bounds), wordOf(wanted), wordOf(places), wordOf(out), out.numel(), n, row},
               fmt::format("{}: sorter index out of range", op));
  return out;
}

// Integers are counted, so that it does not matter in which order.
constexpr const char* kCounts = R"(
struct Words { const long long* x; unsigned long long* counts; long long n; };
extern "C" __global__ void __launch_bounds__(256) countNumbers(const __grid_constant__ Words p) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {
    atomicAdd(p.counts + p.x[i], 1ull);
  }
}
)";

Tensor bincount(const Tensor& self, const Tensor& weights, int64_t minlength) {
  WICK_CHECK(minlength >= 0, "minlength should be >= 0");
  if (self.dim() == 1 && self.numel() == 0) {
    return Tensor::zeros(DimVector{minlength}, DType::Long, self.device());
  }
  WICK_CHECK(isIntegral(self.dtype(), false), "\"bincount\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
  WICK_CHECK(self.dim() == 1 && ops::amin(self).to(DType::Long).item<int64_t>() >= 0,
             "bincount only supports 1-d non-negative integral inputs.");
  const int64_t largest = ops::amax(self).to(DType::Long).item<int64_t>(), n = self.numel();
  WICK_CHECK(largest < INT64_MAX, "bincount: the value {} is too large", largest);
  const DimVector bins{std::max(largest + 1, minlength)};
  const Tensor index = self.to(DType::Long).contiguous();
  if (!weights.defined()) {
    const Tensor out = Tensor::zeros(bins, DType::Long, self.device());
    launchPoints(self.device(), kCounts, "countNumbers", n, {wordOf(index), wordOf(out), n});
    return out;
  }
  WICK_CHECK(weights.dim() == 1 && weights.numel() == n,
             "weights should be 1-d and have the same length as input");
  const DType dtype = weights.dtype() == DType::Float ? DType::Float : DType::Double;
  const Tensor out = Tensor::zeros(bins, dtype, self.device());
  reduceAt("bincount", out, index, weights.to(dtype).contiguous(), ops::Reduction::Sum, true);
  return out;
}

const DeviceKernel kSearchingKernels[] = {
    {"wick::sorted_positions", WICK_KERNEL(sortedPositions)},
    {"aten::bincount", WICK_KERNEL(bincount)},
};
const RegisterDeviceKernels kSearchingRegistered(DeviceType::CUDA, kSearchingKernels);

}  // namespace

}  // namespace wick::cuda
