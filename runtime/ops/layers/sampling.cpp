// Sampling at computed places: grid_sampler with its gradients, affine grids, patches of images as
// columns and back.
#include <cmath>
#include <limits>

#include "core/budget.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"

namespace wick {
namespace {

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// The roundings and what becomes of NaN and infinities are PyTorch's, which computes in two
// dimensions otherwise than in three.
template <class T>
T unnormalize(T at, int64_t size, int64_t spatial, bool align_corners) {
  T n = static_cast<T>(size);
  if (spatial == 2) return align_corners ? (at + 1) * ((n - 1) / 2) : (at + 1) * (n / 2) - T(0.5);
  return align_corners ? (at + 1) / 2 * (n - 1) : ((at + 1) * n - 1) / 2;
}

template <class T>
T reflect2d(T at, int64_t size, bool align_corners) {
  const int64_t twice_span = align_corners ? 2 * (size - 1) : 2 * size;
  if (twice_span == 0) return T(0);
  const T low = align_corners ? T(0) : T(-0.5), period = static_cast<T>(twice_span);
  const T distance = std::abs(at - low);
  const T extra = distance - std::trunc(distance / period) * period;
  return std::min(extra, period - extra) + low;
}

// Mirrored at the ends until it lies between low / 2 and high / 2.
template <class T>
T reflect(T at, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return T(0);
  T low = static_cast<T>(twice_low) / 2, span = static_cast<T>(twice_high - twice_low) / 2;
  at = std::abs(at - low);
  T extra = std::fmod(at, span);
  return std::fmod(std::floor(at / span), T(2)) == 0 ? extra + low : span - extra + low;
}

// NaN becomes 0.
template <class T>
T clip(T at, int64_t size) {
  return std::min(static_cast<T>(size - 1), std::max(T(0), at));
}
// Infinite and NaN places become finite ones that are outside.
template <class T>
T finite(T at) {
  return at > T(INT32_MAX - 1) || at < T(INT32_MIN) || at != at ? T(-100) : at;
}

template <class T>
T place(T at, int64_t size, int64_t spatial, int64_t padding, bool align_corners) {
  if (padding == kReflection && spatial == 2) {
    at = reflect2d(at, size, align_corners);
  } else if (padding == kReflection) {
    at = align_corners ? reflect(at, 0, 2 * (size - 1)) : reflect(at, -1, 2 * size - 1);
  }
  if (padding != kZeros) at = clip(at, size);
  return spatial == 2 ? at : finite(at);
}

template <class T>
T sourceIndex(T at, int64_t size, int64_t spatial, int64_t padding, bool align_corners) {
  return place(unnormalize(at, size, spatial, align_corners), size, spatial, padding,
               align_corners);
}

template <class T>
int64_t toIndex(T whole) {
  return static_cast<int64_t>(finite(whole));
}

template <class T>
T cubicWeight(T x) {
  const T a = T(-0.75);
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x >= 2) return 0;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;  // NaN of NaN
}

// Up to 16 (2-D) source elements and weights that make one sample.
template <class T>
struct Sample {
  int64_t count = 0;
  int64_t index[16];
  T weight[16];
  void add(int64_t i, T w) {
    index[count] = i;
    weight[count++] = w;
  }
  // An element outside is zero, and may be multiplied by what is no number.
  void addOutside(T w) {
    if (!std::isfinite(w)) add(0, std::numeric_limits<T>::quiet_NaN());
  }
};

struct Extent {
  int64_t d, h, w;
};

template <class T>
Sample<T> sampleAt(const T* grid, int64_t spatial, const Extent& e, int64_t interpolation,
                   int64_t padding, bool align) {
  Sample<T> s;
  auto inside = [](int64_t i, int64_t n) { return i >= 0 && i < n; };
  if (interpolation == kBicubic) {
    T x = unnormalize(grid[0], e.w, 2, align), y = unnormalize(grid[1], e.h, 2, align);
    T fx = std::floor(x), fy = std::floor(y);
    for (int64_t j = -1; j <= 2; ++j) {
      for (int64_t i = -1; i <= 2; ++i) {
        int64_t ix = toIndex(place(fx + static_cast<T>(i), e.w, 2, padding, align));
        int64_t iy = toIndex(place(fy + static_cast<T>(j), e.h, 2, padding, align));
        T w = cubicWeight(x - fx - static_cast<T>(i)) * cubicWeight(y - fy - static_cast<T>(j));
        if (inside(ix, e.w) && inside(iy, e.h)) {
          s.add(iy * e.w + ix, w);
        } else {
          s.addOutside(w);
        }
      }
    }
    return s;
  }
  T x = sourceIndex(grid[0], e.w, spatial, padding, align);
  T y = sourceIndex(grid[1], e.h, spatial, padding, align);
  T z = spatial == 3 ? sourceIndex(grid[2], e.d, spatial, padding, align) : T(0);
  if (interpolation == kNearest) {
    int64_t ix = toIndex(std::nearbyint(x));
    int64_t iy = toIndex(std::nearbyint(y));
    int64_t iz = toIndex(std::nearbyint(z));
    if (inside(ix, e.w) && inside(iy, e.h) && inside(iz, e.d)) {
      s.add((iz * e.h + iy) * e.w + ix, T(1));
    }
    return s;
  }
  T fx = std::floor(x), fy = std::floor(y), fz = std::floor(z);
  for (int64_t corner = 0; corner < (spatial == 3 ? 8 : 4); ++corner) {
    int64_t cx = corner & 1, cy = corner >> 1 & 1, cz = corner >> 2;
    int64_t ix = toIndex(fx) + cx, iy = toIndex(fy) + cy;
    int64_t iz = toIndex(fz) + cz;
    T wx = cx ? x - fx : 1 - (x - fx), wy = cy ? y - fy : 1 - (y - fy);
    T wz = spatial == 2 ? T(1) : cz ? z - fz : 1 - (z - fz);
    T w = wx * wy * wz;
    if (inside(ix, e.w) && inside(iy, e.h) && inside(iz, e.d)) {
      s.add((iz * e.h + iy) * e.w + ix, w);
    } else if (spatial == 2) {
      s.addOutside(w);
    }
  }
  return s;
}

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

Tensor gridSample(const char* op, const Tensor& input, const Tensor& grid, int64_t interpolation,
                  int64_t padding, bool align, int64_t spatial) {
  checkGrid(op, input, grid, interpolation, padding, spatial);
  Tensor x = widened(input).contiguous(), g = widened(grid).contiguous();
  Extent e{spatial == 3 ? input.size(2) : 1, input.size(-2), input.size(-1)};
  DimVector sizes{input.size(0), input.size(1)};
  int64_t points = 1;
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) {
    sizes.push_back(grid.size(d));
    points *= grid.size(d);
  }
  Tensor out = Tensor::empty(sizes, x.dtype());
  int64_t channels = input.size(1), pixels = e.d * e.h * e.w;
  // Some points at once: each channel is read and written for all of them.
  constexpr int64_t kBlock = 64;
  const int64_t blocks = (points + kBlock - 1) / kBlock;
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    const T *from = x.data<T>(), *at = g.data<T>();
    T* to = out.data<T>();
    parallelFor(input.size(0) * blocks,
                std::max<int64_t>(1, 4096 / kBlock / std::max<int64_t>(1, channels)),
                [&](int64_t begin, int64_t end) {
                  CountedVector<Sample<T>> samples(static_cast<size_t>(kBlock));
                  for (int64_t block = begin; block < end; ++block) {
                    const int64_t n = block / blocks, first = block % blocks * kBlock;
                    const int64_t count = std::min(kBlock, points - first);
                    for (int64_t p = 0; p < count; ++p) {
                      samples[p] = sampleAt(at + (n * points + first + p) * spatial, spatial, e,
                                            interpolation, padding, align);
                    }
                    for (int64_t c = 0; c < channels; ++c) {
                      const T* plane = from + (n * channels + c) * pixels;
                      T* row = to + (n * channels + c) * points + first;
                      for (int64_t p = 0; p < count; ++p) {
                        const Sample<T>& s = samples[p];
                        T sum = 0;
                        if (s.count == 4) {
                          for (int64_t k = 0; k < 4; ++k) sum += plane[s.index[k]] * s.weight[k];
                        } else {
                          for (int64_t k = 0; k < s.count; ++k)
                            sum += plane[s.index[k]] * s.weight[k];
                        }
                        row[p] = sum;
                      }
                    }
                  }
                });
  });
  return out.to(input.dtype());
}

Tensor gridSampler2d(const Tensor& input, const Tensor& grid, int64_t interpolation,
                     int64_t padding, bool align) {
  return gridSample("grid_sampler_2d", input, grid, interpolation, padding, align, 2);
}
Tensor gridSampler3d(const Tensor& input, const Tensor& grid, int64_t interpolation,
                     int64_t padding, bool align) {
  return gridSample("grid_sampler_3d", input, grid, interpolation, padding, align, 3);
}
Tensor gridSampler(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding,
                   bool align) {
  return gridSample("grid_sampler", input, grid, interpolation, padding, align,
                    input.dim() == 5 ? 3 : 2);
}

template <class T>
T cubicSlope(T x) {
  const T a = T(-0.75), size = std::abs(x);
  const T slope = size <= 1  ? (3 * (a + 2) * size - 2 * (a + 3)) * size
                  : size < 2 ? (3 * a * size - 10 * a) * size + 8 * a
                             : T(0);
  return x < 0 ? -slope : slope;
}

// How fast sourceIndex() changes with the grid; at the ends of what is clipped not at all.
template <class T>
T sourceSlope(T at, int64_t size, int64_t spatial, int64_t padding, bool align) {
  T slope = static_cast<T>(align ? size - 1 : size) / 2;
  if (padding == kZeros) return slope;
  T place = unnormalize(at, size, spatial, align);
  if (padding == kReflection) {
    const int64_t twice_span = align ? 2 * (size - 1) : 2 * size;
    if (twice_span == 0) return T(0);
    const T low = align ? T(0) : T(-0.5), span = static_cast<T>(twice_span) / 2;
    const bool back = std::fmod(std::floor(std::abs(place - low) / span), T(2)) != 0;
    if ((place < low) != back) slope = -slope;
    place = spatial == 2 ? reflect2d(place, size, align)
            : align      ? reflect(place, 0, 2 * (size - 1))
                         : reflect(place, -1, 2 * size - 1);
  }
  return place <= 0 || place >= static_cast<T>(size - 1) ? T(0) : slope;
}

// The source elements of one sample that are inside, and how their weights change along x, y, z.
template <class T>
struct Slopes {
  int64_t count = 0;
  int64_t index[16];
  T slope[16][3];
  void add(int64_t i, T x, T y, T z) {
    index[count] = i;
    slope[count][0] = x;
    slope[count][1] = y;
    slope[count++][2] = z;
  }
};

template <class T>
Slopes<T> slopesAt(const T* grid, int64_t spatial, const Extent& e, int64_t interpolation,
                   int64_t padding, bool align) {
  Slopes<T> s;
  auto inside = [](int64_t i, int64_t n) { return i >= 0 && i < n; };
  if (interpolation == kNearest) return s;
  if (interpolation == kBicubic) {
    const T x = unnormalize(grid[0], e.w, 2, align), y = unnormalize(grid[1], e.h, 2, align);
    const T fx = std::floor(x), fy = std::floor(y);
    const T sx = static_cast<T>(align ? e.w - 1 : e.w) / 2;
    const T sy = static_cast<T>(align ? e.h - 1 : e.h) / 2;
    for (int64_t j = -1; j <= 2; ++j) {
      for (int64_t i = -1; i <= 2; ++i) {
        const T tx = x - fx - static_cast<T>(i), ty = y - fy - static_cast<T>(j);
        const int64_t ix = toIndex(place(fx + static_cast<T>(i), e.w, 2, padding, align));
        const int64_t iy = toIndex(place(fy + static_cast<T>(j), e.h, 2, padding, align));
        if (!inside(ix, e.w) || !inside(iy, e.h)) continue;
        s.add(iy * e.w + ix, cubicSlope(tx) * cubicWeight(ty) * sx,
              cubicWeight(tx) * cubicSlope(ty) * sy, T(0));
      }
    }
    return s;
  }
  const T x = sourceIndex(grid[0], e.w, spatial, padding, align);
  const T y = sourceIndex(grid[1], e.h, spatial, padding, align);
  const T z = spatial == 3 ? sourceIndex(grid[2], e.d, spatial, padding, align) : T(0);
  const T sx = sourceSlope(grid[0], e.w, spatial, padding, align);
  const T sy = sourceSlope(grid[1], e.h, spatial, padding, align);
  const T sz = spatial == 3 ? sourceSlope(grid[2], e.d, spatial, padding, align) : T(0);
  const T fx = std::floor(x), fy = std::floor(y), fz = std::floor(z);
  for (int64_t corner = 0; corner < (spatial == 3 ? 8 : 4); ++corner) {
    const int64_t cx = corner & 1, cy = corner >> 1 & 1, cz = corner >> 2;
    const int64_t ix = toIndex(fx) + cx, iy = toIndex(fy) + cy, iz = toIndex(fz) + cz;
    if (!inside(ix, e.w) || !inside(iy, e.h) || !inside(iz, e.d)) continue;
    const T wx = cx ? x - fx : 1 - (x - fx), wy = cy ? y - fy : 1 - (y - fy);
    const T wz = spatial == 2 ? T(1) : cz ? z - fz : 1 - (z - fz);
    s.add((iz * e.h + iy) * e.w + ix, (cx ? sx : -sx) * wy * wz, (cy ? sy : -sy) * wx * wz,
          (cz ? sz : -sz) * wx * wy);
  }
  return s;
}

int64_t pointsOf(const char* op, const Tensor& grad, const Tensor& grid, IntSpan input) {
  DimVector expected{input[0], input[1]};
  for (int64_t d = 1; d + 1 < grid.dim(); ++d) expected.push_back(grid.size(d));
  WICK_CHECK(std::ranges::equal(grad.sizes(), expected),
             "{}: expected a gradient of sizes {}, got {}", op, formatInts(expected),
             grad.describe());
  return checkedNumel(IntSpan(expected).subspan(2));
}

// The gradient for an input of `sizes`.
Tensor gridSamplerInputGradient(const Tensor& grad, const DimVector& sizes, const Tensor& grid,
                                int64_t interpolation, int64_t padding, bool align) {
  const char* op = "grid_sampler_input_gradient";
  const int64_t spatial = sizes.size() == 5 ? 3 : 2;
  Tensor out = Tensor::zeros(sizes, widened(grad).dtype());
  checkGrid(op, out.to(grid.dtype()), grid, interpolation, padding, spatial);
  const int64_t points = pointsOf(op, grad, grid, sizes), channels = sizes[1];
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
          const Sample<T> s = sampleAt(at.data<T>() + (n * points + p) * spatial, spatial, e,
                                       interpolation, padding, align);
          for (int64_t plane = first; plane < last; ++plane) {
            const T value = g.data<T>()[plane * points + p];
            T* to = out.data<T>() + plane * pixels;
            for (int64_t k = 0; k < s.count; ++k) to[s.index[k]] += value * s.weight[k];
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
  checkGrid(op, input, grid, interpolation, padding, spatial);
  const int64_t points = pointsOf(op, grad, grid, input.sizes()), channels = input.size(1);
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

// Base coordinates in [-1, 1], homogeneous, times the transposed affine matrices.
Tensor affineGridGenerator(const Tensor& theta, const DimVector& size, bool align) {
  const char* op = "affine_grid_generator";
  WICK_CHECK(size.size() == 4 || size.size() == 5,
             "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  WICK_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == spatial &&
                 theta.size(2) == spatial + 1,
             "{}: Expected a batch of {}x{} affine matrices of shape {}x{}x{}, but got {}", op,
             spatial, spatial + 1, size[0], spatial, spatial + 1, formatInts(theta.sizes()));
  DimVector shape(size.begin() + 2, size.end());
  int64_t points = checkedNumel(shape);
  Tensor base = Tensor::empty(DimVector{1, points, spatial + 1}, DType::Double);
  parallelFor(points, kGrainSize / 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t rest = p;
      double* row = base.data<double>() + p * (spatial + 1);
      for (int64_t d = spatial; d-- > 0;) {
        int64_t n = shape[static_cast<size_t>(d)], i = rest % n;
        rest /= n;
        double at = n > 1 ? -1 + 2.0 * static_cast<double>(i) / static_cast<double>(n - 1) : 0;
        if (!align && n > 1) at *= static_cast<double>(n - 1) / static_cast<double>(n);
        row[spatial - 1 - d] = at;  // x, the last dimension, comes first
      }
      row[spatial] = 1;
    }
  });
  Tensor grid = matmul(base.to(theta.dtype()), theta.transpose(1, 2));
  DimVector sizes{size[0]};
  for (int64_t s : shape) sizes.push_back(s);
  sizes.push_back(spatial);
  return grid.view(sizes);
}

struct Patches {
  int64_t kernel[2], dilation[2], padding[2], stride[2], image[2], steps[2];
};

Patches patchesOf(const char* op, IntSpan image, const DimVector& kernel, const DimVector& dilation,
                  const DimVector& padding, const DimVector& stride) {
  Patches p;
  DimVector k = expandInts(op, "kernel_size", kernel, 2),
            dil = expandInts(op, "dilation", dilation, 2);
  DimVector pad = expandInts(op, "padding", padding, 2), s = expandInts(op, "stride", stride, 2);
  constexpr int64_t kLargest = int64_t{1} << 30;
  for (size_t d = 0; d < 2; ++d) {
    WICK_CHECK(k[d] > 0 && dil[d] > 0 && s[d] > 0 && pad[d] >= 0,
               "{}: kernel size, dilation and stride should be greater than zero and padding not "
               "negative",
               op);
    WICK_CHECK(image[d] >= 0 && std::max({k[d], dil[d], s[d], pad[d], image[d]}) < kLargest,
               "{}: a size is out of range", op);
    p.kernel[d] = k[d];
    p.dilation[d] = dil[d];
    p.padding[d] = pad[d];
    p.stride[d] = s[d];
    p.image[d] = image[d];
    int64_t room = image[d] + 2 * pad[d] - dil[d] * (k[d] - 1) - 1;
    p.steps[d] = room < 0 ? 0 : room / s[d] + 1;
    WICK_CHECK(p.steps[d] > 0,
               "{}: Given input with spatial size {}, the array of sliding blocks "
               "has no elements along dimension {}",
               op, formatInts(image), d);
  }
  return p;
}

// Calls visit(pixel or -1 in the padding, column element) for one channel.
template <class Visit>
void forEachPatch(const Patches& p, Visit&& visit) {
  int64_t column = 0;
  Pace pace;
  for (int64_t kh = 0; kh < p.kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < p.kernel[1]; ++kw) {
      pace.step();
      for (int64_t oh = 0; oh < p.steps[0]; ++oh) {
        pace.step(p.steps[1]);
        int64_t h = oh * p.stride[0] - p.padding[0] + kh * p.dilation[0];
        for (int64_t ow = 0; ow < p.steps[1]; ++ow, ++column) {
          int64_t w = ow * p.stride[1] - p.padding[1] + kw * p.dilation[1];
          bool in = h >= 0 && h < p.image[0] && w >= 0 && w < p.image[1];
          visit(in ? h * p.image[1] + w : -1, column);
        }
      }
    }
  }
}

Tensor im2col(const Tensor& self, const DimVector& kernel, const DimVector& dilation,
              const DimVector& padding, const DimVector& stride) {
  const char* op = "im2col";
  WICK_CHECK(self.dim() == 3 || self.dim() == 4, "{}: Expected 3D or 4D input tensor, got {}", op,
             formatInts(self.sizes()));
  Patches p = patchesOf(op, self.sizes().last(2), kernel, dilation, padding, stride);
  int64_t channels = self.size(-3), samples = self.dim() == 4 ? self.size(0) : 1;
  int64_t area = p.kernel[0] * p.kernel[1], steps = p.steps[0] * p.steps[1];
  Tensor x = self.contiguous();
  Tensor out = Tensor::empty(DimVector{samples, checkedNumel(DimVector{channels, area}), steps},
                             self.dtype());
  dispatchAll(self.dtype(), [&]<class T>() {
    parallelFor(samples * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* from = x.data<T>() + plane * p.image[0] * p.image[1];
        T* to = out.data<T>() + plane * area * steps;
        forEachPatch(p, [&](int64_t i, int64_t c) { to[c] = i < 0 ? T(0) : from[i]; });
      }
    });
  });
  return self.dim() == 3 ? out.squeeze(0) : out;
}

Tensor col2im(const Tensor& self, const DimVector& output_size, const DimVector& kernel,
              const DimVector& dilation, const DimVector& padding, const DimVector& stride) {
  const char* op = "col2im";
  WICK_CHECK(self.dim() == 2 || self.dim() == 3, "{}: Expected 2D or 3D input tensor, got {}", op,
             formatInts(self.sizes()));
  DimVector image = expandInts(op, "output_size", output_size, 2);
  Patches p = patchesOf(op, image, kernel, dilation, padding, stride);
  int64_t area = checkedNumel(DimVector{p.kernel[0], p.kernel[1]});
  int64_t steps = checkedNumel(DimVector{p.steps[0], p.steps[1]});
  WICK_CHECK(self.size(-2) % area == 0 && self.size(-1) == steps,
             "{}: Expected {} columns and a multiple of {} rows, got {}", op, steps, area,
             formatInts(self.sizes()));
  int64_t channels = self.size(-2) / area, samples = self.dim() == 3 ? self.size(0) : 1;
  Tensor x = self.contiguous();
  Tensor out = Tensor::zeros(DimVector{samples, channels, image[0], image[1]}, self.dtype());
  dispatch<kAnyDType & ~kBool>(op, self.dtype(), [&]<class T>() {
    parallelFor(samples * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* from = x.data<T>() + plane * area * steps;
        T* to = out.data<T>() + plane * p.image[0] * p.image[1];
        forEachPatch(p, [&](int64_t i, int64_t c) {
          if (i >= 0) to[i] = wrappedSum(to[i], from[c]);
        });
      }
    });
  });
  return self.dim() == 2 ? out.squeeze(0) : out;
}

#define WICK_GRID_ARGS                                                                            \
  "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> " \
  "Tensor"

constexpr OperatorRecord kRecords[] = {
    {"aten::grid_sampler" WICK_GRID_ARGS, WICK_KERNEL(gridSampler)},
    {"aten::grid_sampler_2d" WICK_GRID_ARGS, WICK_KERNEL(gridSampler2d), kOutForm},
    {"aten::grid_sampler_3d" WICK_GRID_ARGS, WICK_KERNEL(gridSampler3d), kOutForm},
    {"aten::_grid_sampler_2d_cpu_fallback" WICK_GRID_ARGS, WICK_KERNEL(gridSampler2d)},
    {"wick::grid_sampler_input_gradient(Tensor grad_output, int[] input_size, Tensor grid, int "
     "interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     WICK_KERNEL(gridSamplerInputGradient)},
    {"wick::grid_sampler_grid_gradient(Tensor grad_output, Tensor input, Tensor grid, int "
     "interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
     WICK_KERNEL(gridSamplerGridGradient)},
    {"aten::affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
     WICK_KERNEL(affineGridGenerator)},
    {"aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] "
     "stride) -> Tensor",
     WICK_KERNEL(im2col), kOutForm},
    {"aten::col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
     "padding, int[2] stride) -> Tensor",
     WICK_KERNEL(col2im), kOutForm},
};

const RegisterOperators kRegistered(kRecords);

}  // namespace
}  // namespace wick
