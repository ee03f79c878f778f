// Gradients of pooling: averages are spread over their windows, and what was picked by index goes
// back there.
// GCC 12 takes the size that a vector notes when it frees its memory for a use of the freed
// pointer.
#pragma GCC diagnostic ignored "-Wuse-after-free"

#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/kernels/pooling.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"

namespace wick::autograd {

namespace {

using pooling::Axes;

// What the last `n` dimensions and those before them multiply to.
struct Planes {
  Planes(const char* op, IntSpan sizes, int64_t n) {
    WICK_CHECK(n >= 0 && n <= static_cast<int64_t>(sizes.size()),
               "{}: expected {} or more dimensions, got {}", op, n, formatInts(sizes));
    const size_t leading = sizes.size() - static_cast<size_t>(n);
    for (size_t d = 0; d < sizes.size(); ++d) (d < leading ? count : pixels) *= sizes[d];
  }
  int64_t count = 1, pixels = 1;
};

void checkIndices(const char* op, const Tensor& indices, IntSpan like, int64_t n) {
  WICK_CHECK(indices.dtype() == DType::Long && indices.dim() == static_cast<int64_t>(like.size()),
             "{}: expected int64 indices of {} dimensions, got {}", op, like.size(),
             indices.describe());
  for (int64_t d = 0; d + n < indices.dim(); ++d) {
    WICK_CHECK(indices.size(d) == like[static_cast<size_t>(d)],
               "{}: indices {} do not fit sizes {}", op, indices.describe(), formatInts(like));
  }
}

// planeScatter() of images whose channels lie side by side, in the values, the indices and the
// result alike.
template <class T>
void scatterLast(const char* op, const T* source, const int64_t* index, T* target, int64_t samples,
                 int64_t channels, int64_t from_pixels, int64_t to_pixels) {
  // Several channels at a time, each of which no other thread writes.
  constexpr int64_t kTogether = 16;
  const int64_t parts = (channels + kTogether - 1) / kTogether;
  parallelFor(samples * parts, std::max<int64_t>(1, kGrainSize / (kTogether * from_pixels)),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t sample = i / parts, first = i % parts * kTogether;
                  const int64_t last = std::min(channels, first + kTogether);
                  T* const to = target + sample * to_pixels * channels;
                  for (int64_t p = 0; p < from_pixels; ++p) {
                    const int64_t row = (sample * from_pixels + p) * channels;
                    for (int64_t c = first; c < last; ++c) {
                      const int64_t at = index[row + c];
                      WICK_CHECK(at >= 0 && at < to_pixels,
                                 "{}: index {} is out of bounds for {} elements", op, at,
                                 to_pixels);
                      T& sum = to[at * channels + c];
                      sum = wrappedSum(sum, source[row + c]);
                    }
                  }
                }
              });
}

// Zeros of `sizes`, to which every value is added at its index of the plane that the last `n`
// dimensions are.
Tensor planeScatter(const Tensor& values, const Tensor& indices, const DimVector& sizes,
                    int64_t n) {
  const char* op = "plane_scatter";
  checkedNumel(sizes);
  const Planes to(op, sizes, n), from(op, values.sizes(), n);
  checkIndices(op, indices, sizes, n);
  WICK_CHECK(std::ranges::equal(values.sizes(), indices.sizes()),
             "{}: expected a value for each index, got {} and {}", op, values.describe(),
             indices.describe());
  if (n == indices.dim() - 2 && isChannelsLast(indices) && indices.numel() > 0 && to.pixels > 0) {
    const MemoryFormat format = indices.suggestMemoryFormat();
    const Tensor x = values.contiguous(format), at = indices.contiguous(format);
    Tensor out = Tensor::empty(sizes, values.dtype(), values.device(), format);
    out.fill(0);
    dispatchAll(values.dtype(), [&]<class T>() {
      scatterLast(op, x.data<T>(), at.data<int64_t>(), out.data<T>(), sizes[0], sizes[1],
                  from.pixels, to.pixels);
    });
    return out;
  }
  const Tensor x = values.contiguous(), at = indices.contiguous();
  Tensor out = Tensor::zeros(sizes, values.dtype());
  dispatchAll(values.dtype(), [&]<class T>() {
    const T* source = x.data<T>();
    const int64_t* index = at.data<int64_t>();
    T* target = out.data<T>();
    parallelFor(to.count, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, from.pixels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin * from.pixels; i < end * from.pixels; ++i) {
                    WICK_CHECK(index[i] >= 0 && index[i] < to.pixels,
                               "{}: index {} is out of bounds for {} elements", op, index[i],
                               to.pixels);
                    T& sum = target[i / from.pixels * to.pixels + index[i]];
                    sum = wrappedSum(sum, source[i]);
                  }
                });
  });
  return out;
}

// The same for what a maximum over windows gave. Devices ask which windows an element lies in.
Tensor maxPoolGradient(const Tensor& values, const Tensor& indices, const DimVector& sizes,
                       int64_t n, const DimVector&, const DimVector&, const DimVector&,
                       const DimVector&) {
  return planeScatter(values, indices, sizes, n);
}

// The elements at the indices of each plane.
Tensor planeGather(const Tensor& self, const Tensor& indices, int64_t n) {
  const char* op = "plane_gather";
  const Planes from(op, self.sizes(), n), to(op, indices.sizes(), n);
  checkIndices(op, indices, self.sizes(), n);
  const Tensor x = self.contiguous(), at = indices.contiguous();
  Tensor out = Tensor::empty(indices.sizes(), self.dtype());
  dispatchAll(self.dtype(), [&]<class T>() {
    const T* source = x.data<T>();
    const int64_t* index = at.data<int64_t>();
    T* target = out.data<T>();
    parallelFor(at.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        WICK_CHECK(index[i] >= 0 && index[i] < from.pixels,
                   "{}: index {} is out of bounds for {} elements", op, index[i], from.pixels);
        target[i] = source[i / to.pixels * from.pixels + index[i]];
      }
    });
  });
  return out;
}

int64_t elementsRead(const pooling::Axis& axis, size_t i) {
  return std::max<int64_t>(0, axis.end[i] - axis.begin[i]);
}

// Adds each window's share to the elements that it reads. `divisors` are of the axes' windows, or
// all windows have `divisor`.
template <class T>
void spreadPlane(const T* grad, T* out, const Axes& axes, bool count_padding,
                 std::optional<int64_t> divisor) {
  const auto& [ad, ah, aw] = axes;
  const auto factor = [&](const pooling::Axis& a, size_t i) {
    return count_padding ? a.span[i] : elementsRead(a, i);
  };
  for (size_t d = 0; d < ad.begin.size(); ++d) {
    for (size_t h = 0; h < ah.begin.size(); ++h) {
      for (size_t w = 0; w < aw.begin.size(); ++w) {
        const int64_t count = divisor ? *divisor : factor(ad, d) * factor(ah, h) * factor(aw, w);
        const T value = *grad++ / static_cast<T>(count);
        for (int64_t z = ad.begin[d]; z < ad.end[d]; z += ad.step) {
          for (int64_t y = ah.begin[h]; y < ah.end[h]; y += ah.step) {
            T* row = out + (z * ah.input + y) * aw.input;
            for (int64_t x = aw.begin[w]; x < aw.end[w]; x += aw.step) row[x] += value;
          }
        }
      }
    }
  }
}

// The windows of an axis that read each of its elements, with the share that each window gives.
WeightedRows readersOf(const pooling::Axis& axis, bool count_padding, bool shares) {
  WeightedRows windows;
  windows.start.push_back(0);
  for (size_t i = 0; i < axis.begin.size(); ++i) {
    const int64_t count = count_padding ? axis.span[i] : elementsRead(axis, i);
    for (int64_t at = axis.begin[i]; at < axis.end[i]; at += axis.step) {
      windows.place.push_back(at);
      windows.weight.push_back(shares ? 1 / static_cast<double>(count) : 1);
    }
    windows.start.push_back(static_cast<int64_t>(windows.place.size()));
  }
  return windows.transposed(axis.input);
}

// spread() on a device: one axis after the other, for a window's count is a product of theirs.
Tensor spreadOnDevice(const char* op, const Tensor& grad, const DimVector& sizes, const Axes& axes,
                      size_t n, bool count_padding, std::optional<int64_t> divisor) {
  Tensor g = grad.contiguous();
  for (size_t d = 0; d < n; ++d) {
    const size_t at = sizes.size() - n + d;
    DimVector now(g.sizes());
    now[at] = sizes[at];
    int64_t inner = 1;
    for (size_t e = at + 1; e < now.size(); ++e) inner *= now[e];
    const Tensor next = Tensor::empty(now, g.dtype(), g.device());
    deviceLayers(op, g.device())
        .weightedRows(op, g, next, g.size(static_cast<int64_t>(at)), inner,
                      readersOf(axes[3 - n + d], count_padding, !divisor));
    g = next;
  }
  return divisor ? ops::mulScalar(g, Scalar(1 / static_cast<double>(*divisor))) : g;
}

Tensor spread(const char* op, const Tensor& grad, const DimVector& sizes, const Axes& axes,
              size_t n, bool count_padding, std::optional<int64_t> divisor) {
  DimVector expected(sizes);
  for (size_t d = 0; d < n; ++d) expected[sizes.size() - n + d] = axes[3 - n + d].size();
  WICK_CHECK(std::ranges::equal(expected, grad.sizes()),
             "{}: expected a gradient of sizes {}, got {}", op, formatInts(expected),
             grad.describe());
  const Planes planes(op, sizes, static_cast<int64_t>(n));
  const Tensor g = widened(grad).contiguous();
  if (checkedNumel(sizes) == 0 || g.numel() == 0) {
    return Tensor::zeros(sizes, grad.dtype(), grad.device());
  }
  if (!g.device().isCpu()) {
    return spreadOnDevice(op, g, sizes, axes, n, count_padding, divisor).to(grad.dtype());
  }
  Tensor out = Tensor::zeros(sizes, g.dtype());
  const int64_t steps = g.numel() / planes.count;
  dispatch<kFloats>(op, g.dtype(), [&]<class T>() {
    parallelFor(planes.count, std::max<int64_t>(1, kGrainSize / planes.pixels),
                [&](int64_t begin, int64_t end) {
                  for (int64_t p = begin; p < end; ++p) {
                    spreadPlane(g.data<T>() + p * steps, out.data<T>() + p * planes.pixels, axes,
                                count_padding, divisor);
                  }
                });
  });
  return out.to(grad.dtype());
}

size_t spatialOf(const char* op, int64_t n, const DimVector& sizes) {
  WICK_CHECK(n >= 1 && n <= 3 && sizes.size() >= static_cast<size_t>(n),
             "{}: expected 1 to 3 spatial dimensions of sizes {}, got {}", op, formatInts(sizes),
             n);
  checkedNumel(sizes);
  return static_cast<size_t>(n);
}

Tensor averageGradient(const Tensor& grad, const DimVector& sizes, int64_t spatial,
                       const DimVector& kernel_size, const DimVector& strides,
                       const DimVector& paddings, bool ceil_mode, bool count_include_pad,
                       std::optional<int64_t> divisor) {
  const char* op = "avg_pool_gradient";
  const size_t n = spatialOf(op, spatial, sizes);
  WICK_CHECK(!divisor || *divisor != 0, "{}: divisor must be not zero", op);
  const DimVector kernel = expandInts(op, "kernel_size", kernel_size, n);
  const DimVector stride = strides.empty() ? kernel : expandInts(op, "stride", strides, n);
  const DimVector padding = expandInts(op, "padding", paddings, n);
  Axes axes{pooling::unitAxis(), pooling::unitAxis(), pooling::unitAxis()};
  for (size_t d = 0; d < n; ++d) {
    axes[3 - n + d] = pooling::slidingAxis(op, sizes[sizes.size() - n + d], kernel[d], stride[d],
                                           padding[d], 1, ceil_mode);
  }
  return spread(op, grad, sizes, axes, n, count_include_pad, divisor);
}

Tensor adaptiveAverageGradient(const Tensor& grad, const DimVector& sizes, int64_t spatial) {
  const char* op = "adaptive_avg_pool_gradient";
  const size_t n = spatialOf(op, spatial, sizes);
  WICK_CHECK(static_cast<size_t>(grad.dim()) == sizes.size(),
             "{}: a gradient {} does not fit sizes {}", op, grad.describe(), formatInts(sizes));
  Axes axes{pooling::unitAxis(), pooling::unitAxis(), pooling::unitAxis()};
  for (size_t d = 0; d < n; ++d) {
    const size_t at = sizes.size() - n + d;
    axes[3 - n + d] = pooling::adaptiveAxis(sizes[at], grad.size(static_cast<int64_t>(at)));
  }
  return spread(op, grad, sizes, axes, n, false, std::nullopt);
}

constexpr OperatorRecord kKernelsNnPoolingRecords[] = {
    {"wick::plane_scatter(Tensor values, Tensor indices, int[] sizes, int n) -> Tensor",
     WICK_KERNEL(planeScatter)},
    {"wick::max_pool_gradient(Tensor values, Tensor indices, int[] sizes, int n, int[] "
     "kernel_size, "
     "int[] stride, int[] padding, int[] dilation) -> Tensor",
     WICK_KERNEL(maxPoolGradient)},
    {"wick::plane_gather(Tensor self, Tensor indices, int n) -> Tensor", WICK_KERNEL(planeGather)},
    {"wick::avg_pool_gradient(Tensor grad_output, int[] sizes, int n, int[] kernel_size, int[] "
     "stride, "
     "int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
     WICK_KERNEL(averageGradient), kNeutral},
    {"wick::adaptive_avg_pool_gradient(Tensor grad_output, int[] sizes, int n) -> Tensor",
     WICK_KERNEL(adaptiveAverageGradient), kNeutral},
};
const RegisterOperators kKernelsNnPoolingRegistered(kKernelsNnPoolingRecords);

}  // namespace

}  // namespace wick::autograd
