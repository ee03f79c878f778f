// grid_sampler and its gradients on CUDA devices, with the CPU's source for where samples lie.
// Reduced floats are computed in float32, as PyTorch's kernels for devices do.
#include <fmt/format.h>

#include "codegen/cuda/special_text.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/element_texts.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/reduce_at.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/grid.h"

namespace wick::cuda {

namespace {

constexpr const char* kPoints =
#include "runtime/cuda/grid_points.inc"
#include "runtime/ops/layers/util.h"
    ;

// The result at each point of each channel.
constexpr const char* kSamples = R"(
typedef {type} T;
struct Words {{
  const T* x; const T* grid; T* out;
  long long batch, channels, points, d, h, w, spatial, interpolation, padding, align;
}};
extern "C" __global__ void __launch_bounds__(256) samples(const __grid_constant__ Words p) {{
  const long long pixels = p.d * p.h * p.w;
  const long long total = p.batch * p.points;
  wick::grid::Extent e;
  e.d = p.d; e.h = p.h; e.w = p.w;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const wick::grid::Sample<T> s = wick::grid::sampleAt<T>(
        p.grid + i * p.spatial, p.spatial, e, p.interpolation, p.padding, p.align != 0);
    const long long n = i / p.points, at = i % p.points;
    for (long long c = 0; c < p.channels; ++c) {{
      const long long plane = n * p.channels + c;
      p.out[plane * p.points + at] = s.valueOf(p.x + plane * pixels);
    }}
  }}
}}
)";

constexpr const char* kGradients = R"(
typedef {type} T;
struct Words {{
  const T* x; const T* grid; const T* grad; T* out; long long* places;
  long long batch, channels, points, d, h, w, spatial, interpolation, padding, align;
}};
__device__ wick::grid::Extent extentOf(const Words& p) {{
  wick::grid::Extent e;
  e.d = p.d; e.h = p.h; e.w = p.w;
  return e;
}}
// What each point adds to which elements of the input, {most} a point; places are -1 beyond them.
extern "C" __global__ void __launch_bounds__(256) inputParts(const __grid_constant__ Words p) {{
  const long long pixels = p.d * p.h * p.w;
  const long long total = p.batch * p.points;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const wick::grid::Sample<T> s = wick::grid::sampleAt<T>(
        p.grid + i * p.spatial, p.spatial, extentOf(p), p.interpolation, p.padding, p.align != 0);
    const long long n = i / p.points, at = i % p.points;
    for (long long c = 0; c < p.channels; ++c) {{
      const long long plane = n * p.channels + c;
      const T value = p.grad[plane * p.points + at];
      const long long first = (plane * p.points + at) * {most};
      for (long long k = 0; k < {most}; ++k) {{
        const bool used = k < s.count && s.index[k] >= 0;
        p.places[first + k] = used ? plane * pixels + s.index[k] : -1;
        const T down = s.count == 16 ? s.down[k / 4] : (T)1;
        p.out[first + k] = used ? value * s.weight[k] * down : (T)0;
      }}
    }}
  }}
}}
// The gradient for each coordinate of the grid.
extern "C" __global__ void __launch_bounds__(256) gridParts(const __grid_constant__ Words p) {{
  const long long pixels = p.d * p.h * p.w;
  const long long total = p.batch * p.points;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const wick::grid::Slopes<T> s = wick::grid::slopesAt<T>(
        p.grid + i * p.spatial, p.spatial, extentOf(p), p.interpolation, p.padding, p.align != 0);
    const long long n = i / p.points, at = i % p.points;
    T sums[3] = {{(T)0, (T)0, (T)0}};
    for (long long c = 0; c < p.channels; ++c) {{
      const long long plane = n * p.channels + c;
      const T value = p.grad[plane * p.points + at];
      for (long long k = 0; k < s.count; ++k) {{
        const T part = value * p.x[plane * pixels + s.index[k]];
        for (int d = 0; d < 3; ++d) sums[d] += part * s.slope[k][d];
      }}
    }}
    for (long long d = 0; d < p.spatial; ++d) p.out[i * p.spatial + d] = sums[d];
  }}
}}
)";

struct Task {
  IntSpan sizes;  // of the input
  const Tensor& grid;
  int64_t points;
  int64_t interpolation, padding;
  bool align;
};

// The kernels of gradients; `x`, `grad` and `places` only where they have them.
void launchGradient(const char* kernel, const Task& task, const Tensor& x, const Tensor& grid,
                    const Tensor& grad, const Tensor& out, const Tensor& places) {
  const bool deep = task.sizes.size() == 5;
  const std::string text =
      codegen::standardText() + kPoints +
      textOf(kGradients, grid.dtype(), fmt::arg("most", ops::mostSampled(task.interpolation)));
  launchPoints(grid.device(), text, kernel, task.sizes[0] * task.points,
               {wordOf(x), wordOf(grid), wordOf(grad), wordOf(out), wordOf(places), task.sizes[0],
                task.sizes[1], task.points, deep ? task.sizes[2] : 1, task.sizes[deep ? 3 : 2],
                task.sizes[deep ? 4 : 3], deep ? 3 : 2, task.interpolation, task.padding,
                task.align ? 1 : 0});
}

}  // namespace

std::string gridSamplesText(DType type) {
  return codegen::standardText() + kPoints + textOf(kSamples, type);
}

namespace {

Tensor gridSample(const char* op, const Tensor& input, const Tensor& grid, int64_t interpolation,
                  int64_t padding, bool align, int64_t spatial) {
  ops::checkGrid(op, input, grid, interpolation, padding, spatial);
  WICK_CHECK(isFloating(input.dtype()), "\"{}\" not implemented for '{}'", op,
             scalarTypeName(input.dtype()));
  const Tensor x = widened(input).contiguous(), at = widened(grid).contiguous();
  const DimVector sizes = ops::sizesOfSamples(input.sizes(), grid);
  const Tensor out = Tensor::empty(sizes, x.dtype(), x.device());
  if (out.numel() > 0) {
    const int64_t points = checkedNumel(IntSpan(sizes).subspan(2));
    const bool deep = input.dim() == 5;
    CudaDevice& device = enter(at.device());
    launchText(device, gridSamplesText(x.dtype()), "samples",
               gridFor(input.size(0) * points, device),
               {wordOf(x), wordOf(at), wordOf(out), input.size(0), input.size(1), points,
                deep ? input.size(2) : 1, input.size(-2), input.size(-1), deep ? 3 : 2,
                interpolation, padding, align ? 1 : 0});
  }
  return out.to(input.dtype());
}

// What all points add is kept, and added up element by element in the points' order.
Tensor inputGradient(const Tensor& grad, const DimVector& sizes, const Tensor& grid,
                     int64_t interpolation, int64_t padding, bool align) {
  const char* op = "grid_sampler_input_gradient";
  const int64_t spatial = sizes.size() == 5 ? 3 : 2;
  const Tensor g = widened(grad).contiguous(), at = grid.to(g.dtype()).contiguous();
  const Tensor out = Tensor::zeros(sizes, g.dtype(), g.device());
  ops::checkGrid(op, out.to(grid.dtype()), grid, interpolation, padding, spatial);
  const int64_t points = ops::pointsOfGrid(op, grad, grid, sizes);
  if (g.numel() == 0) return out.to(grad.dtype());
  const DimVector parts{checkedNumel(DimVector{g.numel(), ops::mostSampled(interpolation)})};
  const Tensor places = Tensor::empty(parts, DType::Long, g.device());
  const Tensor values = Tensor::empty(parts, g.dtype(), g.device());
  launchGradient("inputParts", {sizes, grid, points, interpolation, padding, align}, {}, at, g,
                 values, places);
  reduceAt(op, out, places, values, ops::Reduction::Sum, true);
  return out.to(grad.dtype());
}
Tensor gridGradient(const Tensor& grad, const Tensor& input, const Tensor& grid,
                    int64_t interpolation, int64_t padding, bool align) {
  const char* op = "grid_sampler_grid_gradient";
  const int64_t spatial = input.dim() == 5 ? 3 : 2;
  ops::checkGrid(op, input, grid, interpolation, padding, spatial);
  const int64_t points = ops::pointsOfGrid(op, grad, grid, input.sizes());
  const Tensor x = widened(input).contiguous(), at = widened(grid).contiguous(),
               g = grad.to(x.dtype()).contiguous();
  const Tensor out = Tensor::zeros(at.sizes(), at.dtype(), at.device());
  if (out.numel() > 0) {
    launchGradient("gridParts", {input.sizes(), grid, points, interpolation, padding, align}, x, at,
                   g, out, {});
  }
  return out.to(grid.dtype());
}

const DeviceKernel kGridSamplerKernels[] = {
    {"aten::grid_sampler", WICK_KERNEL(ops::GridSamplers<gridSample>::either)},
    {"aten::grid_sampler_2d", WICK_KERNEL(ops::GridSamplers<gridSample>::planes)},
    {"aten::grid_sampler_3d", WICK_KERNEL(ops::GridSamplers<gridSample>::volumes)},
    {"wick::grid_sampler_input_gradient", WICK_KERNEL(inputGradient)},
    {"wick::grid_sampler_grid_gradient", WICK_KERNEL(gridGradient)},
};
const RegisterDeviceKernels kGridSamplerRegistered(DeviceType::CUDA, kGridSamplerKernels);

}  // namespace

}  // namespace wick::cuda
