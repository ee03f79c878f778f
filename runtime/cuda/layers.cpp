// Layers on CUDA devices: products, convolutions, pooling.
#include <fmt/format.h>

#include <cstring>

#include "codegen/cuda/scalar_text.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/convolution.h"
#include "runtime/cuda/depthwise.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/loop_kernel.h"
#include "runtime/cuda/plain_convolution.h"
#include "runtime/cuda/pointwise.h"
#include "runtime/cuda/tables.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

constexpr int kBlock = kTextBlock;

// ---- products of integers, which no library has ----

constexpr const char* kIntegerProduct = R"(
typedef {type} T;
struct Words {{ const T* a; const T* b; T* c; long long batches, m, n, k, as, am, ak, bs, bk, bn; }};
extern "C" __global__ void __launch_bounds__(256) integer_product(const __grid_constant__ Words p) {{
  const long long total = p.batches * p.m * p.n;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const long long j = i % p.n, r = i / p.n % p.m, s = i / p.n / p.m;
    const T* a = p.a + s * p.as + r * p.am;
    const T* b = p.b + s * p.bs + j * p.bn;
    unsigned long long sum = 0;
    for (long long l = 0; l < p.k; ++l) {{
      sum += (unsigned long long)(long long)a[l * p.ak] * (unsigned long long)(long long)b[l * p.bk];
    }}
    p.c[i] = (T)sum;
  }}
}}
)";

Tensor integerProduct(const Tensor& a, const Tensor& b) {
  const int64_t batches = std::max(a.size(0), b.size(0));
  const Tensor out = Tensor::empty(DimVector{batches, a.size(1), b.size(2)}, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  CudaDevice& device = enter(a.device());
  struct {
    const void* a;
    const void* b;
    void* c;
    int64_t batches, m, n, k, as, am, ak, bs, bk, bn;
  } words{a.rawData(),
          b.rawData(),
          out.rawData(),
          batches,
          a.size(1),
          b.size(2),
          a.size(2),
          a.size(0) == 1 ? 0 : a.stride(0),
          a.stride(1),
          a.stride(2),
          b.size(0) == 1 ? 0 : b.stride(0),
          b.stride(1),
          b.stride(2)};
  const std::string text =
      fmt::format(fmt::runtime(kIntegerProduct), fmt::arg("type", codegen::cudaType(a.dtype())));
  launch(functionOf(device, text, "integer_product"), gridFor(out.numel(), device), kBlock, &words,
         "integer_product");
  return out;
}

// ---- pooling: one thread a window ----

constexpr const char* kPooling = R"({preamble}
typedef {type} T;
typedef {accumulator} A;
struct Words {{
  const T* x; T* y; long long* indices; const long long* axes;
  long long channels, planes, xs_n, xs_c, xs_d, xs_h, xs_w, ys_n, ys_c, ys_d, ys_h, ys_w;
  long long depth, height, width, in_height, in_width, step_d, step_h, step_w;
  long long divisor, count_padding;
}};
extern "C" __global__ void __launch_bounds__(256) pooling(const __grid_constant__ Words p) {{
  const long long total = p.planes * p.depth * p.height * p.width;
  const long long* const d_axis = p.axes;
  const long long* const h_axis = d_axis + 3 * p.depth;
  const long long* const w_axis = h_axis + 3 * p.height;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const long long w = i % p.width, h = i / p.width % p.height;
    const long long d = i / p.width / p.height % p.depth, plane = i / p.width / p.height / p.depth;
    const long long c = plane % p.channels, n = plane / p.channels;
    const T* const x = p.x + n * p.xs_n + c * p.xs_c;
    const long long at = n * p.ys_n + c * p.ys_c + d * p.ys_d + h * p.ys_h + w * p.ys_w;
    {begin}
    for (long long z = d_axis[d]; z < d_axis[p.depth + d]; z += p.step_d) {{
      for (long long r = h_axis[h]; r < h_axis[p.height + h]; r += p.step_h) {{
        for (long long q = w_axis[w]; q < w_axis[p.width + w]; q += p.step_w) {{
          const A v = {load};
          {body}
        }}
      }}
    }}
    {end}
  }}
}}
)";

struct PoolingWords {
  const void* x;
  void* y;
  void* indices;
  const void* axes;
  int64_t channels, planes;
  int64_t x_strides[5], y_strides[5];
  int64_t depth, height, width, in_height, in_width, step_d, step_h, step_w;
  int64_t divisor, count_padding;
};

// The windows' bounds and spans, axis by axis, on the device.
Tensor axesOn(const pooling::Axes& axes, Device device) {
  int64_t total = 0;
  for (const pooling::Axis& axis : axes) total += 3 * axis.size();
  Tensor table = Tensor::empty(DimVector{total}, DType::Long);
  int64_t* to = table.data<int64_t>();
  for (const pooling::Axis& axis : axes) {
    to = std::copy(axis.begin.begin(), axis.begin.end(), to);
    to = std::copy(axis.end.begin(), axis.end.end(), to);
    to = std::copy(axis.span.begin(), axis.span.end(), to);
  }
  return tableOn(device, table);
}

struct Pooled {
  Tensor values;
  Tensor indices;
};

Pooled pool(const Tensor& x, const pooling::Axes& axes, bool largest, bool want_indices,
            int64_t divisor, bool count_padding) {
  const int64_t n = x.dim() - 2;  // spatial dimensions
  DimVector sizes{x.size(0), x.size(1)};
  for (int64_t d = 0; d < n; ++d) sizes.push_back(axes[static_cast<size_t>(3 - n + d)].size());
  const MemoryFormat format = n >= 2 ? x.suggestMemoryFormat() : MemoryFormat::Contiguous;
  Pooled result;
  result.values = Tensor::empty(sizes, x.dtype(), x.device(), format);
  if (want_indices) result.indices = Tensor::empty(sizes, DType::Long, x.device(), format);
  if (result.values.numel() == 0) return result;
  CudaDevice& device = enter(x.device());
  const Tensor table = axesOn(axes, x.device());
  PoolingWords words{};
  words.x = x.rawData();
  words.y = result.values.rawData();
  words.indices = want_indices ? result.indices.rawData() : nullptr;
  words.axes = table.rawData();
  words.channels = x.size(1);
  words.planes = x.size(0) * x.size(1);
  for (int64_t d = 0; d < x.dim(); ++d) {
    const auto to = static_cast<size_t>(d < 2 ? d : 5 - x.dim() + d);
    words.x_strides[to] = x.stride(d);
    words.y_strides[to] = result.values.stride(d);
  }
  words.depth = axes[0].size();
  words.height = axes[1].size();
  words.width = axes[2].size();
  words.in_height = axes[1].input;
  words.in_width = axes[2].input;
  words.step_d = axes[0].step;
  words.step_h = axes[1].step;
  words.step_w = axes[2].step;
  words.divisor = divisor;
  words.count_padding = count_padding;

  const bool small = isReducedFloat(x.dtype());
  const DType wide = small ? DType::Float : x.dtype();
  const std::string type = codegen::cudaType(x.dtype()), accumulator = codegen::cudaType(wide);
  const std::string element = "x[z * p.xs_d + r * p.xs_h + q * p.xs_w]";
  std::string begin, body, end;
  if (largest) {
    begin = "A best = (A)0; long long place = -1;";
    body =
        "if (place < 0 || v > best || v != v) { best = v; place = (z * p.in_height + r) * "
        "p.in_width + q; }";
    end = fmt::format("p.y[at] = {}; {}", codegen::cudaConvert("best", wide, x.dtype()),
                      want_indices ? "p.indices[at] = place;" : "");
  } else {
    begin = "A sum = (A)0; long long count = 0;";
    body = "sum += v; ++count;";
    end = fmt::format(
        "const long long span = d_axis[2 * p.depth + d] * h_axis[2 * p.height + h] * w_axis[2 * "
        "p.width + w];\nconst long long by = p.divisor != 0 ? p.divisor : p.count_padding != 0 ? "
        "span : count;\np.y[at] = {};",
        codegen::cudaConvert("(sum / (A)by)", wide, x.dtype()));
  }
  const std::string text =
      fmt::format(fmt::runtime(kPooling), fmt::arg("preamble", codegen::cudaPreamble(Expression())),
                  fmt::arg("type", type), fmt::arg("accumulator", accumulator),
                  fmt::arg("load", codegen::cudaConvert(element, x.dtype(), wide)),
                  fmt::arg("begin", begin), fmt::arg("body", body), fmt::arg("end", end));
  launch(functionOf(device, text, "pooling"), gridFor(result.values.numel(), device), kBlock,
         &words, "pooling");
  return result;
}

// ---- the interface ----

Tensor activated(const char* op, const Tensor& t, Activation activation) {
  static const OperatorHandle kSilu{"aten::silu", ""}, kHardSwish{"aten::hardswish", ""},
      kHardTanh{"aten::hardtanh", ""};
  switch (activation) {
    case Activation::None:
      return t;
    case Activation::Relu:
      return ops::relu(t);
    case Activation::Sigmoid:
      return ops::sigmoid(t);
    case Activation::Tanh:
      return ops::tanh(t);
    case Activation::Gelu:
      return ops::gelu(t);
    case Activation::Silu:
      return kSilu(t);
    case Activation::HardTanh:
      return kHardTanh(t, Scalar(0.0), Scalar(6.0));
    case Activation::HardSwish:
      return kHardSwish(t);
  }
  throwRuntimeError("{}: an unknown activation", op);
}

// ---- resampling ----

constexpr const char* kWeightedRows = R"({preamble}
typedef {type} T;
struct Words {{
  const T* x; T* y; const long long* start; const long long* place; const T* weight;
  long long total, rows, source_rows, inner;
}};
extern "C" __global__ void __launch_bounds__(256) weighted_rows(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long row = i / p.inner % p.rows;
    const T* const x = p.x + i / p.inner / p.rows * p.source_rows * p.inner + i % p.inner;
    const long long end = p.start[row + 1];
    long long e = p.start[row];
    {sum}
    p.y[i] = sum;
  }}
}}
)";

void sumWeightedRows(const Tensor& x, const Tensor& out, int64_t source_rows, int64_t inner,
                     const WeightedRows& rows) {
  if (out.numel() == 0) return;
  const bool copies = rows.weight.empty() && !rows.place.empty();
  // A complex number is two neighbours with one weight.
  const DType type = toRealType(x.dtype());
  const int64_t parts = isComplex(x.dtype()) ? 2 : 1;
  const auto onDevice = [&](const auto& numbers) {
    return tableOn(x.device(), Tensor::fromData(numbers.data(),
                                                DimVector{static_cast<int64_t>(numbers.size())}));
  };
  const Tensor start = onDevice(rows.start), place = onDevice(rows.place);
  const Tensor weight = onDevice(rows.weight).to(copies ? DType::Double : type);
  const std::string text = fmt::format(
      fmt::runtime(kWeightedRows), fmt::arg("preamble", codegen::cudaPreamble(Expression())),
      fmt::arg("type", codegen::cudaType(type)),
      fmt::arg("sum", copies ? "const T sum = x[p.place[e] * p.inner];"
                             : "T sum = e < end ? x[p.place[e] * p.inner] * p.weight[e] : (T)0;\n"
                               "    for (++e; e < end; ++e) {\n"
                               "      sum = sum + x[p.place[e] * p.inner] * p.weight[e];\n"
                               "    }"));
  CudaDevice& device = enter(x.device());
  launchText(
      device, text, "weighted_rows", gridFor(parts * out.numel(), device),
      {wordOf(x), wordOf(out), wordOf(start), wordOf(place), wordOf(weight), parts * out.numel(),
       static_cast<int64_t>(rows.start.size()) - 1, source_rows, parts * inner});
}

// ---- complex numbers, for libraries that have none ----

// f is linear in both arguments; f(a, b) of their real and imaginary parts.
template <class F>
Tensor inParts(const Tensor& a, const Tensor& b, F&& f) {
  static const OperatorHandle kReal{"aten::real", ""}, kImaginary{"aten::imag", ""},
      kComplex{"aten::complex", ""};
  const Tensor ar = kReal(a), ai = kImaginary(a), br = kReal(b), bi = kImaginary(b);
  return kComplex(ops::sub(f(ar, br), f(ai, bi)), ops::add(f(ar, bi), f(ai, br)));
}

class CudaLayers : public DeviceLayers {
 public:
  Tensor batchedProduct(const char* op, const Tensor& a, const Tensor& b) override {
    if (isIntegral(a.dtype(), false)) return integerProduct(a, b);
    return product(op, a, b, Tensor(), false);
  }
  Tensor linearProduct(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Epilogue& epilogue) override {
    const Tensor a = x.unsqueeze(0), b = weight.transpose(0, 1).unsqueeze(0);
    if (isIntegral(x.dtype(), false)) {
      const Tensor out = integerProduct(a, b).select(0, 0);
      return finished(op, bias.defined() ? ops::add(out, bias) : out, epilogue);
    }
    // Complex numbers have no epilogue in the library.
    const bool fused = isFloating(x.dtype()) && x.size(1) > 0;
    const bool relu =
        fused && epilogue.activation == Activation::Relu && !epilogue.residual.defined();
    Tensor out = product(op, a, b, fused ? bias : Tensor(), relu).select(0, 0);
    if (!fused && bias.defined()) out = ops::add(out, bias);
    return relu ? out : finished(op, out, epilogue);
  }
  Tensor convolution(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const ConvolutionParams& params, const Tensor& residual,
                     Activation activation) override {
    const DimVector size = convolutionOutputSize(op, input, weight, bias, params);
    Tensor x = input;
    ConvolutionParams used = params;
    if (!params.transposed && !std::ranges::equal(params.padding, params.padding_after)) {
      static const OperatorHandle kPad{"aten::constant_pad_nd", ""};
      DimVector pads;
      for (size_t d = params.padding.size(); d-- > 0;) {
        pads.push_back(params.padding[d]);
        pads.push_back(params.padding_after[d]);
        used.padding[d] = used.padding_after[d] = 0;
      }
      x = kPad(x, pads, Scalar(0));
    }
    const auto lastOf = [](const Tensor& t) {
      return t.dim() >= 4 && t.suggestMemoryFormat() != MemoryFormat::Contiguous;
    };
    const bool last =
        params.transposed ? params.keeps_layout && lastOf(input) : lastOf(input) || lastOf(weight);
    const bool relu = activation == Activation::Relu;
    const bool joins =
        relu || (activation == Activation::None && (bias.defined() || residual.defined()));
    if (isDepthwise(x, weight, used)) {
      const bool all = !residual.defined();  // the activation is what remains
      const Tensor out = depthwiseConvolution(x, weight, bias, used, size, last, relu && all);
      return relu && all ? out : finished(op, out, {residual, activation});
    }
    if (joins && isFloating(x.dtype())) {
      const std::optional<Tensor> all =
          convolveAndFinish(op, x, weight, used, size, last, bias, residual, relu);
      if (all) return *all;
    }
    Tensor out = convolved(op, x, weight, used, size, last);
    if (bias.defined()) {
      DimVector shape(static_cast<size_t>(out.dim()), 1);
      shape[1] = bias.numel();
      out = ops::add(out, bias.reshape(shape));
    }
    return finished(op, out, {residual, activation});
  }
  Tensor convolutionWeightGradient(const char* op, const Tensor& grad, const Tensor& input,
                                   IntSpan weight_size, const ConvolutionParams& params) override {
    return cuda::convolutionWeightGradient(op, grad, input, weight_size, params);
  }
  pooling::MaxResult maxPool(const char*, const Tensor& x, const pooling::Axes& axes,
                             bool want_indices) override {
    Pooled pooled = pool(x, axes, true, want_indices, 0, false);
    return {pooled.values, pooled.indices};
  }
  Tensor averagePool(const char*, const Tensor& x, const pooling::Axes& axes, bool count_padding,
                     std::optional<int64_t> divisor) override {
    return pool(x, axes, false, false, divisor.value_or(0), count_padding).values;
  }
  void weightedRows(const char*, const Tensor& x, const Tensor& out, int64_t source_rows,
                    int64_t inner, const WeightedRows& rows) override {
    sumWeightedRows(x, out, source_rows, inner, rows);
  }
  Tensor pointwise(const ScalarDefinition& definition, std::span<const Operand> operands,
                   Device device) override {
    return computePointwise(definition, operands, device);
  }

 private:
  static Tensor convolved(const char* op, const Tensor& x, const Tensor& weight,
                          const ConvolutionParams& params, IntSpan size, bool last) {
    if (isIntegral(x.dtype(), false)) return convolveIntegers(op, x, weight, params, size);
    const auto real = [&](const Tensor& a, const Tensor& b) {
      return convolve(op, a, b, params, size, last);
    };
    return isComplex(x.dtype()) ? inParts(x, weight, real) : real(x, weight);
  }
  static Tensor finished(const char* op, const Tensor& t, const Epilogue& epilogue) {
    return activated(op, epilogue.residual.defined() ? ops::add(t, epilogue.residual) : t,
                     epilogue.activation);
  }
};

const struct Registration {
  CudaLayers layers;
  Registration() { setDeviceLayers(DeviceType::CUDA, &layers); }
}& registration = *new Registration;

}  // namespace

}  // namespace wick::cuda
