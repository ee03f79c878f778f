#include "runtime/kernels/pooling.h"

#include <limits>

#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"

namespace wick::pooling {

namespace {

// x [N, C, spatial…] as batches of planes, or of pixels that hold all channels.
struct Layout {
  Tensor x;
  Tensor out;
  int64_t samples, channels, in_pixels, out_pixels;
  bool last;
};

MemoryFormat formatOf(const Tensor& input) {
  return input.dim() >= 4 ? input.suggestMemoryFormat() : MemoryFormat::Contiguous;
}

Layout layoutOf(const Tensor& input, const Axes& axes, MemoryFormat format) {
  Layout l;
  l.x = input.contiguous(format);
  l.last = format != MemoryFormat::Contiguous;
  DimVector sizes{input.size(0), input.size(1)};
  for (int64_t d = 2; d < input.dim(); ++d) {
    sizes.push_back(axes[static_cast<size_t>(3 - input.dim() + d)].size());
  }
  l.out = Tensor::empty(sizes, input.dtype(), input.device(), format);
  l.samples = sizes[0];
  l.channels = sizes[1];
  l.in_pixels = l.out_pixels = 1;
  for (const Axis& a : axes) {
    l.in_pixels *= a.input;
    l.out_pixels *= a.size();
  }
  return l;
}

// Calls visit(pixel) for each input pixel of the window of output pixel (d, h, w).
template <class Visit>
void forEachInWindow(const Axes& a, int64_t d, int64_t h, int64_t w, Visit&& visit) {
  const auto &ad = a[0], &ah = a[1], &aw = a[2];
  for (int64_t i = ad.begin[d]; i < ad.end[d]; i += ad.step) {
    for (int64_t j = ah.begin[h]; j < ah.end[h]; j += ah.step) {
      int64_t row = (i * ah.input + j) * aw.input;
      for (int64_t k = aw.begin[w]; k < aw.end[w]; k += aw.step) visit(row + k);
    }
  }
}

struct Pixel {
  int64_t d, h, w;
};
Pixel pixelAt(const Axes& a, int64_t index) {
  int64_t w = a[2].size(), h = a[1].size();
  return {index / (h * w), index / w % h, index % w};
}

template <class T>
T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::min();
  } else {
    return -std::numeric_limits<T>::infinity();
  }
}

// A later element wins only when larger; a NaN always.
template <class T>
bool wins(T v, T best) {
  return v > best || v != v;
}

template <class T>
void maxPlanes(const Layout& l, const Axes& axes, int64_t* indices) {
  const T* x = l.x.data<T>();
  T* out = l.out.data<T>();
  parallelFor(l.samples * l.channels, std::max<int64_t>(1, kGrainSize / 4 / l.out_pixels),
              [&](int64_t begin, int64_t end) {
                for (int64_t plane = begin; plane < end; ++plane) {
                  const T* p = x + plane * l.in_pixels;
                  for (int64_t o = 0; o < l.out_pixels; ++o) {
                    Pixel at = pixelAt(axes, o);
                    T best = lowest<T>();
                    int64_t where = (axes[0].begin[at.d] * axes[1].input + axes[1].begin[at.h]) *
                                        axes[2].input +
                                    axes[2].begin[at.w];
                    forEachInWindow(axes, at.d, at.h, at.w, [&](int64_t i) {
                      if (wins(p[i], best)) {
                        best = p[i];
                        where = i;
                      }
                    });
                    out[plane * l.out_pixels + o] = best;
                    if (indices) indices[plane * l.out_pixels + o] = where;
                  }
                }
              });
}

template <class T>
void maxChannelsLast(const Layout& l, const Axes& axes, int64_t* indices) {
  const T* x = l.x.data<T>();
  T* out = l.out.data<T>();
  int64_t c_count = l.channels;
  parallelFor(
      l.samples * l.out_pixels, std::max<int64_t>(1, kGrainSize / 4 / c_count),
      [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          const T* sample = x + o / l.out_pixels * l.in_pixels * c_count;
          Pixel at = pixelAt(axes, o % l.out_pixels);
          T* best = out + o * c_count;
          int64_t* where = indices ? indices + o * c_count : nullptr;
          std::fill(best, best + c_count, lowest<T>());
          if (where) {
            std::fill(where, where + c_count,
                      (axes[0].begin[at.d] * axes[1].input + axes[1].begin[at.h]) * axes[2].input +
                          axes[2].begin[at.w]);
          }
          forEachInWindow(axes, at.d, at.h, at.w, [&](int64_t i) {
            const T* p = sample + i * c_count;
            if (where) {
              for (int64_t c = 0; c < c_count; ++c) {
                if (wins(p[c], best[c])) {
                  best[c] = p[c];
                  where[c] = i;
                }
              }
            } else {
              for (int64_t c = 0; c < c_count; ++c) {
                best[c] = (p[c] > best[c]) | (p[c] != p[c]) ? p[c] : best[c];
              }
            }
          });
        }
      });
}

// Division by -1 as negation: the smallest integer has no quotient there, and x86 would trap.
template <class T>
T quotient(T sum, T divisor) {
  if constexpr (std::is_integral_v<T>) {
    if (std::is_signed_v<T> && divisor == static_cast<T>(-1))
      return static_cast<T>(-static_cast<uint64_t>(sum));
  }
  return static_cast<T>(sum / divisor);
}

int64_t elementsRead(const Axes& axes, const Pixel& at) {
  auto count = [](const Axis& a, int64_t i) { return std::max<int64_t>(0, a.end[i] - a.begin[i]); };
  return count(axes[0], at.d) * count(axes[1], at.h) * count(axes[2], at.w);
}

int64_t divisorOf(const Axes& axes, const Pixel& at, bool count_padding,
                  std::optional<int64_t> divisor) {
  if (divisor) return *divisor;
  if (!count_padding) return elementsRead(axes, at);
  return axes[0].span[at.d] * axes[1].span[at.h] * axes[2].span[at.w];
}

}  // namespace

Axis slidingAxis(const char* op, int64_t input, int64_t kernel, int64_t stride, int64_t padding,
                 int64_t dilation, bool ceil_mode, int64_t least) {
  constexpr int64_t kLargest = int64_t{1} << 26;
  WICK_CHECK(kernel > 0, "{}: kernel size should be greater than zero, but got {}", op, kernel);
  WICK_CHECK(stride > 0, "{}: stride should be greater than zero, but got {}", op, stride);
  WICK_CHECK(dilation > 0, "{}: dilation should be greater than zero, but got {}", op, dilation);
  WICK_CHECK(padding >= 0 && padding <= kernel / 2,
             "{}: pad should be at most half of kernel size, but got pad={} and kernel_size={}", op,
             padding, kernel);
  WICK_CHECK(std::max({kernel, stride, dilation, input}) < kLargest, "{}: a size is out of range",
             op);
  int64_t extent = dilation * (kernel - 1) + 1;
  int64_t room = input + 2 * padding - extent + (ceil_mode ? stride - 1 : 0);
  int64_t count = room < 0 ? (room + 1) / stride : room / stride + 1;
  // A window may not start in the padding behind the last element.
  if (ceil_mode && count > 0 && (count - 1) * stride >= input + padding) --count;
  WICK_CHECK(count >= least,
             "{}: Given input size: {}. Calculated output size: {}. Output size is too "
             "small",
             op, input, count);
  Axis axis;
  axis.input = input;
  axis.step = dilation;
  for (int64_t i = 0; i < count; ++i) {
    int64_t first = i * stride - padding;
    int64_t last = first + extent;
    int64_t padded = std::min(last, input + padding);
    axis.span.push_back(padded - first);
    axis.end.push_back(std::min(last, input));
    if (first < 0) first += (-first + dilation - 1) / dilation * dilation;
    axis.begin.push_back(first);
  }
  return axis;
}

Axis adaptiveAxis(int64_t input, int64_t output) {
  Axis axis;
  axis.input = input;
  for (int64_t i = 0; i < output; ++i) {
    // floor(i * input / output) and ceil((i + 1) * input / output) without overflow.
    int64_t first = i / output * input + i % output * input / output;
    int64_t last = 1 + ((i + 1) * input - 1) / output;
    axis.begin.push_back(first);
    axis.end.push_back(last);
    axis.span.push_back(last - first);
  }
  return axis;
}

Axis unitAxis() {
  Axis axis;
  axis.begin = {0};
  axis.end = {1};
  axis.span = {1};
  return axis;
}

MaxResult maxPool(const char* op, const Tensor& x, const Axes& axes, bool want_indices) {
  MemoryFormat wanted = formatOf(x), format = wanted;
  // Neighbouring channels make vectors, neighbouring windows do not: with some channels it pays to
  // transpose there and back.
  constexpr int64_t kEnoughChannels = 8;
  if (wanted == MemoryFormat::Contiguous && x.dim() >= 4 && x.size(1) >= kEnoughChannels) {
    format = x.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
  }
  Layout l = layoutOf(x, axes, format);
  MaxResult result;
  if (want_indices) {
    result.indices = Tensor::emptyStrided(l.out.sizes(), l.out.strides(), DType::Long);
  }
  if (l.out.numel() > 0) {
    dispatch<kFloats | kIntegers>(op, x.dtype(), [&]<class T>() {
      int64_t* indices = want_indices ? result.indices.data<int64_t>() : nullptr;
      l.last ? maxChannelsLast<T>(l, axes, indices) : maxPlanes<T>(l, axes, indices);
    });
  }
  result.values = l.out.contiguous(wanted);
  if (want_indices) result.indices = result.indices.contiguous(wanted);
  return result;
}

Tensor averagePool(const char* op, const Tensor& x, const Axes& axes, bool count_padding,
                   std::optional<int64_t> divisor) {
  Layout l = layoutOf(x, axes, formatOf(x));
  if (l.out.numel() == 0) return l.out;
  dispatch<kFloats | kIntegers>(op, x.dtype(), [&]<class T>() {
    const T* from = l.x.data<T>();
    T* to = l.out.data<T>();
    int64_t width = l.last ? l.channels : 1;
    int64_t units = l.last ? l.samples : l.samples * l.channels;
    parallelFor(units * l.out_pixels, std::max<int64_t>(1, kGrainSize / 8 / width),
                [&](int64_t begin, int64_t end) {
                  for (int64_t o = begin; o < end; ++o) {
                    const T* unit = from + o / l.out_pixels * l.in_pixels * width;
                    Pixel at = pixelAt(axes, o % l.out_pixels);
                    T* sum = to + o * width;
                    std::fill(sum, sum + width, T(0));
                    if (elementsRead(axes, at) == 0) continue;
                    forEachInWindow(axes, at.d, at.h, at.w, [&](int64_t i) {
                      const T* p = unit + i * width;
                      for (int64_t c = 0; c < width; ++c) sum[c] = wrappedSum(sum[c], p[c]);
                    });
                    T d = static_cast<T>(divisorOf(axes, at, count_padding, divisor));
                    for (int64_t c = 0; c < width; ++c) sum[c] = quotient(sum[c], d);
                  }
                });
  });
  return l.out;
}

}  // namespace wick::pooling
