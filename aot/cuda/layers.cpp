#include "aot/cuda/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "aot/elements.h"
#include "aot/kernel_maker.h"
#include "aot/layers.h"
#include "aot/recording.h"
#include "core/error.h"
#include "core/product_precision.h"
#include "runtime/cuda/convolution.h"
#include "runtime/cuda/depthwise.h"
#include "runtime/cuda/layer_kernels.h"
#include "runtime/cuda/pooling.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

void addKernel(const char* op, cuda::TextKernel kernel) {
  DeviceKernelStep step;
  step.text = std::move(kernel.text);
  step.kernel = kernel.name;
  step.points = kernel.points;
  step.numbers = std::move(kernel.numbers);
  for (const cuda::TextKernel::Operand& operand : kernel.operands) {
    step.operands.push_back(operand.written ? writes(operand.tensor) : reads(operand.tensor));
  }
  Recording::current().add(op, std::move(step));
}

void requireFloats(const char* op, DType dtype) {
  if (isFloating(dtype)) return;
  throw NotAhead(
      fmt::format("{} of {} is not available ahead of time for CUDA", op, toString(dtype)));
}

// out = activation(out + bias + residual), in place; bias and residual are undefined or broadcast to it.
void finish(const char* op, const Tensor& out, const Tensor& bias, const Tensor& residual,
            Activation activation) {
  if ((!bias.defined() && !residual.defined() && activation == Activation::None) ||
      out.numel() == 0) {
    return;
  }
  const DType compute = out.dtype() == DType::Double ? DType::Double : DType::Float;
  KernelMaker maker(out.sizes());
  Expression& e = maker.expression();
  const ExprBuilder b(e, compute);
  // As operators one after the other round.
  const auto rounded = [&](ScalarExpr value) {
    return isReducedFloat(out.dtype()) ? e.convert(e.convert(value, out.dtype()), compute) : value;
  };
  const auto load = [&](const Tensor& t) { return e.convert(maker.load(t), compute); };
  ScalarExpr value = load(out);
  if (bias.defined()) value = rounded(b.add(value, load(bias)));
  if (residual.defined()) value = rounded(b.add(value, load(residual)));
  maker.store(activated(b, activation, value), out);
  maker.finish(op);
}

// Whether cuBLASLt takes the matrices of t [B, rows, columns] as they lie.
bool liesAsMatrix(const Tensor& t) {
  const auto unit = [&](int64_t d) { return t.stride(d) == 1 || t.size(d) == 1; };
  const bool along = unit(2) && t.stride(1) >= std::max<int64_t>(1, t.size(2));
  const bool across = unit(1) && t.stride(2) >= std::max<int64_t>(1, t.size(1));
  return along || across || (unit(1) && unit(2));
}
Tensor asMatrix(const Tensor& t) {
  return liesAsMatrix(t) ? t : t.clone(MemoryFormat::Contiguous);
}

// a [B, M, K] times b [B, K, N]; either may have a batch of one.
Tensor multiply(const char* op, const Tensor& a_in, const Tensor& b_in, const Tensor& bias,
                bool relu) {
  const Tensor a = here(a_in), b = here(b_in);
  const int64_t batches = std::max(a.size(0), b.size(0));
  const Tensor out = Tensor::empty(DimVector{batches, a.size(1), b.size(2)}, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  if (a.size(2) == 0) {
    out.fill(0);
    finish(op, out, bias, Tensor(), relu ? Activation::Relu : Activation::None);
    return out;
  }
  if (isIntegral(a.dtype(), false)) {
    addKernel(op, cuda::integerProductKernel(a, b, out));
    return out;
  }
  requireFloats(op, a.dtype());
  if (std::max({batches, a.size(1), b.size(2), a.size(2)}) > INT32_MAX) {
    throw NotAhead(
        fmt::format("{}: a matrix of 2^31 rows or columns is not available ahead of time", op));
  }
  const Tensor x = asMatrix(a), y = asMatrix(b);
  LibraryStep step;
  step.dtype = a.dtype();
  step.reduces = a.dtype() == DType::Float && allowedTf32() == Tf32::All;
  step.source = layoutOf(x);
  step.weight = layoutOf(y);
  step.result = layoutOf(out);
  step.activation = relu ? Activation::Relu : Activation::None;
  step.from = placeOf(x);
  step.weights = placeOf(y);
  step.to = placeOf(out);
  step.bias = placeOfAny(bias);
  Recording::current().add(op, std::move(step));
  return out;
}

bool isChannelsLast(const Tensor& t) {
  return t.dim() >= 4 && t.suggestMemoryFormat() != MemoryFormat::Contiguous;
}

class CudaAheadLayers : public RecordedLayers {
 public:
  Tensor batchedProduct(const char* op, const Tensor& a, const Tensor& b) override {
    return multiply(op, a, b, Tensor(), false);
  }

  Tensor linearProduct(const char* op, const Tensor& x_in, const Tensor& weight_in,
                       const Tensor& bias_in, const Epilogue& epilogue) override {
    const Tensor bias = here(bias_in), residual = here(epilogue.residual);
    const Tensor a = here(x_in).unsqueeze(0);
    const Tensor b = here(weight_in).transpose(0, 1).unsqueeze(0);
    const bool fused = isFloating(a.dtype()) && a.size(2) > 0;
    const bool relu = fused && epilogue.activation == Activation::Relu && !residual.defined();
    const Tensor dense = bias.defined() ? bias.contiguous() : bias;
    Tensor out = multiply(op, a, b, fused ? dense : Tensor(), relu).select(0, 0);
    if (isIntegral(a.dtype(), false)) {
      if (residual.defined() || epilogue.activation != Activation::None) {
        requireFloats(op, a.dtype());
      }
      return dense.defined() ? ops::add(out, dense) : out;
    }
    finish(op, out, fused ? Tensor() : dense, residual,
           relu ? Activation::None : epilogue.activation);
    return out;
  }

  Tensor convolution(const char* op, const Tensor& input_in, const Tensor& weight_in,
                     const Tensor& bias_in, const ConvolutionParams& params,
                     const Tensor& residual_in, Activation activation) override {
    requireFloats(op, input_in.dtype());
    const Tensor weight = here(weight_in), residual = here(residual_in);
    Tensor bias = here(bias_in);
    const Tensor given = here(input_in);
    if (bias.defined()) bias = bias.contiguous();
    const DimVector size = convolutionOutputSize(op, given, weight, bias, params);
    ConvolutionParams used = params;
    const Tensor input = cuda::paddedEvenly(given, used);
    // A weight that is known is moved while building. Its layout, which may be the one that inference was prepared with,
    // is followed where tensor cores multiply: they are quicker so, and other units are not.
    const bool reduces = input.dtype() == DType::Float && allowedTf32() != Tf32::Off;
    const bool has_cores = reduces || isReducedFloat(input.dtype());
    const bool weight_last =
        isChannelsLast(weight) && (has_cores || !Recording::current().known(weight).defined());
    const bool last = params.transposed ? params.keeps_layout && isChannelsLast(input)
                                        : isChannelsLast(input) || weight_last;
    const bool relu = activation == Activation::Relu;
    if (cuda::isDepthwise(input, weight, used)) {
      return depthwise(op, input, weight, bias, used, size, last, residual, activation);
    }
    const MemoryFormat format = cuda::formatFor(input, last);
    const Tensor x = cuda::asImages(input).contiguous(format),
                 w = cuda::asImages(weight).contiguous(format);
    DimVector sizes = size;
    if (sizes.size() == 3) sizes.insert(2, 1);
    const Tensor out = Tensor::empty(sizes, x.dtype(), x.device(), format);
    const Tensor result = input.dim() == 3 ? out.squeeze(2) : out;
    if (out.numel() == 0) return result;
    if (x.numel() == 0 || w.numel() == 0) {
      out.fill(0);
      finish(op, result, broadcast(bias, result.dim()), residual, activation);
      return result;
    }
    checkSizes(op, {&x, &w, &out});
    LibraryStep step;
    step.kind = params.transposed ? LibraryStep::Kind::Transposed : LibraryStep::Kind::Convolution;
    step.dtype = x.dtype();
    step.reduces = reduces;
    step.source = layoutOf(x);
    step.weight = layoutOf(w);
    step.result = layoutOf(out);
    step.stride = cuda::forImages(used.stride, 1);
    step.padding = cuda::forImages(used.padding, 0);
    step.dilation = cuda::forImages(used.dilation, 1);
    step.from = placeOf(x);
    step.weights = placeOf(w);
    step.to = placeOf(out);
    // cuDNN computes bias, residual and ReLU with the convolution, or a kernel does behind it.
    const bool joins = !params.transposed && input.dim() != 3 &&
                       (relu || activation == Activation::None) &&
                       (!residual.defined() || std::ranges::equal(residual.sizes(), IntSpan(size)));
    Tensor addend;
    if (joins) {
      if (bias.defined()) step.bias = placeOf(bias);
      if (residual.defined()) {
        addend = residual.contiguous(format);
        step.residual = LibraryStep::Residual::Apart;
        step.addend = placeOf(addend);
      }
      step.activation = activation;
    }
    Recording::current().add(op, std::move(step));
    if (!joins) finish(op, result, broadcast(bias, result.dim()), residual, activation);
    return result;
  }

  pooling::MaxResult maxPool(const char* op, const Tensor& x_in, const pooling::Axes& axes,
                             bool want_indices) override {
    const Tensor x = pooled(x_in);
    pooling::MaxResult result;
    result.values = cuda::emptyPooled(x, axes, x.dtype());
    if (want_indices) result.indices = cuda::emptyPooled(x, axes, DType::Long);
    if (result.values.numel() > 0) {
      addKernel(op, cuda::poolingKernel(x, result.values, result.indices,
                                        here(cuda::poolingTable(axes)), axes, {}));
    }
    return result;
  }

  Tensor averagePool(const char* op, const Tensor& x_in, const pooling::Axes& axes,
                     bool count_padding, std::optional<int64_t> divisor) override {
    const Tensor x = pooled(x_in);
    if (cuda::averagesWhole(x, axes, count_padding, divisor)) {
      DimVector dims;
      for (int64_t d = 2; d < x.dim(); ++d) dims.push_back(d);
      return ops::meanDims(x, dims, true);
    }
    const Tensor out = cuda::emptyPooled(x, axes, x.dtype());
    if (out.numel() == 0) return out;
    addKernel(op, cuda::poolingKernel(x, out, Tensor(), here(cuda::poolingTable(axes)), axes,
                                      {false, divisor.value_or(0), count_padding}));
    return out;
  }

  void weightedRows(const char* op, const Tensor& x, const Tensor& out, int64_t source_rows,
                    int64_t inner, const WeightedRows& rows) override {
    if (out.numel() == 0) return;
    // Of a table without entries nothing is read.
    const auto table = [](const Tensor& t) {
      return here(t.numel() > 0 ? t : Tensor::zeros(DimVector{1}, t.dtype()));
    };
    addKernel(op, cuda::weightedRowsKernel(here(x), out, source_rows, inner, rows, table));
  }

 private:
  static Tensor broadcast(const Tensor& bias, int64_t rank) {
    if (!bias.defined()) return bias;
    DimVector shape(static_cast<size_t>(rank), 1);
    shape[1] = bias.numel();
    return bias.reshape(shape);
  }
  static void checkSizes(const char* op, std::initializer_list<const Tensor*> tensors) {
    for (const Tensor* t : tensors) {
      for (const int64_t n : t->sizes()) {
        if (n > INT32_MAX) throw NotAhead(fmt::format("{}: a size of {} is too large", op, n));
      }
    }
  }
  // The layouts that the kernel knows.
  static Tensor pooled(const Tensor& x_in) {
    const Tensor x = here(x_in);
    return x.isContiguous() || isChannelsLast(x) ? x : x.contiguous();
  }
  static Tensor depthwise(const char* op, const Tensor& input, const Tensor& weight,
                          const Tensor& bias, const ConvolutionParams& params, IntSpan size,
                          bool last, const Tensor& residual, Activation activation) {
    const MemoryFormat format = last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous;
    const Tensor x = input.contiguous(format), w = weight.contiguous();
    const Tensor out = Tensor::empty(size, x.dtype(), x.device(), format);
    if (out.numel() == 0) return out;
    const bool all = activation == Activation::Relu && !residual.defined();
    addKernel(op, cuda::depthwiseKernel(x, w, bias, out, params, last, all));
    if (!all) finish(op, out, Tensor(), residual, activation);
    return out;
  }
};

}  // namespace

DeviceLayers& cudaLayers() {
  static CudaAheadLayers& layers = *new CudaAheadLayers;
  return layers;
}

}  // namespace wick::aot
