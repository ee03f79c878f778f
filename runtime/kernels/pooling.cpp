#include "runtime/kernels/pooling.h"

#include <limits>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"
#include "runtime/kernels/device_layers.h"

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

// How many elements the largest window has.
int64_t largestWindow(const Axes& axes) {
  int64_t elements = 1;
  for (const Axis& axis : axes) {
    int64_t length = 0;
    for (size_t i = 0; i < axis.begin.size(); ++i) {
      length = std::max<int64_t>(length, axis.end[i] - axis.begin[i]);
    }
    elements *= length;
  }
  return elements;
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
  const int64_t window = largestWindow(axes);
  parallelFor(l.samples * l.channels, std::max<int64_t>(1, kGrainSize / 4 / l.out_pixels),
              [&](int64_t begin, int64_t end) {
                Pace pace;
                for (int64_t plane = begin; plane < end; ++plane) {
                  const T* p = x + plane * l.in_pixels;
                  for (int64_t o = 0; o < l.out_pixels; ++o) {
                    Pixel at = pixelAt(axes, o);
                    pace.step(1 + window);
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

// The largest elements of one window and where they are, for all channels. `Index` has the width
// of an element where that reaches, so that both fit the same vectors.
template <class T, class Index>
void maxOfWindow(const T* sample, const Axes& axes, const Pixel& at, int64_t c_count, T* best,
                 Index* where) {
  std::fill(best, best + c_count, lowest<T>());
  std::fill(where, where + c_count,
            static_cast<Index>((axes[0].begin[at.d] * axes[1].input + axes[1].begin[at.h]) *
                                   axes[2].input +
                               axes[2].begin[at.w]));
  forEachInWindow(axes, at.d, at.h, at.w, [&](int64_t i) {
    const T* const p = sample + i * c_count;
    const auto index = static_cast<Index>(i);
    for (int64_t c = 0; c < c_count; ++c) {
      const bool later = (p[c] > best[c]) | (p[c] != p[c]);
      best[c] = later ? p[c] : best[c];
      where[c] = later ? index : where[c];
    }
  });
}

template <class T>
void maxChannelsLast(const Layout& l, const Axes& axes, int64_t* indices) {
  const T* x = l.x.data<T>();
  T* out = l.out.data<T>();
  const int64_t window = largestWindow(axes);
  int64_t c_count = l.channels;
  const bool narrow = l.in_pixels <= std::numeric_limits<int32_t>::max();
  parallelFor(l.samples * l.out_pixels, std::max<int64_t>(1, kGrainSize / 4 / c_count),
              [&](int64_t begin, int64_t end) {
                CountedVector<int32_t> places(indices && narrow ? static_cast<size_t>(c_count) : 0);
                Pace pace;
                for (int64_t o = begin; o < end; ++o) {
                  const T* sample = x + o / l.out_pixels * l.in_pixels * c_count;
                  Pixel at = pixelAt(axes, o % l.out_pixels);
                  pace.step(c_count + (c_count + 7) / 8 * window);
                  T* best = out + o * c_count;
                  if (indices && narrow) {
                    maxOfWindow(sample, axes, at, c_count, best, places.data());
                    std::copy(places.begin(), places.end(), indices + o * c_count);
                    continue;
                  }
                  if (indices) {
                    maxOfWindow(sample, axes, at, c_count, best, indices + o * c_count);
                    continue;
                  }
                  std::fill(best, best + c_count, lowest<T>());
                  forEachInWindow(axes, at.d, at.h, at.w, [&](int64_t i) {
                    const T* p = sample + i * c_count;
                    for (int64_t c = 0; c < c_count; ++c) {
                      best[c] = (p[c] > best[c]) | (p[c] != p[c]) ? p[c] : best[c];
                    }
                  });
                }
              });
}

// Of integers the quotient of 64 bits: narrower ones may have no number for the divisor. Division by -1
// as negation: the smallest integer has no quotient there, and x86 would trap.
template <class T>
T quotient(T sum, int64_t divisor) {
  if constexpr (std::is_integral_v<T>) {
    if (divisor == -1) return static_cast<T>(-static_cast<uint64_t>(sum));
    return static_cast<T>(static_cast<int64_t>(sum) / divisor);
  } else {
    return static_cast<T>(sum / static_cast<T>(divisor));
  }
}

int64_t elementsRead(const Axis& a, int64_t i) {
  return std::max<int64_t>(0, a.end[i] - a.begin[i]);
}

// What the sum of a window is divided by.
struct Divisor {
  bool count_padding;
  std::optional<int64_t> fixed;

  int64_t at(const Axes& axes, const Pixel& p) const {
    if (fixed) return *fixed;
    if (count_padding) return axes[0].span[p.d] * axes[1].span[p.h] * axes[2].span[p.w];
    return elementsRead(axes[0], p.d) * elementsRead(axes[1], p.h) * elementsRead(axes[2], p.w);
  }
};

template <class T>
void averageChannelsLast(const Layout& l, const Axes& axes, const Divisor& divide) {
  const int64_t window = largestWindow(axes), width = l.channels;
  const T* from = l.x.data<T>();
  T* to = l.out.data<T>();
  parallelFor(l.samples * l.out_pixels, std::max<int64_t>(1, kGrainSize / 8 / width),
              [&](int64_t begin, int64_t end) {
                Pace pace;
                for (int64_t o = begin; o < end; ++o) {
                  const T* sample = from + o / l.out_pixels * l.in_pixels * width;
                  const Pixel at = pixelAt(axes, o % l.out_pixels);
                  pace.step(width + (width + 7) / 8 * window);
                  T* sum = to + o * width;
                  std::fill(sum, sum + width, T(0));
                  bool any = false;
                  forEachInWindow(axes, at.d, at.h, at.w, [&](int64_t i) {
                    const T* p = sample + i * width;
                    for (int64_t c = 0; c < width; ++c) sum[c] = wrappedSum(sum[c], p[c]);
                    any = true;
                  });
                  if (!any) continue;
                  const int64_t d = divide.at(axes, at);
                  for (int64_t c = 0; c < width; ++c) sum[c] = quotient(sum[c], d);
                }
              });
}

// The windows [begin, end) of an axis, the longest such range, each of which is its neighbour moved
// by one element.
struct Run {
  int64_t begin = 0, end = 0;
};
Run longestRun(const Axis& a) {
  Run best, now;
  for (int64_t i = 0; i < a.size(); ++i) {
    const bool follows = i > 0 && a.begin[i] == a.begin[i - 1] + 1 &&
                         a.end[i] == a.end[i - 1] + 1 && a.span[i] == a.span[i - 1];
    if (!follows) now.begin = i;
    now.end = i + 1;
    if (now.end - now.begin > best.end - best.begin) best = now;
  }
  return best;
}

// Long rows are summed in eight parts.
template <class T>
T sumOf(const T* p, int64_t n) {
  constexpr int64_t kParts = 8;
  T parts[kParts] = {};
  int64_t i = 0;
  if (n >= 2 * kParts) {
    for (; i + kParts <= n; i += kParts) {
      for (int64_t k = 0; k < kParts; ++k) parts[k] = wrappedSum(parts[k], p[i + k]);
    }
  }
  T sum = T(0);
  for (T part : parts) sum = wrappedSum(sum, part);
  for (; i < n; ++i) sum = wrappedSum(sum, p[i]);
  return sum;
}

// One row of results of one plane, in vectors of neighbouring windows where these move by one
// element; elsewhere the window's rows are added up first, which the windows of the row share.
template <class T>
class AverageRow {
 public:
  AverageRow(const Axes& axes, const Divisor& divide)
      : axes_(axes), divide_(divide), run_(longestRun(axes[2])) {
    constexpr int64_t kVector = 8;
    const Axis& a = axes[2];
    if (run_.end - run_.begin < kVector) run_ = {};
    int64_t read = 0;
    lowest_ = a.input;
    for (int64_t i = 0; i < a.size(); ++i) {
      if (i >= run_.begin && i < run_.end) continue;
      read += elementsRead(a, i);
      lowest_ = std::min(lowest_, a.begin[i]);
      highest_ = std::max(highest_, a.end[i]);
    }
    highest_ = std::max(highest_, lowest_);
    // Windows far apart leave too much between them unread.
    shares_rows_ = run_.end == 0 && a.step == 1 && read * 4 >= highest_ - lowest_;
    if (shares_rows_) sums_ = CountedVector<T>(static_cast<size_t>(a.input));
  }

  void compute(const T* plane, int64_t d, int64_t h, T* out) {
    const int64_t n = axes_[2].size();
    std::fill(out, out + n, T(0));
    if (elementsRead(axes_[0], d) == 0 || elementsRead(axes_[1], h) == 0) return;
    if (shares_rows_) return computeShared(plane, d, h, out);
    computeRun(plane, d, h, out + run_.begin);
    for (int64_t w = 0; w < run_.begin; ++w) computeOne(plane, {d, h, w}, out[w]);
    for (int64_t w = run_.end; w < n; ++w) computeOne(plane, {d, h, w}, out[w]);
  }

 private:
  // Vectors of eight elements are about one step of `pace_`: a row of windows may be far too much work between
  // two looks at the time.
  static constexpr int64_t kElementsAStep = 8;

  template <class Visit>
  void forEachRow(const T* plane, int64_t d, int64_t h, Visit&& visit) {
    const Axis &ad = axes_[0], &ah = axes_[1];
    for (int64_t i = ad.begin[d]; i < ad.end[d]; i += ad.step) {
      for (int64_t j = ah.begin[h]; j < ah.end[h]; j += ah.step) {
        visit(plane + (i * ah.input + j) * axes_[2].input);
      }
    }
  }

  void computeRun(const T* plane, int64_t d, int64_t h, T* out) {
    const Axis& a = axes_[2];
    const int64_t n = run_.end - run_.begin;
    if (n == 0 || elementsRead(a, run_.begin) == 0) return;
    forEachRow(plane, d, h, [&](const T* row) {
      for (int64_t k = a.begin[run_.begin]; k < a.end[run_.begin]; k += a.step) {
        pace_.step(1 + n / kElementsAStep);
        for (int64_t i = 0; i < n; ++i) out[i] = wrappedSum(out[i], row[k + i]);
      }
    });
    const int64_t divisor = divide_.at(axes_, {d, h, run_.begin});
    for (int64_t i = 0; i < n; ++i) out[i] = quotient(out[i], divisor);
  }

  void computeShared(const T* plane, int64_t d, int64_t h, T* out) {
    const Axis& a = axes_[2];
    std::fill(sums_.begin() + lowest_, sums_.begin() + highest_, T(0));
    forEachRow(plane, d, h, [&](const T* row) {
      pace_.step(1 + (highest_ - lowest_) / kElementsAStep);
      T* const sums = sums_.data();
      for (int64_t i = lowest_; i < highest_; ++i) sums[i] = wrappedSum(sums[i], row[i]);
    });
    for (int64_t w = 0; w < a.size(); ++w) {
      const int64_t read = elementsRead(a, w);
      if (read == 0) continue;
      pace_.step(1 + read / kElementsAStep);
      out[w] = quotient(sumOf(sums_.data() + a.begin[w], read), divide_.at(axes_, {d, h, w}));
    }
  }

  void computeOne(const T* plane, const Pixel& at, T& out) {
    const Axis& a = axes_[2];
    if (elementsRead(a, at.w) == 0) return;
    T sum = T(0);
    forEachRow(plane, at.d, at.h, [&](const T* row) {
      pace_.step(1 + elementsRead(a, at.w));
      for (int64_t k = a.begin[at.w]; k < a.end[at.w]; k += a.step) sum = wrappedSum(sum, row[k]);
    });
    out = quotient(sum, divide_.at(axes_, at));
  }

  const Axes& axes_;
  Divisor divide_;
  Run run_;
  // What the windows outside of the run read.
  int64_t lowest_ = 0, highest_ = 0;
  bool shares_rows_ = false;
  CountedVector<T> sums_;
  Pace pace_;
};

template <class T>
void averagePlanes(const Layout& l, const Axes& axes, const Divisor& divide) {
  const T* from = l.x.data<T>();
  T* to = l.out.data<T>();
  const int64_t depth = axes[0].size(), height = axes[1].size(), width = axes[2].size();
  const int64_t work = std::max<int64_t>(1, largestWindow(axes) * width / 8);
  parallelFor(l.samples * l.channels * depth * height, std::max<int64_t>(1, kGrainSize / 4 / work),
              [&](int64_t begin, int64_t end) {
                AverageRow<T> row(axes, divide);
                for (int64_t o = begin; o < end; ++o) {
                  const int64_t h = o % height, d = o / height % depth;
                  row.compute(from + o / height / depth * l.in_pixels, d, h, to + o * width);
                }
              });
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
    // floor(i * input / output) and ceil((i + 1) * input / output).
    using Wide = __int128;
    const auto first = static_cast<int64_t>(Wide{i} * input / output);
    const auto last = static_cast<int64_t>(1 + (Wide{i} * input + input - 1) / output);
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
  if (!x.device().isCpu()) return deviceLayers(op, x.device()).maxPool(op, x, axes, want_indices);
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
  if (!x.device().isCpu()) {
    return deviceLayers(op, x.device()).averagePool(op, x, axes, count_padding, divisor);
  }
  Layout l = layoutOf(x, axes, formatOf(x));
  if (l.out.numel() == 0) return l.out;
  const Divisor divide{count_padding, divisor};
  dispatch<kFloats | kIntegers>(op, x.dtype(), [&]<class T>() {
    l.last ? averageChannelsLast<T>(l, axes, divide) : averagePlanes<T>(l, axes, divide);
  });
  return l.out;
}

}  // namespace wick::pooling
