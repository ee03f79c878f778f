// Losses and quantiles on CUDA devices, whose rows one thread each walks over.
#include <fmt/format.h>

#include <bit>

#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/tables.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/indexing/quantiles.h"
#include "runtime/ops/layers/losses.h"

namespace wick::cuda {

namespace {

void needFloats(const char* op, const Tensor& t) {
  WICK_CHECK(t.dtype() == DType::Float || t.dtype() == DType::Double,
             "{}: not available for {} on CUDA devices", op, toString(t.dtype()));
}
constexpr std::string_view kOutOfRange = "{}: a target is out of range";

// ---- margins ----

constexpr const char* kMargin = R"(
typedef {type} T;
struct Words {{
  const T* x; const long long* target; const T* weight; T* out;
  long long rows, classes; double margin; long long* flag; long long complaint;
}};
extern "C" __global__ void __launch_bounds__(256) margins(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.rows; i += gridDim.x * 256ll) {{
    const T* const row = p.x + i * p.classes;
    const long long y = p.target[i];
    if (y < 0 || y >= p.classes) {{ *(volatile long long*)p.flag = p.complaint; continue; }}
    T sum = 0;
    for (long long c = 0; c < p.classes; ++c) {{
      const T z = (T)p.margin - row[y] + row[c];
      if (c == y || !(z > 0)) continue;
      const T h = {power};
      sum += {weighted};
    }}
    p.out[i] = sum / (T)p.classes;
  }}
}}
)";
Tensor multiMarginLoss(const Tensor& self, const Tensor& target, const Scalar& p,
                       const Scalar& margin, const Tensor& weight, int64_t reduction) {
  const char* op = "multi_margin_loss";
  checkMultiMargin(op, self, target, p);
  needFloats(op, self);
  const int64_t classes = self.dim() == 0 ? 1 : self.size(-1), rows = self.numel() / classes;
  const Tensor x = self.contiguous(), t = target.contiguous();
  const Tensor w = weight.defined() ? weight.to(self.dtype()).contiguous() : weight;
  WICK_CHECK(!w.defined() || w.numel() == classes, "{}: inconsistent weight size", op);
  const Tensor out = Tensor::empty(target.sizes(), self.dtype(), self.device());
  const std::string text =
      textOf(kMargin, self.dtype(), fmt::arg("power", p.toDouble() == 1 ? "z" : "z * z"),
             fmt::arg("weighted", w.defined() ? "h * p.weight[y]" : "h"));
  launchPoints(self.device(), text, "margins", rows,
               {wordOf(x), wordOf(t), wordOf(w), wordOf(out), rows, classes,
                std::bit_cast<int64_t>(margin.toDouble())},
               fmt::format(kOutOfRange, op));
  return reduceLoss(op, out, reduction);
}

constexpr const char* kLabels = R"(
typedef {type} T;
struct Words {{
  const T* x; const long long* target; T* flags; T* out;
  long long rows, classes; long long* flag; long long complaint;
}};
extern "C" __global__ void __launch_bounds__(256) labels(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.rows; i += gridDim.x * 256ll) {{
    const T* const row = p.x + i * p.classes;
    const long long* const label = p.target + i * p.classes;
    T* const flags = p.flags + i * p.classes;
    bool fits = true;
    for (long long c = 0; c < p.classes; ++c) fits = fits && label[c] >= -1 && label[c] < p.classes;
    if (!fits) {{ *(volatile long long*)p.flag = p.complaint; continue; }}
    long long count = 0;
    for (; count < p.classes && label[count] >= 0; ++count) flags[label[count]] = 1;
    T sum = 0;
    for (long long k = 0; k < count; ++k) {{
      for (long long c = 0; c < p.classes; ++c) {{
        const T z = 1 - row[label[k]] + row[c];
        if (flags[c] == 0 && z > 0) sum += z;
      }}
    }}
    p.out[i] = p.classes == 0 ? sum : sum / (T)p.classes;
  }}
}}
)";
Pair multilabelMarginForward(const Tensor& self, const Tensor& target, int64_t reduction) {
  const char* op = "multilabel_margin_loss";
  WICK_CHECK(self.dim() <= 2 && std::ranges::equal(self.sizes(), target.sizes()) &&
                 target.dtype() == DType::Long,
             "{}: inconsistent target size {} for input {}", op, target.describe(),
             self.describe());
  needFloats(op, self);
  const int64_t classes = self.dim() == 0 ? 1 : self.size(-1);
  const int64_t rows = self.dim() == 2 ? self.size(0) : 1;
  const Tensor x = self.contiguous(), t = target.contiguous();
  const Tensor out =
      Tensor::zeros(self.dim() == 2 ? DimVector{rows} : DimVector{}, self.dtype(), self.device());
  const Tensor flags = Tensor::zeros(self.sizes(), self.dtype(), self.device());
  if (self.numel() > 0) {
    launchPoints(self.device(), textOf(kLabels, self.dtype()), "labels", rows,
                 {wordOf(x), wordOf(t), wordOf(flags), wordOf(out), rows, classes},
                 fmt::format(kOutOfRange, op));
  }
  return {reduceLoss(op, out, reduction), flags};
}
Tensor multilabelMarginLoss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return std::get<0>(multilabelMarginForward(self, target, reduction));
}

// ---- quantiles: of sorted rows ----

constexpr const char* kQuantile = R"(
typedef {type} T;
struct Words {{
  const T* sorted; const T* q; T* out; long long rows, length, count; long long* flag; long long complaint;
}};
extern "C" __global__ void __launch_bounds__(256) quantiles(const __grid_constant__ Words p) {{
  const long long total = p.rows * p.count;
  for (long long e = blockIdx.x * 256ll + threadIdx.x; e < total; e += gridDim.x * 256ll) {{
    const T* const sorted = p.sorted + e / p.count * p.length;
    const T q = p.q[e % p.count];
    if (!(q >= 0 && q <= 1)) {{ *(volatile long long*)p.flag = p.complaint; continue; }}
    long long low = 0, n = p.length;  // NaN stands behind the numbers
    while (low < n) {{
      const long long middle = low + (n - low) / 2;
      if (sorted[middle] != sorted[middle]) n = middle; else low = middle + 1;
    }}
    if (n == 0 || ({spoils} && n < p.length)) {{ p.out[e] = sorted[p.length - 1]; continue; }}
    T rank = q * (T)(n - 1);
    {rank}
    long long below = (long long)rank;
    below = below < 0 ? 0 : below > n - 1 ? n - 1 : below;
    const T a = sorted[below];
    long long above = (long long)ceil(rank);
    above = above < 0 ? 0 : above > n - 1 ? n - 1 : above;
    const T b = sorted[above], w = {weight};
    p.out[e] = {value};
  }}
}}
)";
Tensor quantileIn(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                  const std::string& how, bool ignore_nan) {
  const bool exact = how == "lower" || how == "higher" || how == "nearest";
  WICK_CHECK(exact || how == "linear" || how == "midpoint",
             "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, "
             "but got {}",
             how);
  const Tensor moved = ops::sortedForQuantiles(self, q, dim);
  const Tensor fractions = q.contiguous();
  DimVector sizes(moved.sizes());
  sizes.back() = fractions.numel();
  const Tensor values = Tensor::empty(sizes, self.dtype(), self.device());
  if (values.numel() > 0) {
    const int64_t length = moved.size(-1);
    const std::string text = textOf(
        kQuantile, self.dtype(), fmt::arg("spoils", ignore_nan ? "false" : "true"),
        fmt::arg("rank", how == "lower"     ? "rank = floor(rank);"
                         : how == "higher"  ? "rank = ceil(rank);"
                         : how == "nearest" ? "rank = rint(rank);"
                                            : ""),
        fmt::arg("weight", how == "midpoint" ? "(T)0.5" : "rank - (T)below"),
        fmt::arg("value",
                 exact ? "a" : "fabs(w) < (T)0.5 ? a + w * (b - a) : b - (b - a) * ((T)1 - w)"));
    launchPoints(self.device(), text, "quantiles", values.numel(),
                 {wordOf(moved), wordOf(fractions), wordOf(values), moved.numel() / length, length,
                  fractions.numel()},
                 "quantile() q values must be in the range [0, 1]");
  }
  return ops::quantilesFirst(values, self, q, dim, keepdim);
}
template <bool kIgnoreNan>
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                const std::string& how) {
  return quantileIn(self, q, dim, keepdim, how, kIgnoreNan);
}
template <bool kIgnoreNan>
Tensor quantileNumber(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                      const std::string& how) {
  WICK_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got {}", q);
  const Tensor fraction = tableOn(self.device(), Tensor::scalar<double>(q).to(self.dtype()));
  return quantileIn(self, fraction, dim, keepdim, how, kIgnoreNan);
}

const DeviceKernel kRowsKernels[] = {
    {"aten::multi_margin_loss", WICK_KERNEL(multiMarginLoss)},
    {"aten::multilabel_margin_loss", WICK_KERNEL(multilabelMarginLoss)},
    {"aten::multilabel_margin_loss_forward", WICK_KERNEL(multilabelMarginForward)},
    {"aten::quantile", WICK_KERNEL(quantile<false>)},
    {"aten::quantile.scalar", WICK_KERNEL(quantileNumber<false>)},
    {"aten::nanquantile", WICK_KERNEL(quantile<true>)},
    {"aten::nanquantile.scalar", WICK_KERNEL(quantileNumber<true>)},
};
const RegisterDeviceKernels kRowsRegistered(DeviceType::CUDA, kRowsKernels);

}  // namespace

}  // namespace wick::cuda
