// Distances between rows and their gradients on CUDA devices.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/values/pairs.h"

namespace wick::cuda {

namespace {

constexpr const char* kDistances = R"(
typedef {type} T;
struct Words {{ const T* a; const T* b; T* out; long long total, rows, others, n; double p; }};
extern "C" __global__ void __launch_bounds__(256) distances(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long j = i % p.others, row = i / p.others, batch = row / p.rows;
    const T* const a = p.a + row * p.n;
    const T* const b = p.b + (batch * p.others + j) * p.n;
    double sum = 0;
    for (long long k = 0; k < p.n; ++k) {{
      const double d = fabs((double)a[k] - (double)b[k]);
      {step}
    }}
    p.out[i] = (T)({finish});
  }}
}}
)";
Tensor distancesOf(const Tensor& a, const Tensor& b, double p) {
  DimVector sizes(a.sizes());
  sizes.back() = b.size(-2);
  const Tensor out = Tensor::empty(sizes, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  const char* step = p == 0          ? "sum += d != 0;"
                     : p == 1        ? "sum += d;"
                     : p == 2        ? "sum += d * d;"
                     : std::isinf(p) ? "sum = d > sum || d != d ? d : sum;"
                                     : "sum += pow(d, p.p);";
  const char* finish = p == 2                              ? "sqrt(sum)"
                       : p == 0 || p == 1 || std::isinf(p) ? "sum"
                                                           : "pow(sum, 1 / p.p)";
  const std::string text =
      textOf(kDistances, a.dtype(), fmt::arg("step", step), fmt::arg("finish", finish));
  launchPoints(a.device(), text, "distances", out.numel(),
               {wordOf(a), wordOf(b), wordOf(out), out.numel(), a.size(-2), b.size(-2), a.size(-1),
                std::bit_cast<int64_t>(p)});
  return out;
}
Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t>) {
  linalg::checkDistances(x1, x2, p);
  WICK_CHECK(isFloating(x1.dtype()), "cdist: expected a floating dtype, got {}", x1.describe());
  const auto leading = [](const Tensor& t) {
    return t.sizes().first(static_cast<size_t>(t.dim() - 2));
  };
  DimVector first = broadcastShapes(leading(x1), leading(x2)), second = first;
  first.push_back(x1.size(-2));
  first.push_back(x1.size(-1));
  second.push_back(x2.size(-2));
  second.push_back(x2.size(-1));
  const DType wide = wideOf(x1.dtype());
  return distancesOf(x1.to(wide).expand(first).contiguous(),
                     x2.to(wide).expand(second).contiguous(), p)
      .to(x1.dtype());
}
Tensor pdist(const Tensor& self, double p) {
  WICK_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: {}D", self.dim());
  WICK_CHECK(p >= 0, "pdist only supports non-negative p values");
  WICK_CHECK(self.dtype() == DType::Float || self.dtype() == DType::Double,
             "pdist: no kernel for dtype {}", toString(self.dtype()));
  const Tensor x = self.contiguous();
  const int64_t n = x.size(0);
  if (n < 2) return Tensor::empty(DimVector{0}, x.dtype(), x.device());
  const Tensor upper =
      ops::triu(Tensor::full(DimVector{n, n}, 1, DType::Byte, x.device()), int64_t{1});
  return ops::maskedSelect(distancesOf(x, x, p), ops::neScalar(upper, 0));
}

// ---- gradients: one thread an element, which goes over all rows at a distance in their order ----

constexpr const char* kSlopes = R"(
typedef {type} T;
struct Words {{
  const T* a; const T* b; const T* grad; const T* distance; T* out;
  long long total, rows, others, n; double p;
}};
extern "C" __global__ void __launch_bounds__(256) slopes(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long k = i % p.n, row = i / p.n, own = row % p.rows, batch = row / p.rows;
    const double mine = (double)p.a[i];
    T sum = 0;
    for (long long j = 0; j < p.others; ++j) {{
      {place}
      const double distance = (double)p.distance[at];
      const double d = mine - (double)p.b[(batch * p.others + j) * p.n + k];
      if ((distance == 0 && !{of_one}) || d == 0) continue;
      const double sign = d > 0 ? 1 : d < 0 ? -1 : d;
      const double grad = (double)p.grad[at];
      sum += (T)({slope});
    }}
    p.out[i] = sum;
  }}
}}
)";
// Of rows [batch, rows, n] and others [batch, others, n]; of pairs of one tensor's own rows when
// these are the same and `pairs` says that distances are those of rows i < j.
Tensor slopesOf(const Tensor& a, const Tensor& b, const Tensor& grad, const Tensor& distance,
                double p, bool pairs) {
  const Tensor out = Tensor::zeros(a.sizes(), a.dtype(), a.device());
  if (out.numel() == 0 || p == 0) return out;
  const char* slope = p == 2   ? "grad / distance * d"
                      : p == 1 ? "grad * sign"
                      : std::isinf(p)
                          ? "(T)fabs(d) == (T)distance ? grad * sign : 0.0"
                          : "grad / pow(distance, p.p - 1) * sign * pow(fabs(d), p.p - 1)";
  const char* place =
      pairs ? "if (j == own) continue; const long long low = own < j ? own : j, "
              "high = own < j ? j : own; "
              "const long long at = low * (2 * p.rows - low - 1) / 2 + high - low - 1;"
            : "const long long at = row * p.others + j;";
  const std::string text =
      textOf(kSlopes, a.dtype(), fmt::arg("place", place),
             fmt::arg("of_one", p == 1 ? "true" : "false"), fmt::arg("slope", slope));
  launchPoints(a.device(), text, "slopes", out.numel(),
               {wordOf(a), wordOf(b), wordOf(grad), wordOf(distance), wordOf(out), out.numel(),
                a.size(-2), b.size(-2), a.size(-1), std::bit_cast<int64_t>(p)});
  return out;
}

Tensor cdistBackward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                     const Tensor& cdist) {
  const char* op = "_cdist_backward";
  const auto [a, b, g, d] = linalg::cdistGradientOf(op, grad, x1, x2, p, cdist);
  return slopesOf(a, b, g, d, p, false).to(x1.dtype());
}
Tensor pdistBackward(const Tensor& grad, const Tensor& self, double p, const Tensor& pdist) {
  const char* op = "_pdist_backward";
  linalg::checkPdistGradient(op, grad, self, p, pdist);
  WICK_CHECK(self.dtype() == DType::Float || self.dtype() == DType::Double,
             "{}: no kernel for dtype {}", op, toString(self.dtype()));
  const Tensor x = self.contiguous();
  return slopesOf(x, x, grad.contiguous(), pdist.contiguous(), p, true);
}

const DeviceKernel kDistancesKernels[] = {
    {"aten::cdist", WICK_KERNEL(cdist)},
    {"aten::_cdist_forward", WICK_KERNEL(cdist)},
    {"aten::pdist", WICK_KERNEL(pdist)},
    {"aten::_pdist_forward", WICK_KERNEL(pdist)},
    {"aten::_cdist_backward", WICK_KERNEL(cdistBackward)},
    {"aten::_pdist_backward", WICK_KERNEL(pdistBackward)},
};
const RegisterDeviceKernels kDistancesRegistered(DeviceType::CUDA, kDistancesKernels);

}  // namespace

}  // namespace wick::cuda
