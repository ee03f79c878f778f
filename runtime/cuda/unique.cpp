// Values and slices that are different from each other, on CUDA devices: sorted, or neighbours.
#include "runtime/ops/indexing/unique.h"

#include <fmt/format.h>

#include <bit>

#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

struct Runs {
  Tensor values, inverse, counts;  // the second and third where they are asked for
};

// Runs of rows (of the first dimension) that begin where `starts` says.
Runs runsAt(const Tensor& rows, const Tensor& starts, bool with_inverse, bool with_counts) {
  Runs runs;
  const int64_t n = rows.size(0);
  const Tensor places = ops::nonzero(starts).reshape(DimVector{-1});
  runs.values = ops::indexSelect(rows, 0, places);
  if (with_inverse) {
    runs.inverse = ops::addScalar(ops::cumsum(starts.to(DType::Long), 0), Scalar(int64_t{-1}));
  }
  if (with_counts) {
    const Tensor ends = Tensor::empty(places.sizes(), DType::Long, rows.device());
    ops::fillWith(ends, Scalar(n));
    const int64_t found = places.numel();
    if (found > 1) ends.narrow(0, 0, found - 1).copyFrom(places.narrow(0, 1, found - 1));
    runs.counts = ops::sub(ends, places);
  }
  return runs;
}

// Runs of equal neighbours of a flat tensor.
Runs runsOf(const Tensor& flat, bool with_inverse, bool with_counts) {
  const int64_t n = flat.numel();
  if (n == 0) {
    Runs runs;
    runs.values = flat.clone();
    runs.inverse = Tensor::zeros(DimVector{0}, DType::Long, flat.device());
    runs.counts = runs.inverse.clone();
    return runs;
  }
  const Tensor starts = Tensor::empty(DimVector{n}, DType::Bool, flat.device());
  ops::fillWith(starts, Scalar(true));
  if (n > 1) {
    starts.narrow(0, 1, n - 1)
        .copyFrom(ops::ne(flat.narrow(0, 1, n - 1), flat.narrow(0, 0, n - 1)));
  }
  return runsAt(flat, starts, with_inverse, with_counts);
}

// ---- rows ----

// Rows are ordered by their numbers: a bitonic network exchanges those until what they name is
// sorted. Equal rows keep their order. Numbers from `rows` on stand for nothing and come last.
constexpr const char* kRows = R"({preamble}
typedef {type} T;
typedef {wide} W;
struct Words {{
  const T* data; long long* order; bool* starts; long long rows, width, padded, stage, step;
}};
__device__ __forceinline__ W valueAt(const Words& p, long long row, long long k) {{
  const T e = p.data[row * p.width + k];
  return {load};
}}
// -1, 0 and 1: before, equal, behind.
__device__ int compareRows(const Words& p, long long a, long long b) {{
  if (a >= p.rows || b >= p.rows) return a < b ? -1 : a > b;
  for (long long k = 0; k < p.width; ++k) {{
    const W x = valueAt(p, a, k), y = valueAt(p, b, k);
    if (x < y) return -1;
    if (y < x) return 1;
  }}
  return a < b ? -1 : a > b;
}}
extern "C" __global__ void __launch_bounds__(256) number(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.padded; i += gridDim.x * 256ll) {{
    p.order[i] = i;
  }}
}}
extern "C" __global__ void __launch_bounds__(256) exchange(const __grid_constant__ Words p) {{
  for (long long t = blockIdx.x * 256ll + threadIdx.x; t < p.padded / 2; t += gridDim.x * 256ll) {{
    const long long low = 2 * t - (t & (p.step - 1)), high = low + p.step;
    const long long a = p.order[low], b = p.order[high];
    if ((compareRows(p, b, a) < 0) != ((low & p.stage) == 0)) continue;
    p.order[low] = b;
    p.order[high] = a;
  }}
}}
// Whether a row of the order differs from the one before it. NaN differs from everything.
extern "C" __global__ void __launch_bounds__(256) mark(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.rows; i += gridDim.x * 256ll) {{
    bool differs = i == 0;
    for (long long k = 0; k < p.width && !differs; ++k) {{
      differs = !(valueAt(p, p.order[i - 1], k) == valueAt(p, p.order[i], k));
    }}
    p.starts[i] = differs;
  }}
}}
)";

using ThreeResults = std::tuple<Tensor, Tensor, Tensor>;

ThreeResults asResults(const Tensor& self, const Runs& runs) {
  const Tensor none = Tensor::empty(DimVector{0}, DType::Long, self.device());
  return {runs.values, runs.inverse.defined() ? runs.inverse.reshape(self.sizes()) : none,
          runs.counts.defined() ? runs.counts : none};
}

ThreeResults unique(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  static const OperatorHandle kScatter{"aten::scatter", "src"};
  const Tensor flat = self.reshape(DimVector{-1});
  if (flat.numel() == 0) return asResults(self, runsOf(flat, return_inverse, return_counts));
  const std::vector<IValue> pair = ops::sortStable.all(flat, true, int64_t{0}, false);
  const Tensor sorted = pair[0].toTensor(), order = pair[1].toTensor();
  Runs runs = runsOf(sorted, return_inverse, return_counts);
  // From the order of sorting back to that of the elements.
  if (return_inverse) {
    runs.inverse =
        kScatter(Tensor::zeros(order.sizes(), DType::Long, self.device()), 0, order, runs.inverse);
  }
  return asResults(self, runs);
}
// As on the CPU: PyTorch gives all three results whether they are asked for or not.
ThreeResults uniqueSlices(const Tensor& self, int64_t dim, bool consecutive) {
  static const OperatorHandle kScatter{"aten::scatter", "src"};
  dim = ops::dimensionOfSlices(self, dim);
  const int64_t n = self.size(dim);
  if (n == 0) {
    const Tensor none = Tensor::empty(DimVector{0}, DType::Long, self.device());
    return {Tensor::empty(self.sizes(), self.dtype(), self.device()), none, none};
  }
  const Tensor rows = self.transpose(0, dim).contiguous();
  const auto padded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  const Tensor numbers = Tensor::empty(DimVector{padded}, DType::Long, self.device());
  const Tensor starts = Tensor::empty(DimVector{n}, DType::Bool, self.device());
  const DType type = self.dtype();
  const std::string text = textOf(kRows, type);
  const auto run = [&](const char* name, int64_t points, int64_t stage, int64_t step) {
    launchPoints(
        self.device(), text, name, points,
        {wordOf(rows), wordOf(numbers), wordOf(starts), n, rows.numel() / n, padded, stage, step});
  };
  run("number", padded, 0, 0);
  for (int64_t stage = 2; !consecutive && stage <= padded; stage *= 2) {
    for (int64_t step = stage / 2; step > 0; step /= 2) run("exchange", padded / 2, stage, step);
  }
  run("mark", n, 0, 0);
  const Tensor order = numbers.narrow(0, 0, n);
  Runs runs = runsAt(ops::indexSelect(rows, 0, order), starts, true, true);
  runs.inverse =
      kScatter(Tensor::zeros(DimVector{n}, DType::Long, self.device()), 0, order, runs.inverse);
  return {runs.values.transpose(0, dim).contiguous(), runs.inverse, runs.counts};
}
std::tuple<Tensor, Tensor> uniqueWithInverse(const Tensor& self, bool sorted, bool return_inverse) {
  const auto [values, inverse, counts] = unique(self, sorted, return_inverse, false);
  return {values, inverse};
}
ThreeResults uniqueDim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return uniqueSlices(self, dim, false);
}
ThreeResults uniqueDimConsecutive(const Tensor& self, int64_t dim, bool, bool) {
  return uniqueSlices(self, dim, true);
}
ThreeResults uniqueConsecutive(const Tensor& self, bool return_inverse, bool return_counts,
                               std::optional<int64_t> dim) {
  if (dim && self.dim() > 0) return uniqueSlices(self, *dim, true);
  return asResults(self, runsOf(self.reshape(DimVector{-1}), return_inverse, return_counts));
}

const DeviceKernel kUniqueKernels[] = {
    {"aten::_unique", WICK_KERNEL(uniqueWithInverse)},
    {"aten::_unique2", WICK_KERNEL(unique)},
    {"aten::unique_dim", WICK_KERNEL(uniqueDim)},
    {"aten::unique_dim_consecutive", WICK_KERNEL(uniqueDimConsecutive)},
    {"aten::unique_consecutive", WICK_KERNEL(uniqueConsecutive)},
};
const RegisterDeviceKernels kUniqueRegistered(DeviceType::CUDA, kUniqueKernels);

}  // namespace

}  // namespace wick::cuda
