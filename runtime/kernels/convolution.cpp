// Which convolution runs where, and the one for the dtypes that oneDNN does not compute here:
// columns of input patches (im2col) times the weight as a matrix; transposed convolution is the
// same two steps backwards (the product, then the patches summed into place).
#include "runtime/kernels/convolution.h"

#include <mutex>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"
#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/kernels/gemm.h"

namespace wick {

namespace {

constexpr int64_t kSpatial = 3;

// Everything as three-dimensional: missing dimensions have size 1.
struct Geometry {
  int64_t channels;  // of one group, on the side of the patches
  int64_t image[kSpatial], kernel[kSpatial], steps[kSpatial];  // steps: positions of the kernel
  int64_t stride[kSpatial], padding[kSpatial], dilation[kSpatial];
  int64_t positions() const { return steps[0] * steps[1] * steps[2]; }
  int64_t patch() const { return channels * kernel[0] * kernel[1] * kernel[2]; }
  int64_t pixels() const { return image[0] * image[1] * image[2]; }
};

// Calls visit(pixel index in the image, index in the columns) for every element of every patch that
// lies inside the image. The columns are [patch, positions].
template <class Visit>
void forEachPatchElement(const Geometry& g, Visit&& visit) {
  int64_t positions = g.positions();
  int64_t row = 0;
  Pace pace;
  for (int64_t c = 0; c < g.channels; ++c) {
    for (int64_t kd = 0; kd < g.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < g.kernel[1]; ++kh) {
        for (int64_t kw = 0; kw < g.kernel[2]; ++kw, ++row) {
          int64_t column = row * positions;
          for (int64_t od = 0; od < g.steps[0]; ++od) {
            int64_t d = od * g.stride[0] - g.padding[0] + kd * g.dilation[0];
            for (int64_t oh = 0; oh < g.steps[1]; ++oh, column += g.steps[2]) {
              pace.step(g.steps[2]);
              int64_t h = oh * g.stride[1] - g.padding[1] + kh * g.dilation[1];
              if (d < 0 || d >= g.image[0] || h < 0 || h >= g.image[1]) continue;
              int64_t base = ((c * g.image[0] + d) * g.image[1] + h) * g.image[2];
              for (int64_t ow = 0; ow < g.steps[2]; ++ow) {
                int64_t w = ow * g.stride[2] - g.padding[2] + kw * g.dilation[2];
                if (w >= 0 && w < g.image[2]) visit(base + w, column + ow);
              }
            }
          }
        }
      }
    }
  }
}

Geometry geometryOf(const ConvolutionParams& p, IntSpan image, IntSpan steps, IntSpan kernel,
                    int64_t channels) {
  Geometry g;
  g.channels = channels;
  int64_t missing = kSpatial - static_cast<int64_t>(p.stride.size());
  for (int64_t i = 0; i < kSpatial; ++i) {
    size_t d = static_cast<size_t>(i - missing);
    bool there = i >= missing;
    g.image[i] = there ? image[2 + d] : 1;
    g.steps[i] = there ? steps[2 + d] : 1;
    g.kernel[i] = there ? kernel[2 + d] : 1;
    g.stride[i] = there ? p.stride[d] : 1;
    g.padding[i] = there ? p.padding[d] : 0;
    g.dilation[i] = there ? p.dilation[d] : 1;
  }
  return g;
}

template <class T>
Tensor convolveByColumns(const char* op, const Tensor& x, const Tensor& weight,
                         const ConvolutionParams& p, IntSpan output_size) {
  Tensor out = Tensor::zeros(output_size, x.dtype());
  int64_t groups = p.groups, in_c = x.size(1) / groups, out_c = output_size[1] / groups;
  Geometry g = p.transposed ? geometryOf(p, output_size, x.sizes(), weight.sizes(), out_c)
                            : geometryOf(p, x.sizes(), output_size, weight.sizes(), in_c);
  int64_t positions = g.positions(), pixels = g.pixels();
  Tensor columns = Tensor::zeros(DimVector{1, g.patch(), positions}, x.dtype());
  for (int64_t n = 0; n < x.size(0); ++n) {
    for (int64_t group = 0; group < groups; ++group) {
      const T* image =
          x.data<T>() + (n * groups + group) * in_c * (p.transposed ? positions : pixels);
      T* result =
          out.data<T>() + (n * groups + group) * out_c * (p.transposed ? pixels : positions);
      if (p.transposed) {
        Tensor w = weight.narrow(0, group * in_c, in_c).reshape(DimVector{1, in_c, g.patch()});
        Tensor rows = x.select(0, n).narrow(0, group * in_c, in_c).reshape({1, in_c, positions});
        Tensor product = batchedProduct(op, w.transpose(1, 2), rows);
        const T* from = product.data<T>();
        forEachPatchElement(g, [&](int64_t pixel, int64_t column) {
          result[pixel] = static_cast<T>(result[pixel] + from[column]);
        });
      } else {
        T* to = columns.data<T>();
        forEachPatchElement(g, [&](int64_t pixel, int64_t column) { to[column] = image[pixel]; });
        Tensor w = weight.narrow(0, group * out_c, out_c).reshape(DimVector{1, out_c, g.patch()});
        Tensor product = batchedProduct(op, w, columns);
        std::copy_n(product.data<T>(), out_c * positions, result);
      }
    }
  }
  return out;
}

// out = activation(out + bias + residual), in place; `out` is row-major.
template <class T>
void finish(const Tensor& out, const Tensor& bias, const Tensor& residual, Activation activation) {
  if (!bias.defined() && !residual.defined() && activation == Activation::None) return;
  int64_t pixels = 1;
  for (int64_t d = 2; d < out.dim(); ++d) pixels *= out.size(d);
  const Tensor b = bias.defined() ? bias.contiguous() : bias;
  const Tensor r = residual.defined() ? residual.contiguous() : residual;
  const int64_t channels = out.size(1);
  parallelFor(out.size(0) * channels, std::max<int64_t>(1, kGrainSize / pixels),
              [&](int64_t begin, int64_t end) {
                for (int64_t plane = begin; plane < end; ++plane) {
                  T* const o = out.data<T>() + plane * pixels;
                  if (b.defined()) {
                    const T addend = b.data<T>()[plane % channels];
                    for (int64_t i = 0; i < pixels; ++i) o[i] = wrappedSum(o[i], addend);
                  }
                  if (r.defined()) {
                    const T* const addends = r.data<T>() + plane * pixels;
                    for (int64_t i = 0; i < pixels; ++i) o[i] = wrappedSum(o[i], addends[i]);
                  }
                  if constexpr (std::is_floating_point_v<T>) activate(activation, o, pixels);
                }
              });
}

// Whether a convolution is products of the weight with row-major images as they lie. The library
// would have the channels innermost, and with few channels turning them takes longer than the
// products.
bool isProductOfImages(const Tensor& input, const Tensor& weight, const ConvolutionParams& p) {
  constexpr int64_t kMostChannels = 64, kFewestPixels = 4096;
  if (input.dtype() != DType::Float || p.transposed || p.groups != 1 || !input.isContiguous() ||
      weight.size(0) > kMostChannels || weight.size(1) > kMostChannels) {
    return false;
  }
  int64_t pixels = 1;
  for (size_t d = 0; d < p.stride.size(); ++d) {
    if (weight.size(2 + d) != 1 || p.stride[d] != 1) return false;
    if (p.padding[d] != 0 || p.padding_after[d] != 0) return false;
    pixels *= input.size(2 + d);
  }
  return pixels >= kFewestPixels;
}

Tensor multiplyImages(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                      const Tensor& residual, Activation activation, IntSpan output_size) {
  const int64_t out_c = weight.size(0), in_c = weight.size(1);
  const int64_t pixels = input.numel() / (input.size(0) * in_c);
  const Tensor product = batchedProduct(op, weight.reshape(DimVector{1, out_c, in_c}),
                                        input.view(DimVector{input.size(0), in_c, pixels}));
  const Tensor out = product.view(output_size);
  finish<float>(out, bias, residual, activation);
  return out;
}

// Whether a convolution of reduced floats rounds each product and each sum of the patches to its
// dtype, as PyTorch's does where oneDNN has no transposed convolution: with an output padding that
// reaches beyond a step.
bool roundsSums(DType dtype, const ConvolutionParams& p, const Tensor& residual,
                Activation activation) {
  if (!isReducedFloat(dtype) || !p.transposed || residual.defined()) return false;
  if (activation != Activation::None) return false;
  for (size_t d = 0; d < p.stride.size(); ++d) {
    if (p.output_padding[d] >= p.stride[d]) return true;
  }
  return false;
}

bool isChannelsLast(const Tensor& t) {
  MemoryFormat f = t.suggestMemoryFormat();
  return f == MemoryFormat::ChannelsLast || f == MemoryFormat::ChannelsLast3d;
}

// oneDNN takes padding_after = padding - output_padding, and that only above -stride.
bool isLibraryWork(const Tensor& input, const ConvolutionParams& params) {
  bool by_library = onednn::computes(input.dtype()) && input.numel() > 0;
  for (size_t d = 0; params.transposed && d < params.stride.size(); ++d) {
    by_library &= params.padding[d] - params.output_padding[d] + params.stride[d] > 0;
  }
  return by_library;
}

}  // namespace

ConvolutionWay convolutionWay(const Tensor& input, const Tensor& weight,
                              const ConvolutionParams& params, IntSpan output_size,
                              bool channels_last) {
  if (!isLibraryWork(input, params)) return ConvolutionWay::Columns;
  if (channels_last) return ConvolutionWay::Library;
  if (isProductOfImages(input, weight, params)) return ConvolutionWay::Images;
  if (depthwise::takes(input, weight, params, output_size)) return ConvolutionWay::Planes;
  return ConvolutionWay::Library;
}

// Transposed convolutions answer row-major, as PyTorch's do.
bool convolvesChannelsLast(const Tensor& input, const Tensor& weight,
                           const ConvolutionParams& params) {
  return params.transposed ? params.keeps_layout && isChannelsLast(input)
                           : isChannelsLast(input) || isChannelsLast(weight);
}

DimVector convolutionOutputSize(const char* op, const Tensor& input, const Tensor& weight,
                                const Tensor& bias, const ConvolutionParams& p) {
  size_t spatial = p.stride.size();
  WICK_CHECK(weight.dim() == static_cast<int64_t>(spatial) + 2,
             "{}: expected a {}-dimensional weight, got shape {}", op, spatial + 2,
             formatInts(weight.sizes()));
  WICK_CHECK(input.dim() == weight.dim(), "{}: expected {}-dimensional input for weight {}, got {}",
             op, weight.dim(), formatInts(weight.sizes()), formatInts(input.sizes()));
  WICK_CHECK(p.groups > 0, "{}: non-positive groups is not supported", op);
  int64_t of_all_groups = 0;
  WICK_CHECK(!__builtin_mul_overflow(weight.size(1), p.groups, &of_all_groups),
             "{}: groups={} are too many for weight of size {}", op, p.groups,
             formatInts(weight.sizes()));
  int64_t expected = p.transposed ? weight.size(0) : of_all_groups;
  WICK_CHECK(
      input.size(1) == expected,
      "{}: given groups={}, weight of size {}, expected input{} to have {} channels, but got "
      "{} channels instead",
      op, p.groups, formatInts(weight.sizes()), formatInts(input.sizes()), expected, input.size(1));
  WICK_CHECK(weight.size(0) % p.groups == 0 && weight.size(0) >= p.groups,
             "{}: given groups={}, expected weight to be divisible by it at dimension 0, got {}",
             op, p.groups, formatInts(weight.sizes()));
  int64_t channels = p.transposed ? of_all_groups : weight.size(0);
  WICK_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == channels),
             "{}: expected bias to be 1-dimensional with {} elements, got {}", op, channels,
             bias.defined() ? formatInts(bias.sizes()) : "");
  DimVector out{input.size(0), channels};
  constexpr int64_t kLargest = int64_t{1} << 40;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t size = input.size(2 + d), kernel = weight.size(2 + d);
    WICK_CHECK(p.stride[d] > 0, "{}: non-positive stride is not supported", op);
    WICK_CHECK(p.dilation[d] > 0, "{}: dilation should be greater than zero", op);
    WICK_CHECK(p.padding[d] >= 0 && p.padding_after[d] >= 0,
               "{}: negative padding is not supported", op);
    WICK_CHECK(kernel > 0, "{}: the kernel has no elements: {}", op, formatInts(weight.sizes()));
    WICK_CHECK(p.stride[d] < kLargest && p.dilation[d] < kLargest / kernel &&
                   p.padding[d] < kLargest && p.padding_after[d] < kLargest &&
                   size < kLargest / p.stride[d],
               "{}: a stride, padding or dilation is out of range", op);
    int64_t extent = p.dilation[d] * (kernel - 1) + 1;
    int64_t padding = p.padding[d] + p.padding_after[d];
    if (p.transposed) {
      WICK_CHECK(p.output_padding[d] >= 0 &&
                     (p.output_padding[d] < p.stride[d] || p.output_padding[d] < p.dilation[d]),
                 "{}: output padding must be smaller than either stride or dilation", op);
      out.push_back((size - 1) * p.stride[d] - padding + extent + p.output_padding[d]);
      WICK_CHECK(out.back() > 0, "{}: calculated output size {} is too small", op, formatInts(out));
    } else {
      WICK_CHECK(size + padding >= extent,
                 "{}: calculated padded input size per channel: {}. Kernel size: {}. Kernel size "
                 "can't be greater than actual input size",
                 op, size + padding, extent);
      out.push_back((size + padding - extent) / p.stride[d] + 1);
    }
  }
  return out;
}

Tensor convolution(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const ConvolutionParams& params, const Tensor& residual, Activation activation) {
  DType dtype = input.dtype();
  WICK_CHECK(weight.dtype() == dtype && (!bias.defined() || bias.dtype() == dtype),
             "{}: input type {} and weight or bias type {} should be the same", op, toString(dtype),
             toString(weight.dtype() == dtype ? bias.dtype() : weight.dtype()));
  DimVector size = convolutionOutputSize(op, input, weight, bias, params);
  WICK_CHECK(
      !residual.defined() || (residual.dtype() == dtype && DimVector(residual.sizes()) == size),
      "{}: expected a residual of shape {}, got {}", op, formatInts(size),
      residual.defined() ? residual.describe() : "");
  if (!input.device().isCpu()) {
    return deviceLayers(op, input.device())
        .convolution(op, input, weight, bias, params, residual, activation);
  }
  bool by_library = isLibraryWork(input, params);
  const bool rounds = roundsSums(dtype, params, residual, activation);
  by_library &= !rounds;
  if (isReducedFloat(dtype) && !by_library && !rounds) {
    auto wide = [](const Tensor& t) { return t.defined() ? t.to(DType::Float) : t; };
    return convolution(op, wide(input), wide(weight), wide(bias), params, wide(residual),
                       activation)
        .to(dtype);
  }
  const bool channels_last = convolvesChannelsLast(input, weight, params);
  MemoryFormat format = !channels_last     ? MemoryFormat::Contiguous
                        : input.dim() == 5 ? MemoryFormat::ChannelsLast3d
                                           : MemoryFormat::ChannelsLast;
  if (checkedNumel(size) == 0) return Tensor::empty(size, dtype, input.device(), format);
  if (by_library) {
    const ConvolutionWay way = convolutionWay(input, weight, params, size, channels_last);
    if (way == ConvolutionWay::Images) {
      return multiplyImages(op, input, weight, bias, residual, activation, size);
    }
    if (way == ConvolutionWay::Planes) {
      const Tensor out = depthwise::convolvePlanes(input, weight, params, size);
      finish<float>(out, bias, residual, activation);
      return out;
    }
    return onednn::convolution(op, input, weight, bias, params, residual, activation, size,
                               channels_last);
  }
  WICK_CHECK(activation == Activation::None || isFloating(dtype),
             "{}: no activation of dtype {} can be fused", op, toString(dtype));
  return dispatch<kIntegers | kAnyFloat | kComplexes>(op, dtype, [&]<class T>() {
    Tensor x = input.contiguous();
    Tensor out = x.numel() == 0 ? Tensor::zeros(size, dtype)
                                : convolveByColumns<T>(op, x, weight.contiguous(), params, size);
    finish<T>(out, bias, residual, activation);
    return channels_last ? out.contiguous(format) : out;
  });
}

void packConvolutionWeight(const Tensor& weight, bool has_bias, const ConvolutionParams& params,
                           bool has_residual, Activation activation) {
  // Asking for the layouts takes as long as packing so many elements.
  constexpr int64_t kFewElements = 1 << 16;
  if (!onednn::computes(weight.dtype()) || !weight.device().isCpu() ||
      weight.numel() < kFewElements || params.transposed) {
    return;
  }
  onednn::packConvolutionWeight("convolution", weight, has_bias, params, has_residual, activation);
}

void startConvolutions() {
  static std::once_flag once;
  std::call_once(once, [] {
    const Tensor input = Tensor::zeros(DimVector{1, 16, 8, 8}, DType::Float);
    for (int64_t extent : {1, 3}) {
      ConvolutionParams params;
      params.stride = params.dilation = DimVector{1, 1};
      params.padding = params.padding_after = params.output_padding = DimVector{0, 0};
      const Tensor weight = Tensor::zeros(DimVector{16, 16, extent, extent}, DType::Float);
      convolution("convolution", input, weight, Tensor(), params);
    }
  });
}

}  // namespace wick
