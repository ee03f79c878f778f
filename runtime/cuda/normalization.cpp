// Normalization over channels and groups of channels on CUDA devices, and its gradients.
//
// What is read from images [N, C, pixels…] are sums over planes (a channel of a sample), and what is
// written is a line through each plane; what lies between has one number a plane or less and is
// computed by other operators.
#include "runtime/ops/layers/normalization.h"

#include <fmt/format.h>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/batch_norm.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"

namespace wick::cuda {

namespace {

// Of dense images.
struct Planes {
  explicit Planes(const Tensor& x)
      : samples(x.size(0)),
        channels(x.size(1)),
        pixels(x.numel() / std::max<int64_t>(1, samples * channels)) {}
  int64_t count() const { return samples * channels; }

  int64_t samples, channels, pixels;
};

constexpr const char* kSums = R"(
typedef {type} T;
struct Words {{
  const T* g; const T* x; const T* mean; T* grads; T* products;
  long long planes, pixels;
}};
extern "C" __global__ void __launch_bounds__(256) plane_sums(const __grid_constant__ Words p) {{
  __shared__ double grads[256], products[256];
  for (long long plane = blockIdx.x; plane < p.planes; plane += gridDim.x) {{
    const long long at = plane * p.pixels;
    const T* const g = p.g + at;
    const T* const x = p.x + at;
    const T mean = p.mean[plane];
    double grad = 0, product = 0;
    long long i = threadIdx.x;
    while (i < p.pixels) {{
      T some = 0, much = 0;
      for (int k = 0; k < 64 && i < p.pixels; ++k, i += 256) {{
        some += g[i];
        much += g[i] * (x[i] - mean);
      }}
      grad += some;
      product += much;
    }}
    grads[threadIdx.x] = grad;
    products[threadIdx.x] = product;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {{
      if (threadIdx.x < half) {{
        grads[threadIdx.x] += grads[threadIdx.x + half];
        products[threadIdx.x] += products[threadIdx.x + half];
      }}
      __syncthreads();
    }}
    if (threadIdx.x == 0) {{
      p.grads[plane] = (T)grads[0];
      p.products[plane] = (T)products[0];
    }}
    __syncthreads();
  }}
}}
)";

constexpr const char* kLines = R"(
typedef {type} T;
struct Words {{
  const T* g; const T* x; T* out; const T* scale; const T* slope; const T* mean; const T* shift;
  long long total, pixels;
}};
extern "C" __global__ void __launch_bounds__(256) plane_lines(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long plane = i / p.pixels;
    const T line = (p.x[i] - p.mean[plane]) * p.slope[plane] + p.shift[plane];
    p.out[i] = {value};
  }}
}}
)";

// Of each plane, [N, C]: sum(g) and sum(g * (x - mean)). `mean` is [N, C].
struct Sums {
  Tensor grads, products;
};
Sums sumsOf(const Tensor& g, const Tensor& x, const Planes& planes, const Tensor& mean) {
  const DimVector sizes{planes.samples, planes.channels};
  const Sums sums{Tensor::empty(sizes, x.dtype(), x.device()),
                  Tensor::empty(sizes, x.dtype(), x.device())};
  const std::string text = textOf(kSums, x.dtype());
  launchPoints(x.device(), text, "plane_sums", planes.count() * kTextBlock,
               {wordOf(g), wordOf(x), wordOf(mean), wordOf(sums.grads), wordOf(sums.products),
                planes.count(), planes.pixels});
  return sums;
}

// g * scale + (x - mean) * slope + shift, each of [N, C]; without `g` its part is left out.
struct Line {
  Tensor scale, slope, mean, shift;
};
Tensor along(const Tensor& g, const Tensor& x, const Planes& planes, const Line& line) {
  Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  const std::string text =
      textOf(kLines, x.dtype(),
             fmt::arg("value", g.defined() ? "p.g[i] * p.scale[plane] + line" : "line"));
  launchPoints(x.device(), text, "plane_lines", out.numel(),
               {wordOf(g), wordOf(x), wordOf(out), wordOf(line.scale), wordOf(line.slope),
                wordOf(line.mean), wordOf(line.shift), out.numel(), planes.pixels});
  return out;
}

// ---- batch normalization ----

// `mean` and `rstd` are what training gave.
Triple batchNormGradient(const Tensor& grad, const Tensor& input, const Tensor& weight,
                         const Tensor& mean, const Tensor& rstd, double) {
  const char* op = "batch_norm_gradient";
  const int64_t channels = channelsOf(op, input);
  if (input.numel() == 0) return gradientsOfNothing(input);
  checkChannels(op, "mean", mean, channels);
  checkChannels(op, "rstd", rstd, channels);
  checkChannels(op, "weight", weight, channels);
  WICK_CHECK(isFloating(input.dtype()) && mean.defined() && rstd.defined() &&
                 std::ranges::equal(grad.sizes(), input.sizes()),
             "{}: a gradient {} does not fit an input {}", op, grad.describe(), input.describe());
  BatchNormGradients all = batchNormGradients(grad, input, {mean, rstd}, weight);
  return {all.images, all.weight, all.bias};
}

// ---- groups of channels ----

Triple groupNormGradient(const Tensor& grad, const Tensor& input, const Tensor& weight,
                         int64_t groups, double eps) {
  const char* op = "group_norm_gradient";
  const int64_t channels = channelsOf(op, input);
  checkGroups(op, input, channels, groups);
  checkChannels(op, "weight", weight, channels);
  if (input.numel() == 0) return gradientsOfNothing(input);
  const Tensor x = widened(input).contiguous();
  const Tensor g = grad.to(x.dtype()).contiguous();
  WICK_CHECK(std::ranges::equal(g.sizes(), x.sizes()), "{}: a gradient {} does not fit an input {}",
             op, grad.describe(), input.describe());
  const Planes planes(x);
  const int64_t each = planes.channels / groups;
  const DimVector of_groups{planes.samples, groups, 1}, split{planes.samples, groups, each},
      flat{planes.samples, planes.channels};
  const auto toPlanes = [&](const Tensor& t) {  // from [N, groups]
    return t.reshape(of_groups).expand(split).contiguous().reshape(flat);
  };
  const auto toGroups = [&](const Tensor& t) {  // sums of [N, C]
    return ops::sumDims(t.reshape(split), DimVector{2}, false);
  };
  const Tensor rows = x.reshape(DimVector{planes.samples, groups, each * planes.pixels});
  const Tensor mean = ops::meanDims(rows, DimVector{2});
  const Tensor rstd =
      ops::rsqrt(ops::addScalar(ops::var(rows, DimVector{2}, int64_t{0}), Scalar(eps)));
  const Tensor means = toPlanes(mean), rstds = toPlanes(rstd);
  const Sums sums = sumsOf(g, x, planes, means);
  Tensor grads = sums.grads, products = sums.products, scale = rstds;
  if (weight.defined()) {
    const Tensor w = weight.to(x.dtype()).reshape(DimVector{1, planes.channels});
    grads = ops::mul(grads, w);
    products = ops::mul(products, w);
    scale = ops::mul(rstds, w);
  }
  const Scalar share(-1.0 / static_cast<double>(each * planes.pixels));
  const Tensor cube = ops::mul(rstd, ops::mul(rstd, rstd));
  const Tensor slope = toPlanes(ops::mulScalar(ops::mul(cube, toGroups(products)), share));
  const Tensor shift = toPlanes(ops::mulScalar(ops::mul(rstd, toGroups(grads)), share));
  const Tensor for_input = along(g, x, planes, {scale, slope, means, shift});
  return {for_input, ops::sumDims(ops::mul(sums.products, rstds), DimVector{0}, false),
          ops::sumDims(sums.grads, DimVector{0}, false)};
}

Triple nativeGroupNorm(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                       int64_t c, int64_t hxw, int64_t groups, double eps) {
  const char* op = "native_group_norm";
  checkPlanes(op, input, n, c, hxw);
  checkGroups(op, input, c, groups);
  const Tensor x = input.contiguous();
  const Tensor out =
      ops::groupNorm(x.reshape(DimVector{n, c, hxw}), groups, weight, bias, eps, false);
  const Tensor rows = widened(x).reshape(DimVector{n, groups, c / groups * hxw});
  const Tensor rstd =
      ops::rsqrt(ops::addScalar(ops::var(rows, DimVector{2}, int64_t{0}), Scalar(eps)));
  return {out.reshape(input.sizes()), ops::meanDims(rows, DimVector{2}).to(input.dtype()),
          rstd.to(input.dtype())};
}

// Without elements, or with a bias alone, which no loop form has.
Tensor groupNorm(const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                 double eps, bool) {
  checkGroups("group_norm", input, channelsOf("group_norm", input), groups);
  if (input.numel() == 0) return input.clone();
  if (weight.defined() || !bias.defined()) throw NotOnDevice();
  const Tensor ones = Tensor::full(bias.sizes(), 1, bias.dtype(), bias.device());
  return ops::groupNorm(input, groups, ones, bias, eps, false);
}

const DeviceKernel kNormalizationLast[] = {
    {"aten::group_norm", WICK_KERNEL(groupNorm)},
};
const RegisterDeviceKernels kNormalizationLastRegistered(DeviceType::CUDA, kNormalizationLast,
                                                         TableRule::Last);

const DeviceKernel kNormalizationKernels[] = {
    {"wick::batch_norm_gradient", WICK_KERNEL(batchNormGradient)},
    {"wick::group_norm_gradient", WICK_KERNEL(groupNormGradient)},
    {"aten::native_group_norm", WICK_KERNEL(nativeGroupNorm)},
};

const RegisterDeviceKernels kNormalizationRegistered(DeviceType::CUDA, kNormalizationKernels);

}  // namespace

}  // namespace wick::cuda
