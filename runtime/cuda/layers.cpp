// Layers on CUDA devices: products, convolutions, resampling.
#include <fmt/format.h>

#include "core/error.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/convolution.h"
#include "runtime/cuda/depthwise.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/layer_kernels.h"
#include "runtime/cuda/plain_convolution.h"
#include "runtime/cuda/pointwise.h"
#include "runtime/cuda/pooling.h"
#include "runtime/cuda/recurrent.h"
#include "runtime/cuda/tables.h"
#include "runtime/cuda/text_kernel.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

// ---- products of integers, which no library has ----

Tensor integerProduct(const Tensor& a, const Tensor& b) {
  const int64_t batches = std::max(a.size(0), b.size(0));
  const Tensor out = Tensor::empty(DimVector{batches, a.size(1), b.size(2)}, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  launchText(enter(a.device()), integerProductKernel(a, b, out));
  return out;
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

void sumWeightedRows(const Tensor& x, const Tensor& out, int64_t source_rows, int64_t inner,
                     const WeightedRows& rows) {
  if (out.numel() == 0) return;
  const auto table = [&](const Tensor& t) { return tableOn(x.device(), t); };
  launchText(enter(x.device()), weightedRowsKernel(x, out, source_rows, inner, rows, table));
}

// ---- complex numbers, for libraries that have none ----

// f is linear in both arguments; f(a, b) of their real and imaginary parts.
template <class F>
Tensor inParts(const Tensor& a, const Tensor& b, F&& f) {
  const Tensor ar = ops::real(a), ai = ops::imag(a), br = ops::real(b), bi = ops::imag(b);
  return ops::complex(ops::sub(f(ar, br), f(ai, bi)), ops::add(f(ar, bi), f(ai, br)));
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
    ConvolutionParams used = params;
    Tensor x = paddedEvenly(input, used);
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
    return cuda::maxPool(x, axes, want_indices);
  }
  Tensor averagePool(const char*, const Tensor& x, const pooling::Axes& axes, bool count_padding,
                     std::optional<int64_t> divisor) override {
    return cuda::averagePool(x, axes, count_padding, divisor);
  }
  void weightedRows(const char*, const Tensor& x, const Tensor& out, int64_t source_rows,
                    int64_t inner, const WeightedRows& rows) override {
    sumWeightedRows(x, out, source_rows, inner, rows);
  }
  void lstmStep(const LstmStep& step) override { cuda::lstmStep(step); }
  void lstmStepGradient(const LstmStepGradient& step) override { cuda::lstmStepGradient(step); }
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
