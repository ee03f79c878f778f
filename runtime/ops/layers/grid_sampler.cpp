// grid_sampler and its gradients.
#include <type_traits>

#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/grid_points.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/grid.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/rounded.h"

namespace wick {

namespace ops {

void checkGrid(const char* op, const Tensor& input, const Tensor& grid, int64_t interpolation,
               int64_t padding, int64_t spatial) {
  WICK_CHECK(input.dim() == spatial + 2 && grid.dim() == spatial + 2,
             "{}: expected {}D input and grid, but got input with sizes {} and grid with sizes {}",
             op, spatial + 2, formatInts(input.sizes()), formatInts(grid.sizes()));
  WICK_CHECK(input.size(0) == grid.size(0) && grid.size(-1) == spatial,
             "{}: expected grid and input to have same batch size and grid to have size {} in last "
             "dimension, but got input with sizes {} and grid with sizes {}",
             op, spatial, formatInts(input.sizes()), formatInts(grid.sizes()));
  WICK_CHECK(input.dtype() == grid.dtype(),
             "{}: expected input and grid to have same dtype, but input has {} and grid has {}", op,
             toString(input.dtype()), toString(grid.dtype()));
  WICK_CHECK(
      interpolation >= 0 && interpolation <= (spatial == 2 ? 2 : 1) && padding >= 0 && padding <= 2,
      "{}: unknown interpolation {} or padding {}", op, interpolation, padding);
  for (int64_t d = 2; d < input.dim(); ++d) {
    WICK_CHECK(input.size(d) > 0, "{}: expected input to have non-empty spatial dimensions, got {}",
               op, formatInts(input.sizes()));
  }
}

int64_t pointsOfGrid(const char* op, const Tensor& grad, const Tensor& grid, IntSpan input) {
  const DimVector expected = sizesOfSamples(input, grid);
  WICK_CHECK(std::ranges::equal(grad.sizes(), expected),
             "{}: expected a gradient of sizes {}, got {}", op, formatInts(expected),
             grad.describe());
  return checkedNumel(IntSpan(expected).subspan(2));
}

DimVector sizesOfSamples(IntSpan input, const Tensor& grid) {
  DimVector sizes{input[0], input[1]};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) sizes.push_back(grid.size(d));
  return sizes;
}

int64_t mostSampled(int64_t interpolation) {
  return interpolation == grid::kBicubic ? 16 : 8;
}

}  // namespace ops

namespace {

using namespace grid;

// Samples of E, computed as numbers of T.
template <class T, class E>
void sampleInto(const Tensor& out, const Tensor& x, const Tensor& grid, const Extent& e,
                int64_t spatial, int64_t interpolation, int64_t padding, bool align) {
  const int64_t channels = x.size(1), pixels = e.d * e.h * e.w;
  const int64_t points = channels == 0 ? 0 : out.numel() / (x.size(0) * channels);
  // Some points at once: each channel is read and written for all of them.
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (points + kBlock - 1) / kBlock;
  const E *from = x.data<E>(), *at = grid.data<E>();
  E* to = out.data<E>();
  const int64_t grain = std::max<int64_t>(1, 4096 / kBlock / std::max<int64_t>(1, channels));
  parallelFor(x.size(0) * blocks, grain, [&](int64_t begin, int64_t end) {
    CountedVector<Sample<T>> samples(static_cast<size_t>(kBlock));
    for (int64_t block = begin; block < end; ++block) {
      const int64_t n = block / blocks, first = block % blocks * kBlock;
      const int64_t count = std::min(kBlock, points - first);
      for (int64_t p = 0; p < count; ++p) {
        samples[p] = sampleAt<T>(at + (n * points + first + p) * spatial, spatial, e, interpolation,
                                 padding, align);
      }
      for (int64_t c = 0; c < channels; ++c) {
        const E* plane = from + (n * channels + c) * pixels;
        E* row = to + (n * channels + c) * points + first;
        for (int64_t p = 0; p < count; ++p) row[p] = E(samples[p].valueOf(plane));
      }
    }
  });
}

Tensor gridSample(const char* op, const Tensor& input, const Tensor& grid, int64_t interpolation,
                  int64_t padding, bool align, int64_t spatial) {
  ops::checkGrid(op, input, grid, interpolation, padding, spatial);
  // PyTorch rounds each step in two dimensions.
  const bool rounded = spatial == 2 && isReducedFloat(input.dtype());
  const Tensor x = (rounded ? input : widened(input)).contiguous();
  const Tensor g = (rounded ? grid : widened(grid)).contiguous();
  const Extent e{spatial == 3 ? input.size(2) : 1, input.size(-2), input.size(-1)};
  const Tensor out = Tensor::empty(ops::sizesOfSamples(input.sizes(), grid), x.dtype());
  if (out.numel() == 0) return out.to(input.dtype());
  dispatch<kAnyFloat>(op, x.dtype(), [&]<class E>() {
    using T = std::conditional_t<std::is_arithmetic_v<E>, E, Rounded<E>>;
    sampleInto<T, E>(out, x, g, e, spatial, interpolation, padding, align);
  });
  return out.to(input.dtype());
}

// The gradient for an input of `sizes`.
Tensor gridSamplerInputGradient(const Tensor& grad, const DimVector& sizes, const Tensor& grid,
                                int64_t interpolation, int64_t padding, bool align) {
  const char* op = "grid_sampler_input_gradient";
  const int64_t spatial = sizes.size() == 5 ? 3 : 2;
  Tensor out = Tensor::zeros(sizes, widened(grad).dtype());
  ops::checkGrid(op, out.to(grid.dtype()), grid, interpolation, padding, spatial);
  const int64_t points = ops::pointsOfGrid(op, grad, grid, sizes), channels = sizes[1];
  const Extent e{spatial == 3 ? sizes[2] : 1, out.size(-2), out.size(-1)};
  const int64_t pixels = e.d * e.h * e.w;
  const Tensor g = widened(grad).contiguous(), at = grid.to(g.dtype()).contiguous();
  dispatch<kFloats>(op, g.dtype(), [&]<class T>() {
    const int64_t planes = sizes[0] * channels;
    // Samples are looked up once for all channels that a thread has.
    const int64_t grain = std::max<int64_t>(1, std::min<int64_t>(channels, 8));
    parallelFor(planes, grain, [&](int64_t begin, int64_t end) {
      for (int64_t first = begin; first < end;) {
        const int64_t n = first / channels, last = std::min(end, (n + 1) * channels);
        for (int64_t p = 0; p < points; ++p) {
          const Sample<T> s = sampleAt<T>(at.data<T>() + (n * points + p) * spatial, spatial, e,
                                          interpolation, padding, align);
          for (int64_t plane = first; plane < last; ++plane) {
            const T value = g.data<T>()[plane * points + p];
            T* to = out.data<T>() + plane * pixels;
            for (int64_t k = 0; k < s.count; ++k) {
              if (s.index[k] < 0) continue;
              to[s.index[k]] += value * s.weight[k] * (s.count == 16 ? s.down[k / 4] : T(1));
            }
          }
        }
        first = last;
      }
    });
  });
  return out.to(grad.dtype());
}

// The gradient for the grid.
Tensor gridSamplerGridGradient(const Tensor& grad, const Tensor& input, const Tensor& grid,
                               int64_t interpolation, int64_t padding, bool align) {
  const char* op = "grid_sampler_grid_gradient";
  const int64_t spatial = input.dim() == 5 ? 3 : 2;
  ops::checkGrid(op, input, grid, interpolation, padding, spatial);
  const int64_t points = ops::pointsOfGrid(op, grad, grid, input.sizes()), channels = input.size(1);
  const Extent e{spatial == 3 ? input.size(2) : 1, input.size(-2), input.size(-1)};
  const int64_t pixels = e.d * e.h * e.w;
  const Tensor x = widened(input).contiguous(), at = widened(grid).contiguous();
  const Tensor g = grad.to(x.dtype()).contiguous();
  Tensor out = Tensor::zeros(at.sizes(), at.dtype());
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    parallelFor(input.size(0) * points, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, channels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    const Slopes<T> s = slopesAt(at.data<T>() + p * spatial, spatial, e,
                                                 interpolation, padding, align);
                    T* to = out.data<T>() + p * spatial;
                    for (int64_t c = 0; c < channels; ++c) {
                      const int64_t plane = p / points * channels + c;
                      const T value = g.data<T>()[plane * points + p % points];
                      const T* from = x.data<T>() + plane * pixels;
                      for (int64_t k = 0; k < s.count; ++k) {
                        const T part = value * from[s.index[k]];
                        for (int64_t d = 0; d < spatial; ++d) to[d] += part * s.slope[k][d];
                      }
                    }
                  }
                });
  });
  return out.to(grid.dtype());
}

#define WICK_GRID_ARGS                                                                            \
  "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> " \
  "Tensor"

constexpr OperatorRecord kGridSamplerRecords[] = {
    {"aten::grid_sampler" WICK_GRID_ARGS, WICK_KERNEL(ops::GridSamplers<gridSample>::either),
     kEagerCastFull},
    {"aten::grid_sampler_2d" WICK_GRID_ARGS, WICK_KERNEL(ops::GridSamplers<gridSample>::planes),
     kOutForm | kOutAny | kEagerCastFull},
    {"aten::grid_sampler_3d" WICK_GRID_ARGS, WICK_KERNEL(ops::GridSamplers<gridSample>::volumes),
     kOutForm | kEagerCastFull},
    {"aten::_grid_sampler_2d_cpu_fallback" WICK_GRID_ARGS,
     WICK_KERNEL(ops::GridSamplers<gridSample>::planes)},
    {"wick::grid_sampler_input_gradient(Tensor grad_output, int[] input_size, Tensor grid, int "
     "interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     WICK_KERNEL(gridSamplerInputGradient)},
    {"wick::grid_sampler_grid_gradient(Tensor grad_output, Tensor input, Tensor grid, int "
     "interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     WICK_KERNEL(gridSamplerGridGradient)},
};

const RegisterOperators kGridSamplerRegistered(kGridSamplerRecords);

}  // namespace
}  // namespace wick
