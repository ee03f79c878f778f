// Products, convolutions and pooling on the device "ahead": the steps that the kernels of the CPU would
// take for the same shapes and layouts (runtime/kernels/gemm.cpp, convolution.cpp, pooling.cpp).
#include "aot/layers.h"

#include <numbers>

#include "aot/columns.h"
#include "aot/complex.h"
#include "aot/convolution.h"
#include "aot/device.h"
#include "aot/elements.h"
#include "aot/pointwise.h"
#include "aot/recording.h"
#include "aot/target.h"
#include "codegen/loop/kernel.h"
#include "core/error.h"
#include "runtime/kernels/depthwise.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/kernels/onednn.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

Layout layoutOf(const Tensor& t) {
  return {DimVector(t.sizes()), DimVector(t.strides())};
}
Place placeOf(const Tensor& t) {
  return Recording::current().placeOf(t);
}
std::optional<Place> placeOfAny(const Tensor& t) {
  return t.defined() ? std::optional<Place>(placeOf(t)) : std::nullopt;
}

Tensor RecordedLayers::convolutionWeightGradient(const char* op, const Tensor&, const Tensor&,
                                                 IntSpan, const ConvolutionParams&) {
  throw NotAhead(fmt::format("{}: gradients are not available ahead of time", op));
}
void RecordedLayers::lstmStep(const LstmStep& step) {
  computeLstmStep(step);
}
void RecordedLayers::lstmStepGradient(const LstmStepGradient&) {
  throw NotAhead("lstm: gradients are not available ahead of time");
}
Tensor RecordedLayers::pointwise(const ScalarDefinition& definition,
                                 std::span<const Operand> operands, Device) {
  return computePointwise(definition, operands);
}

namespace {

void requireFloat(const char* op, DType dtype) {
  if (dtype == DType::Float) return;
  WICK_CHECK(dtype != DType::Bool, "{}: no kernel for dtype bool", op);
  throw NotAhead(fmt::format("{} of {} is not available ahead of time", op, toString(dtype)));
}

}  // namespace

ScalarExpr activated(const ExprBuilder& b, Activation activation, ScalarExpr x) {
  const ScalarExpr zero = b.constant(0), one = b.constant(1), six = b.constant(6);
  switch (activation) {
    case Activation::None:
      return x;
    case Activation::Relu:
      return b.select(b.lt(x, zero), zero, x);
    case Activation::Sigmoid:
      return b.sigmoid(x);
    case Activation::Tanh:
      return b.tanh(x);
    case Activation::Gelu:
      return b.mul(b.mul(x, b.constant(0.5)),
                   b.add(one, b.erf(b.mul(x, b.constant(std::numbers::sqrt2_v<float> / 2)))));
    case Activation::Silu:
      return b.div(x, b.add(one, b.exp(b.neg(x))));
    case Activation::HardTanh:
      return b.select(b.lt(x, zero), zero, b.select(b.gt(x, six), six, x));
    case Activation::HardSwish: {
      const ScalarExpr moved = b.add(x, b.constant(3));
      const ScalarExpr least = b.select(b.lt(moved, zero), zero, moved);
      const ScalarExpr most = b.select(b.lt(six, least), six, least);
      return b.div(b.mul(x, most), six);
    }
  }
  return x;
}

namespace {

// out = activation(out + bias + residual), in place. `out` is row-major, [planes, inner]; bias b
// belongs to plane p when p % biases == b, or with `bias_inner` to element b.
void finish(const Tensor& out, const Tensor& bias, bool bias_inner, const Tensor& residual,
            Activation activation) {
  if (!bias.defined() && !residual.defined() && activation == Activation::None) return;
  auto kernel = std::make_shared<loop::Kernel>();
  kernel->rank = 3;
  const int64_t inner = out.size(out.dim() - 1);
  const int64_t channels = bias.defined() && !bias_inner ? bias.numel() : 1;
  const std::array<int64_t, loop::kMaxRank> sizes{out.numel() / inner / channels, channels, inner};
  constexpr int64_t kItem = sizeof(float);
  std::vector<Touch> touches;
  const ExprBuilder b(kernel->expression, DType::Float);
  const auto access = [&](const Tensor& t, std::array<int64_t, 3> steps) {
    loop::Access a;
    a.argument = static_cast<uint32_t>(touches.size());
    a.dtype = DType::Float;
    a.dims.fill(-1);
    Touch touch;
    touch.base = static_cast<char*>(t.rawData());
    touch.steps.fill(0);
    for (size_t d = 0; d < 3; ++d) {
      if (steps[d] == 0) continue;
      a.dims[d] = static_cast<int8_t>(d);
      touch.steps[d] = steps[d] * kItem;
    }
    touches.push_back(touch);
    kernel->accesses.push_back(a);
    return static_cast<uint32_t>(touches.size() - 1);
  };
  const auto load = [&](const Tensor& t, std::array<int64_t, 3> steps) {
    return kernel->leaf({loop::Leaf::Kind::Load, access(t, steps), DType::Float});
  };
  const std::array<int64_t, 3> dense{channels * inner, inner, 1};
  ScalarExpr value = load(out, dense);
  if (bias.defined()) {
    value = b.add(value, load(bias, bias_inner ? std::array<int64_t, 3>{0, 0, 1}
                                               : std::array<int64_t, 3>{0, 1, 0}));
  }
  if (residual.defined()) value = b.add(value, load(residual, dense));
  value = activated(b, activation, value);
  kernel->stores.push_back({value, access(out, dense), false});
  const int order[] = {2, 1, 0};
  Walk walk;
  planWalk(*kernel, sizes, touches, order, walk);
  std::vector<int64_t> addresses;
  for (const Touch& t : touches) addresses.push_back(reinterpret_cast<int64_t>(t.base));
  Recording::current().kernel("epilogue", kernel, wayOf(*kernel, walk), addresses, {});
}

void requireLibrary(const char* op) {
  if (!recordedChoices().standalone) return;
  throw NotAhead(
      fmt::format("{}: only oneDNN computes this one, and --standalone leaves it out", op));
}

// One product of oneDNN; `b` is [K, N], as the library is to see it.
void multiply(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias,
              const Tensor& out, bool constant_b, const Epilogue& epilogue) {
  requireLibrary(op);
  LibraryStep step;
  step.source = layoutOf(a);
  step.weight = layoutOf(b);
  step.result = layoutOf(out);
  step.activation = epilogue.activation;
  step.one_thread = out.numel() * a.size(-1) <= products::kOneThreadWork;
  step.from = placeOf(a);
  step.weights = placeOf(b);
  step.to = placeOf(out);
  // Packing is for weights that are known beforehand.
  step.packs = constant_b && Recording::current().known(b).defined();
  step.bias = placeOfAny(bias);
  if (epilogue.residual.defined()) {
    step.residual = LibraryStep::Residual::Apart;
    step.addend = placeOf(epilogue.residual);
  }
  Recording::current().add(op, std::move(step));
}

void multiplySmall(const char* op, bool transposed, int64_t m, int64_t n, int64_t k,
                   const Tensor& a, int64_t lda, const Tensor& b, int64_t ldb, const Tensor& bias,
                   const Tensor& c, std::array<int64_t, 4> batch = {1, 0, 0, 0}) {
  SmallProductStep step;
  step.transposed = transposed;
  step.batches = batch[0];
  step.a_step = batch[1];
  step.b_step = batch[2];
  step.c_step = batch[3];
  step.m = m;
  step.n = n;
  step.k = k;
  step.lda = lda;
  step.ldb = ldb;
  step.ldc = n;
  step.a = placeOf(a);
  step.b = placeOf(b);
  step.c = placeOf(c);
  step.bias = placeOfAny(bias);
  Recording::current().add(op, step);
}

// Products that are loops: of float64 and integers.
bool isPlain(DType dtype) {
  return dtype == DType::Double || isIntegral(dtype, false);
}

// a [B, M, K] times b [B, K, N], one of which may have a batch of one.
Tensor multiplyPlain(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias) {
  PlainProductStep step;
  step.dtype = a.dtype();
  step.batches = a.size(0) == 1 ? b.size(0) : a.size(0);
  step.m = a.size(1);
  step.k = a.size(2);
  step.n = b.size(2);
  const Tensor out = Tensor::empty(DimVector{step.batches, step.m, step.n}, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  if (step.k == 0) {
    if (bias.defined()) {
      out.copyFrom(bias);
    } else {
      out.fill(0);
    }
    return out;
  }
  step.a_strides = {products::batchStride(a), a.stride(1), a.stride(2)};
  step.b_strides = {products::batchStride(b), b.stride(1), b.stride(2)};
  step.a = placeOf(a);
  step.b = placeOf(b);
  step.c = placeOf(out);
  step.bias = placeOfAny(bias);
  Recording::current().add(op, step);
  return out;
}

PoolStep::Axis axisOf(const pooling::Axis& axis) {
  const auto list = [](const auto& values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  return {axis.input, axis.step, list(axis.begin), list(axis.end), list(axis.span)};
}

// Whether averages of row-major planes add up the rows of their windows first, as AverageRow of
// runtime/kernels/pooling.cpp decides; the order of the sums depends on it.
bool sharesRows(const pooling::Axis& a) {
  constexpr int64_t kVector = 8;
  int64_t run = 0, longest = 0, read = 0, lowest = a.input, highest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const bool follows = i > 0 && a.begin[i] == a.begin[i - 1] + 1 &&
                         a.end[i] == a.end[i - 1] + 1 && a.span[i] == a.span[i - 1];
    run = follows ? run + 1 : 1;
    longest = std::max(longest, run);
    read += std::max<int64_t>(0, a.end[i] - a.begin[i]);
    lowest = std::min(lowest, a.begin[i]);
    highest = std::max(highest, a.end[i]);
  }
  return longest < kVector && a.step == 1 && read * 4 >= std::max(highest, lowest) - lowest;
}

// What is computed in float32 and rounded once.
Tensor inFloat(const Tensor& t) {
  return t.defined() ? here(t).to(DType::Float) : t;
}

// out + bias + residual and the activation, of planes [samples, channels, pixels…].
Tensor finishPlanes(const Tensor& out, const Tensor& bias, const Tensor& residual,
                    Activation activation) {
  if (out.dtype() == DType::Float) {
    finish(out, bias.defined() ? bias.contiguous() : bias, false,
           residual.defined() ? residual.contiguous() : residual, activation);
    return out;
  }
  if (activation != Activation::None) {
    throw NotAhead(
        fmt::format("a convolution of {} with an activation is not available ahead of "
                    "time",
                    toString(out.dtype())));
  }
  Tensor sum = out;
  if (bias.defined()) {
    DimVector shape(static_cast<size_t>(out.dim()), 1);
    shape[1] = bias.numel();
    sum = ops::add(sum, bias.reshape(shape));
  }
  return residual.defined() ? Tensor(ops::add(sum, residual)) : sum;
}

class AheadLayers : public RecordedLayers {
 public:
  Tensor batchedProduct(const char* op, const Tensor& a_in, const Tensor& b_in) override {
    if (isReducedFloat(a_in.dtype())) {
      return batchedProduct(op, inFloat(a_in), inFloat(b_in)).to(a_in.dtype());
    }
    if (isPlain(a_in.dtype())) return multiplyPlain(op, here(a_in), here(b_in), Tensor());
    if (isComplex(a_in.dtype())) return multiplyComplex(op, here(a_in), here(b_in));
    requireFloat(op, a_in.dtype());
    using namespace products;
    const Tensor a0 = here(a_in), b0 = here(b_in);
    const int64_t batches = a0.size(0) == 1 ? b0.size(0) : a0.size(0);
    if (batches > 1 && collapseBatch(a0).size(0) == 1 && collapseBatch(b0).size(0) == 1) {
      const Tensor one = batchedProduct(op, a0.narrow(0, 0, 1), b0.narrow(0, 0, 1));
      return one.expand(DimVector{batches, a0.size(1), b0.size(2)}).contiguous();
    }
    const Tensor out =
        Tensor::empty(DimVector{batches, a0.size(1), b0.size(2)}, a0.dtype(), a0.device());
    if (out.numel() == 0) return out;
    if (a0.size(2) == 0) {
      out.fill(0);
      return out;
    }
    Tensor a = collapseBatch(a0), b = collapseBatch(b0);
    if (!isMatrix(a)) a = a.contiguous();
    if (!isMatrix(b)) b = b.contiguous();
    const int64_t m = a.size(1), k = a.size(2), n = b.size(2);
    if (isByVector(a, b)) {
      // The vector times the transpose.
      const Tensor v = b.stride(1) == 1 || b.size(1) == 1 ? b : b.contiguous();
      multiplySmall(op, true, 1, m, k, v, k, a, leading(a, true), Tensor(), out,
                    {batches, batchStride(v), batchStride(a), m});
    } else if (!recordedChoices().standalone && isLibraryWork(a.dtype(), m, n, k, batches)) {
      if (batches == 1) {
        multiply(op, a.select(0, 0), b.select(0, 0), {}, out.select(0, 0), false, {});
      } else {
        multiply(op, a, b, {}, out, false, {});
      }
    } else {
      if (!isRowMajor(a)) a = a.contiguous();
      const bool rows = isRowMajor(b);
      multiplySmall(op, !rows, m, n, k, a, leading(a, true), b, leading(b, rows), Tensor(), out,
                    {batches, batchStride(a), batchStride(b), m * n});
    }
    return out;
  }

  Tensor linearProduct(const char* op, const Tensor& x_in, const Tensor& weight_in,
                       const Tensor& bias_in, const Epilogue& epilogue) override {
    if (isReducedFloat(x_in.dtype())) {
      return linearProduct(op, inFloat(x_in), inFloat(weight_in), inFloat(bias_in),
                           {inFloat(epilogue.residual), epilogue.activation})
          .to(x_in.dtype());
    }
    if (isPlain(x_in.dtype()) && !epilogue.residual.defined() &&
        epilogue.activation == Activation::None) {
      const Tensor bias = here(bias_in);
      return multiplyPlain(op, here(x_in).unsqueeze(0),
                           here(weight_in).transpose(0, 1).unsqueeze(0),
                           bias.defined() ? bias.contiguous() : bias)
          .select(0, 0);
    }
    if (isComplex(x_in.dtype()) && !epilogue.residual.defined() &&
        epilogue.activation == Activation::None) {
      const Tensor product =
          multiplyComplex(op, here(x_in).unsqueeze(0), here(weight_in).transpose(0, 1).unsqueeze(0))
              .select(0, 0);
      return bias_in.defined() ? ops::add(product, here(bias_in)) : product;
    }
    requireFloat(op, x_in.dtype());
    using namespace products;
    const Tensor x = here(x_in), weight = here(weight_in), bias = here(bias_in);
    const Tensor r = here(epilogue.residual);
    const int64_t m = x.size(0), n = weight.size(0), k = x.size(1);
    const Tensor out = Tensor::empty(DimVector{m, n}, x.dtype(), x.device());
    const Tensor b = bias.defined() ? bias.contiguous() : bias;
    const Tensor residual = r.defined() ? r.contiguous() : r;
    if (products::workOf(m, n, k) == 0) {
      if (out.numel() == 0) return out;
      out.fill(0);
      finish(out, b, true, residual, epilogue.activation);
      return out;
    }
    const Tensor a = isMatrix(x) && isRowMajor(x) ? x : x.contiguous();
    if (!recordedChoices().standalone && isLibraryWork(x.dtype(), m, n, k, 1)) {
      multiply(op, a, weight.transpose(0, 1), b, out, true, {residual, epilogue.activation});
      return out;
    }
    const Tensor w = isMatrix(weight) ? weight : weight.contiguous();
    const bool rows = isRowMajor(w);
    multiplySmall(op, rows, m, n, k, a, leading(a, true), w, leading(w, rows), b, out);
    finish(out, Tensor(), false, residual, epilogue.activation);
    return out;
  }

  Tensor convolution(const char* op, const Tensor& input_in, const Tensor& weight_in,
                     const Tensor& bias_in, const ConvolutionParams& params,
                     const Tensor& residual_in, Activation activation) override {
    if (isReducedFloat(input_in.dtype())) {
      return convolution(op, inFloat(input_in), inFloat(weight_in), inFloat(bias_in), params,
                         inFloat(residual_in), activation)
          .to(input_in.dtype());
    }
    if (!isPlain(input_in.dtype())) requireFloat(op, input_in.dtype());
    const Tensor input = here(input_in), weight = here(weight_in), bias = here(bias_in);
    const Tensor residual = here(residual_in);
    const DimVector size = convolutionOutputSize(op, input, weight, bias, params);
    const bool channels_last = convolvesChannelsLast(input, weight, params);
    const MemoryFormat format = !channels_last     ? MemoryFormat::Contiguous
                                : input.dim() == 5 ? MemoryFormat::ChannelsLast3d
                                                   : MemoryFormat::ChannelsLast;
    if (checkedNumel(size) == 0) return Tensor::empty(size, input.dtype(), input.device(), format);
    switch (convolutionWay(input, weight, params, size, channels_last)) {
      case ConvolutionWay::Images:
        return multiplyImages(op, input, weight, bias, residual, activation, size);
      case ConvolutionWay::Columns: {
        const Tensor out =
            convolveByColumns(op, input.contiguous(), weight.contiguous(), params, size,
                              [this](const char* name, const Tensor& a, const Tensor& b) {
                                return batchedProduct(name, a, b);
                              });
        const Tensor finished = finishPlanes(out, bias, residual, activation);
        return channels_last ? finished.contiguous(format) : finished;
      }
      default:
        // Planes too: oneDNN computes them with other roundings than the engine.
        return convolve(op, input, weight, bias, params, residual, activation, size, channels_last);
    }
  }

  pooling::MaxResult maxPool(const char* op, const Tensor& x_in, const pooling::Axes& axes,
                             bool want_indices) override {
    const Tensor x = here(x_in);
    WICK_CHECK(x.dtype() != DType::Bool && !isComplex(x.dtype()), "{}: no kernel for dtype {}", op,
               toString(x.dtype()));
    constexpr int64_t kEnoughChannels = 8;
    const MemoryFormat wanted = formatOf(x);
    MemoryFormat format = wanted;
    if (wanted == MemoryFormat::Contiguous && x.dim() >= 4 && x.size(1) >= kEnoughChannels) {
      format = x.dim() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
    }
    PoolStep step = poolOf(x.contiguous(format), axes, format);
    pooling::MaxResult result;
    result.values = pooled(x, axes, format, x.dtype());
    if (want_indices) result.indices = pooled(x, axes, format, DType::Long);
    if (result.values.numel() > 0) {
      step.to = placeOf(result.values);
      step.indices = placeOfAny(result.indices);
      Recording::current().add(op, std::move(step));
    }
    result.values = result.values.contiguous(wanted);
    if (want_indices) result.indices = result.indices.contiguous(wanted);
    return result;
  }

  Tensor averagePool(const char* op, const Tensor& x_in, const pooling::Axes& axes,
                     bool count_padding, std::optional<int64_t> divisor) override {
    const Tensor x = here(x_in);
    if (!isFloating(x.dtype()) || isReducedFloat(x.dtype())) requireFloat(op, x.dtype());
    const MemoryFormat format = formatOf(x);
    PoolStep step = poolOf(x.contiguous(format), axes, format);
    const Tensor out = pooled(x, axes, format, x.dtype());
    if (out.numel() == 0) return out;
    step.average = true;
    step.count_padding = count_padding;
    step.divisor = divisor;
    step.shares_rows = !step.channels_last && sharesRows(axes[2]);
    step.to = placeOf(out);
    Recording::current().add(op, std::move(step));
    return out;
  }

  void weightedRows(const char* op, const Tensor& x, const Tensor& out, int64_t source_rows,
                    int64_t inner, const WeightedRows& rows) override {
    addWeightedRows(op, here(x), out, source_rows, inner, rows);
  }

 private:
  static MemoryFormat formatOf(const Tensor& t) {
    return t.dim() >= 4 ? t.suggestMemoryFormat() : MemoryFormat::Contiguous;
  }
  static Tensor pooled(const Tensor& x, const pooling::Axes& axes, MemoryFormat format,
                       DType dtype) {
    DimVector sizes{x.size(0), x.size(1)};
    for (int64_t d = 2; d < x.dim(); ++d) {
      sizes.push_back(axes[static_cast<size_t>(3 - x.dim() + d)].size());
    }
    return Tensor::empty(sizes, dtype, x.device(), format);
  }
  static PoolStep poolOf(const Tensor& x, const pooling::Axes& axes, MemoryFormat format) {
    PoolStep step;
    step.channels_last = format != MemoryFormat::Contiguous;
    step.dtype = x.dtype();
    step.samples = x.size(0);
    step.channels = x.size(1);
    for (size_t d = 0; d < 3; ++d) step.axes[d] = axisOf(axes[d]);
    if (x.numel() > 0) step.from = placeOf(x);
    return step;
  }

  Tensor multiplyImages(const char* op, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, const Tensor& residual, Activation activation,
                        IntSpan size) {
    const int64_t out_c = weight.size(0), in_c = weight.size(1);
    const int64_t pixels = input.numel() / (input.size(0) * in_c);
    const Tensor product = batchedProduct(op, weight.reshape(DimVector{1, out_c, in_c}),
                                          input.view(DimVector{input.size(0), in_c, pixels}));
    finish(product, bias.defined() ? bias.contiguous() : bias, false,
           residual.defined() ? residual.contiguous() : residual, activation);
    return product.view(size);
  }

  // The weight as oneDNN sees it: [C_out, C_in, kernel…], with groups in front when there are any.
  static Layout weightLayout(const Tensor& weight, const ConvolutionParams& p) {
    Layout layout;
    const int64_t g = p.groups, first = weight.size(0) / g;
    const auto push = [&](int64_t size, int64_t stride) {
      layout.sizes.push_back(size);
      layout.strides.push_back(stride);
    };
    if (g > 1) push(g, first * weight.stride(0));
    if (p.transposed) {
      push(weight.size(1), weight.stride(1));
      push(first, weight.stride(0));
    } else {
      push(first, weight.stride(0));
      push(weight.size(1), weight.stride(1));
    }
    for (int64_t d = 2; d < weight.dim(); ++d) push(weight.size(d), weight.stride(d));
    return layout;
  }

  Tensor convolve(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                  const ConvolutionParams& params, const Tensor& residual, Activation activation,
                  IntSpan size, bool channels_last) {
    const Tensor x = onednn::toChannelsInnermost(input);
    const Tensor b = bias.defined() ? bias.contiguous() : bias;
    const Tensor out =
        Tensor::emptyStrided(size, onednn::channelsInnermost(size), input.dtype(), input.device());
    if (std::optional<ConvolutionStep> own = ownConvolution(
            weight, b.defined(), params, residual.defined(), activation, x.sizes(), size)) {
      own->from = placeOf(x);
      own->to = placeOf(out);
      own->bias = placeOfAny(b);
      if (residual.defined()) own->residual = placeOf(onednn::toChannelsInnermost(residual));
      Recording::current().add(op, *std::move(own));
      return channels_last ? out : rowMajor(out);
    }
    requireLibrary(op);
    LibraryStep step;
    step.kind = params.transposed ? LibraryStep::Kind::Transposed : LibraryStep::Kind::Convolution;
    step.source = {DimVector(x.sizes()), onednn::channelsInnermost(x.sizes())};
    step.weight = weightLayout(weight, params);
    step.result = {DimVector(size), onednn::channelsInnermost(size)};
    step.stride = params.stride;
    step.dilation = params.dilation;
    step.padding = params.padding;
    step.padding_after = onednn::evenPadding(weight, params, input.sizes(), size);
    step.activation = activation;
    step.packs = Recording::current().known(weight).defined();
    if (residual.defined() && onednn::addsInResult(weight)) {
      step.residual = LibraryStep::Residual::InResult;
      out.copyFrom(residual);
    } else if (residual.defined()) {
      step.residual = LibraryStep::Residual::Apart;
      step.addend = placeOf(onednn::toChannelsInnermost(residual));
    }
    step.from = placeOf(x);
    step.weights = placeOf(weight);
    step.to = placeOf(out);
    step.bias = placeOfAny(b);
    Recording::current().add(op, std::move(step));
    return channels_last ? out : rowMajor(out);
  }
  static Tensor rowMajor(const Tensor& t) {
    if (!t.isContiguous()) return t.contiguous();
    return t.asStrided(t.sizes(), contiguousStrides(t.sizes()), 0);
  }
};

const struct Registration {
  AheadLayers layers;
  Registration() { setDeviceLayers(kAhead, &layers); }
}& registration = *new Registration;

}  // namespace

}  // namespace wick::aot
