// Max, average, adaptive and fractional pooling, and its inverse.
#include "runtime/kernels/pooling.h"

#include <cmath>

#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

using pooling::Axes;

// The input with its batch dimension, and whether one was added.
struct Batched {
  Tensor x;
  bool added;
};

Batched batched(const char* op, const Tensor& input, int64_t spatial) {
  WICK_CHECK(input.dim() == spatial + 1 || input.dim() == spatial + 2,
             "{}: Expected {}D or {}D (batch mode) tensor for input, but got {}", op, spatial + 1,
             spatial + 2, formatInts(input.sizes()));
  bool added = input.dim() == spatial + 1;
  Tensor x = added ? input.unsqueeze(0) : input;
  for (int64_t d = 1; d < x.dim(); ++d) {
    WICK_CHECK(x.size(d) > 0,
               "{}: Expected input's non-batch dimensions to have positive length, but got {}", op,
               formatInts(input.sizes()));
  }
  return {widened(x), added};
}

Tensor unbatched(const Batched& b, const Tensor& out, DType dtype) {
  return (b.added ? out.squeeze(0) : out).to(dtype);
}

struct Window {
  DimVector kernel, stride, padding, dilation;
  bool ceil_mode;
};

Axes slidingAxes(const char* op, const Tensor& x, const Window& w, size_t n, int64_t least = 1) {
  DimVector kernel = expandInts(op, "kernel_size", w.kernel, n);
  DimVector stride = w.stride.empty() ? kernel : expandInts(op, "stride", w.stride, n);
  DimVector padding = expandInts(op, "padding", w.padding, n);
  DimVector dilation = expandInts(op, "dilation", w.dilation, n);
  Axes axes{pooling::unitAxis(), pooling::unitAxis(), pooling::unitAxis()};
  for (size_t d = 0; d < n; ++d) {
    axes[3 - n + d] = pooling::slidingAxis(op, x.size(static_cast<int64_t>(2 + d)), kernel[d],
                                           stride[d], padding[d], dilation[d], w.ceil_mode, least);
  }
  return axes;
}

Axes adaptiveAxes(const char* op, const Tensor& x, const DimVector& output, size_t n) {
  Axes axes{pooling::unitAxis(), pooling::unitAxis(), pooling::unitAxis()};
  DimVector sizes = expandInts(op, "output_size", output, n);
  for (size_t d = 0; d < n; ++d) {
    WICK_CHECK(sizes[d] >= 0 && sizes[d] < (int64_t{1} << 26),
               "{}: elements of output_size must be greater than or equal to 0, got {}", op,
               formatInts(output));
    axes[3 - n + d] = pooling::adaptiveAxis(x.size(static_cast<int64_t>(2 + d)), sizes[d]);
  }
  return axes;
}

constexpr const char* kMaxNames[] = {"", "max_pool1d", "max_pool2d", "max_pool3d"};
constexpr const char* kAvgNames[] = {"", "avg_pool1d", "avg_pool2d", "avg_pool3d"};
constexpr const char* kAdaptiveAvgNames[] = {"", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
                                             "adaptive_avg_pool3d"};
constexpr const char* kAdaptiveMaxNames[] = {"", "adaptive_max_pool1d", "adaptive_max_pool2d",
                                             "adaptive_max_pool3d"};

Pair maxPoolAny(const char* op, const Tensor& self, const Window& w, size_t n, bool indices) {
  Batched b = batched(op, self, static_cast<int64_t>(n));
  // PyTorch's faster way in one dimension lets results be empty.
  const int64_t least = n == 1 && !indices ? 0 : 1;
  pooling::MaxResult r = pooling::maxPool(op, b.x, slidingAxes(op, b.x, w, n, least), indices);
  return {unbatched(b, r.values, self.dtype()),
          indices ? unbatched(b, r.indices, DType::Long) : Tensor()};
}

template <size_t N>
Tensor maxPool(const Tensor& self, const DimVector& kernel, const DimVector& stride,
               const DimVector& padding, const DimVector& dilation, bool ceil_mode) {
  return std::get<0>(
      maxPoolAny(kMaxNames[N], self, {kernel, stride, padding, dilation, ceil_mode}, N, false));
}

template <size_t N>
Pair maxPoolIndices(const Tensor& self, const DimVector& kernel, const DimVector& stride,
                    const DimVector& padding, const DimVector& dilation, bool ceil_mode) {
  return maxPoolAny(kMaxNames[N], self, {kernel, stride, padding, dilation, ceil_mode}, N, true);
}

Tensor avgPoolAny(const char* op, const Tensor& self, const Window& w, size_t n,
                  bool count_include_pad, std::optional<int64_t> divisor) {
  WICK_CHECK(!divisor || *divisor != 0, "{}: divisor must be not zero", op);
  Batched b = batched(op, self, static_cast<int64_t>(n));
  Tensor out =
      pooling::averagePool(op, b.x, slidingAxes(op, b.x, w, n), count_include_pad, divisor);
  return unbatched(b, out, self.dtype());
}

Tensor avgPool1d(const Tensor& self, const DimVector& kernel, const DimVector& stride,
                 const DimVector& padding, bool ceil_mode, bool count_include_pad) {
  return avgPoolAny("avg_pool1d", self, {kernel, stride, padding, {1}, ceil_mode}, 1,
                    count_include_pad, std::nullopt);
}

template <size_t N>
Tensor avgPool(const Tensor& self, const DimVector& kernel, const DimVector& stride,
               const DimVector& padding, bool ceil_mode, bool count_include_pad,
               std::optional<int64_t> divisor) {
  return avgPoolAny(kAvgNames[N], self, {kernel, stride, padding, {1}, ceil_mode}, N,
                    count_include_pad, divisor);
}

template <size_t N>
Tensor adaptiveAvgPool(const Tensor& self, const DimVector& output_size) {
  const char* op = kAdaptiveAvgNames[N];
  Batched b = batched(op, self, static_cast<int64_t>(N));
  if (isComplex(self.dtype()) &&
      std::ranges::all_of(output_size, [](int64_t n) { return n == 1; })) {
    DimVector dims;
    for (int64_t d = -static_cast<int64_t>(N); d < 0; ++d) dims.push_back(d);
    return ops::meanDims(self, dims, true);
  }
  Axes axes = adaptiveAxes(op, b.x, output_size, N);
  return unbatched(b, pooling::averagePool(op, b.x, axes, false, std::nullopt), self.dtype());
}

template <size_t N>
Pair adaptiveMaxPool(const Tensor& self, const DimVector& output_size) {
  const char* op = kAdaptiveMaxNames[N];
  Batched b = batched(op, self, static_cast<int64_t>(N));
  pooling::MaxResult r = pooling::maxPool(op, b.x, adaptiveAxes(op, b.x, output_size, N), true);
  return {unbatched(b, r.values, self.dtype()), unbatched(b, r.indices, DType::Long)};
}

// Windows whose starts a random number in [0, 1) shifts; one set of windows a plane.
pooling::Axis fractionalAxis(const char* op, int64_t input, int64_t output, int64_t kernel,
                             double sample) {
  WICK_CHECK(kernel > 0 && output > 0 && kernel <= input && output - 1 <= input - kernel,
             "{}: kernel size {} is too large relative to input size {} and output size {}", op,
             kernel, input, output);
  pooling::Axis axis;
  axis.input = input;
  float alpha =
      output > 1 ? static_cast<float>(input - kernel) / static_cast<float>(output - 1) : 0.0f;
  float u = static_cast<float>(sample);
  for (int64_t i = 0; i < output; ++i) {
    int64_t first = i == output - 1 ? input - kernel
                                    : static_cast<int64_t>((static_cast<float>(i) + u) * alpha) -
                                          static_cast<int64_t>(u * alpha);
    first = std::clamp<int64_t>(first, 0, input - kernel);
    axis.begin.push_back(first);
    axis.end.push_back(first + kernel);
    axis.span.push_back(kernel);
  }
  return axis;
}

template <size_t N>
Pair fractionalMaxPool(const Tensor& self, const DimVector& kernel_size,
                       const DimVector& output_size, const Tensor& random_samples) {
  const char* op = N == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d";
  Batched b = batched(op, self, static_cast<int64_t>(N));
  DimVector kernel = expandInts(op, "kernel_size", kernel_size, N);
  DimVector output = expandInts(op, "output_size", output_size, N);
  int64_t planes = b.x.size(0) * b.x.size(1);
  WICK_CHECK(random_samples.dim() == 3 &&
                 random_samples.size(0) * random_samples.size(1) >= planes &&
                 random_samples.size(2) == static_cast<int64_t>(N),
             "{}: expected random samples for {} planes of {} dimensions, got {}", op, planes, N,
             random_samples.describe());
  // The windows are laid out on the CPU.
  Tensor samples = moveTo(random_samples.to(DType::Double), Device()).contiguous();
  Tensor x = b.x.contiguous();
  std::vector<Tensor> values, indices;
  DimVector sizes{b.x.size(0), b.x.size(1)};
  for (int64_t o : output) {
    WICK_CHECK(o > 0, "{}: output sizes must be positive, got {}", op, formatInts(output));
    sizes.push_back(o);
  }
  Tensor out = Tensor::empty(sizes, x.dtype(), x.device());
  Tensor at = Tensor::empty(sizes, DType::Long, x.device());
  for (int64_t plane = 0; plane < planes; ++plane) {
    int64_t n = plane / b.x.size(1), c = plane % b.x.size(1);
    Axes axes{pooling::unitAxis(), pooling::unitAxis(), pooling::unitAxis()};
    for (size_t d = 0; d < N; ++d) {
      // In two dimensions the samples are listed from the last dimension to the first.
      size_t listed = N == 2 ? N - 1 - d : d;
      double u = samples.data<double>()[static_cast<size_t>(plane) * N + listed];
      WICK_CHECK(u >= 0 && u <= 1, "{}: expected samples between 0 and 1, got {}", op, u);
      axes[3 - N + d] =
          fractionalAxis(op, x.size(static_cast<int64_t>(2 + d)), output[d], kernel[d], u);
    }
    pooling::MaxResult r = pooling::maxPool(op, x.narrow(0, n, 1).narrow(1, c, 1), axes, true);
    out.narrow(0, n, 1).narrow(1, c, 1).copyFrom(r.values);
    at.narrow(0, n, 1).narrow(1, c, 1).copyFrom(r.indices);
  }
  return {unbatched(b, out, self.dtype()), unbatched(b, at, DType::Long)};
}

// Puts every value at its index of an output plane of zeros.
Tensor maxUnpool(const char* op, const Tensor& self, const Tensor& indices,
                 const DimVector& sizes) {
  const auto n = static_cast<int64_t>(sizes.size());
  const DimVector out_sizes = unpooledSizes(op, self, indices, sizes);
  int64_t pixels = checkedNumel(sizes), in_pixels = 1;
  for (int64_t d = self.dim() - n; d < self.dim(); ++d) in_pixels *= self.size(d);
  Tensor x = self.contiguous(), at = indices.contiguous();
  Tensor out = Tensor::zeros(out_sizes, self.dtype());
  dispatch<kAnyFloat | kIntegers>(op, self.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < x.numel(); ++i) {
      int64_t index = at.data<int64_t>()[i];
      WICK_CHECK(index >= 0 && index < pixels,
                 "{}: found an invalid max index: {} (output volumes "
                 "are of size {})",
                 op, index, formatInts(sizes));
      out.data<T>()[i / in_pixels * pixels + index] = x.data<T>()[i];
    }
  });
  return isChannelsLast(self) ? out.contiguous(self.suggestMemoryFormat()) : out;
}

Tensor maxUnpool2d(const Tensor& self, const Tensor& indices, const DimVector& output_size) {
  return maxUnpool("max_unpool2d", self, indices,
                   expandInts("max_unpool2d", "output_size", output_size, 2));
}
Tensor maxUnpool3d(const Tensor& self, const Tensor& indices, const DimVector& output_size,
                   const DimVector& stride, const DimVector& padding) {
  checkUnpooledWindows(stride, padding);
  return maxUnpool("max_unpool3d", self, indices,
                   expandInts("max_unpool3d", "output_size", output_size, 3));
}

#define WICK_MAX_ARGS(n)                                                                         \
  "(Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n "] padding=0, int[" #n \
  "] dilation=1, bool ceil_mode=False) -> "
#define WICK_AVG_ARGS(n)                                                                         \
  "(Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n                        \
  "] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) " \
  "-> "

constexpr OperatorRecord kPoolingRecords[] = {
    {"aten::max_pool1d" WICK_MAX_ARGS(1) "Tensor", WICK_KERNEL(maxPool<1>), kNeutral,
     ops::shapes::pooled},
    {"aten::max_pool2d" WICK_MAX_ARGS(2) "Tensor", WICK_KERNEL(maxPool<2>), kNeutral | kKeepsOrder,
     ops::shapes::pooled},
    {"aten::max_pool3d" WICK_MAX_ARGS(3) "Tensor", WICK_KERNEL(maxPool<3>),
     kNeutral | kEagerCastFull, ops::shapes::pooled},
    {"aten::mkldnn_max_pool2d" WICK_MAX_ARGS(2) "Tensor", WICK_KERNEL(maxPool<2>), kNeutral,
     ops::shapes::pooled},
    {"aten::max_pool1d_with_indices" WICK_MAX_ARGS(1) "(Tensor, Tensor)",
     WICK_KERNEL(maxPoolIndices<1>), kNeutral, ops::shapes::pooledWithIndices},
    {"aten::max_pool2d_with_indices" WICK_MAX_ARGS(2) "(Tensor, Tensor)",
     WICK_KERNEL(maxPoolIndices<2>), kNeutral, ops::shapes::pooledWithIndices},
    {"aten::max_pool3d_with_indices" WICK_MAX_ARGS(3) "(Tensor, Tensor)",
     WICK_KERNEL(maxPoolIndices<3>), kNeutral, ops::shapes::pooledWithIndices},
    {"aten::avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "
     "ceil_mode=False, bool count_include_pad=True) -> Tensor",
     WICK_KERNEL(avgPool1d), kNeutral, ops::shapes::pooled},
    {"aten::avg_pool2d" WICK_AVG_ARGS(2) "Tensor", WICK_KERNEL(avgPool<2>),
     kOutForm | kOutSame | kNeutral | kKeepsOrder, ops::shapes::pooled},
    {"aten::avg_pool3d" WICK_AVG_ARGS(3) "Tensor", WICK_KERNEL(avgPool<3>),
     kOutForm | kOutSame | kNeutral | kEagerCastFull, ops::shapes::pooled},
    {"aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
     WICK_KERNEL(adaptiveAvgPool<1>), kNeutral, ops::shapes::adaptivelyPooled},
    {"aten::adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
     WICK_KERNEL(adaptiveAvgPool<2>), kOutForm | kOutSame | kNeutral | kKeepsOrder,
     ops::shapes::adaptivelyPooled},
    {"aten::adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
     WICK_KERNEL(adaptiveAvgPool<3>), kOutForm | kOutSame | kNeutral | kEagerCastFull,
     ops::shapes::adaptivelyPooled},
    {"aten::_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
     WICK_KERNEL(adaptiveAvgPool<2>), kOutForm | kOutAny | kNeutral, ops::shapes::adaptivelyPooled},
    {"aten::_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
     WICK_KERNEL(adaptiveAvgPool<3>), kOutForm | kOutAny | kNeutral, ops::shapes::adaptivelyPooled},
    {"aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
     WICK_KERNEL(adaptiveMaxPool<1>), kNeutral, ops::shapes::adaptivelyPooledWithIndices},
    {"aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
     WICK_KERNEL(adaptiveMaxPool<2>), kNeutral | kKeepsOrder,
     ops::shapes::adaptivelyPooledWithIndices},
    {"aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
     WICK_KERNEL(adaptiveMaxPool<3>), kNeutral | kEagerCastFull,
     ops::shapes::adaptivelyPooledWithIndices},
    {"aten::fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor "
     "random_samples) -> (Tensor, Tensor)",
     WICK_KERNEL(fractionalMaxPool<2>), kNeutral | kEagerCastFull},
    {"aten::fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor "
     "random_samples) -> (Tensor, Tensor)",
     WICK_KERNEL(fractionalMaxPool<3>), kNeutral | kEagerCastFull},
    {"aten::max_unpool2d(Tensor self, Tensor indices, int[2] output_size) -> Tensor",
     WICK_KERNEL(maxUnpool2d), kOutForm | kOutSame | kRaisesByElements | kEagerCastFull},
    {"aten::max_unpool3d(Tensor self, Tensor indices, int[3] output_size, int[3] stride, int[3] "
     "padding) -> Tensor",
     WICK_KERNEL(maxUnpool3d), kOutForm | kOutSame | kRaisesByElements | kEagerCastFull},
};

constexpr OperatorAlias kPoolingAliases[] = {
    {"aten::mkldnn_adaptive_avg_pool2d", "aten::adaptive_avg_pool2d"},
};

const RegisterOperators kPoolingRegistered(kPoolingRecords, kPoolingAliases);

}  // namespace
}  // namespace wick
