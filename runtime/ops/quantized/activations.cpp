// Activations of quantized tensors: those that keep the grid compare integers, the others compute
// each of the 256 integers' real numbers once.
#include <cmath>

#include "ir/kind_kernels.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/quantized/record_flags.h"
#include "runtime/ops/quantized/values.h"

namespace wick::ops::quantized {

namespace {

int64_t integerOf(const char* op, const Tensor& q, double value) {
  return Rounding(gridOf(perTensorQuantizerOf(op, q)), q.dtype())(static_cast<float>(value));
}

Tensor between(const char* op, const Tensor& q, int64_t least, int64_t most) {
  return mapIntegers(op, q, [=](int64_t v) { return std::min(std::max(v, least), most); });
}

// ---- on the tensor's own grid ----

Tensor relu(const Tensor& self) {
  return between("relu", self, perTensorQuantizerOf("relu", self).zeroPoint(), INT64_MAX);
}
Tensor relu6(const Tensor& self) {
  const char* op = "relu6";
  return between(op, self, perTensorQuantizerOf(op, self).zeroPoint(), integerOf(op, self, 6));
}
Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  const char* op = "clamp";
  WICK_CHECK(min || max, "{}: Both min and max is None", op);
  return between(op, self, min ? integerOf(op, self, min->toDouble()) : INT64_MIN,
                 max ? integerOf(op, self, max->toDouble()) : INT64_MAX);
}
Tensor hardtanh(const Tensor& self, const Scalar& min, const Scalar& max) {
  const char* op = "hardtanh";
  return between(op, self, integerOf(op, self, min.toDouble()),
                 integerOf(op, self, max.toDouble()));
}
Tensor thresholded(const Tensor& self, const Scalar& threshold, const Scalar& value) {
  const char* op = "quantized::threshold";
  const auto least = static_cast<float>(threshold.toDouble());
  const auto other = static_cast<float>(value.toDouble());
  return mapReal(op, self, gridOf(perTensorQuantizerOf(op, self)),
                 [=](float x) { return x > least ? x : other; });
}

// ---- onto the grid that PyTorch has for the range of the result ----

// [0, 1] with the least integer at zero.
Grid unitGrid(DType dtype) {
  if (dtype == DType::QInt32) return {0x1p-32, 0};
  return {0x1p-8, dtype == DType::QInt8 ? -128 : 0};
}
Tensor sigmoid(const Tensor& self) {
  return mapReal("sigmoid", self, unitGrid(self.dtype()),
                 [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
}
Tensor tanh(const Tensor& self) {
  const DType dtype = self.dtype();
  const Grid grid = dtype == DType::QInt32
                        ? Grid{0x1p-31, 0}
                        : Grid{0x1p-7, dtype == DType::QUInt8 ? int64_t{128} : 0};
  return mapReal("tanh", self, grid, [](float x) { return std::tanh(x); });
}
float hardSigmoidOf(float x) {
  return std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f;
}
Tensor hardsigmoid(const Tensor& self) {
  return mapReal("hardsigmoid", self, unitGrid(self.dtype()), hardSigmoidOf);
}

// The scale of the result went through float32.
Tensor gelu(const Tensor& self, const IValue& approximate) {
  const char* op = "gelu";
  const Quantizer& q = perTensorQuantizerOf(op, self);
  return quantize(op, ops::gelu(dequantize(op, self), approximate),
                  {static_cast<float>(q.scale()), q.zeroPoint()}, self.dtype());
}

// ---- onto a given grid ----

Tensor sigmoidOn(const Tensor& qx, double scale, int64_t zero_point) {
  return mapReal("quantized::sigmoid", qx, {scale, zero_point},
                 [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
}
Tensor hardswish(const Tensor& input, double scale, int64_t zero_point) {
  return mapReal("quantized::hardswish", input, {scale, zero_point},
                 [](float x) { return x * std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f; });
}
Tensor leakyRelu(const Tensor& qx, const Scalar& slope, bool, double scale, int64_t zero_point) {
  const auto factor = static_cast<float>(slope.toDouble());
  return mapReal("quantized::leaky_relu", qx, {scale, zero_point},
                 [=](float x) { return x > 0 ? x : x * factor; });
}
Tensor elu(const Tensor& self, double out_scale, int64_t zero_point, const Scalar& alpha,
           const Scalar& scale, const Scalar& input_scale) {
  const auto negative = static_cast<float>(alpha.toDouble() * scale.toDouble());
  const auto positive = static_cast<float>(scale.toDouble());
  const auto inner = static_cast<float>(input_scale.toDouble());
  return mapReal("quantized::elu", self, {out_scale, zero_point}, [=](float x) {
    return x >= 0 ? x * positive : (std::exp(x * inner) - 1) * negative;
  });
}
Tensor celu(const Tensor& self, double out_scale, int64_t zero_point, const Scalar& alpha) {
  WICK_CHECK(alpha.toDouble() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return elu(self, out_scale, zero_point, alpha, Scalar(1.0), Scalar(1.0 / alpha.toDouble()));
}
Tensor prelu(const Tensor& qx, const Tensor& weight, double scale, int64_t zero_point) {
  const char* op = "quantized::prelu";
  static const OperatorHandle kPrelu("aten::prelu", "");
  perTensorQuantizerOf(op, qx);
  return quantize(op, kPrelu(dequantize(op, qx), dequantize(op, weight)), {scale, zero_point},
                  qx.dtype());
}
Tensor softmax(const Tensor& qx, int64_t dim, double scale, int64_t zero_point) {
  const char* op = "quantized::softmax";
  perTensorQuantizerOf(op, qx);
  return quantize(op, ops::softmax(dequantize(op, qx), dim), {scale, zero_point}, qx.dtype());
}
Tensor dropout(const Tensor& self, double, int64_t, const Scalar&, bool) {
  perTensorQuantizerOf("quantized::dropout", self);
  return clone(self);  // the schema promises a new tensor
}

// Writes what f returns into the tensor itself.
Tensor write(const char* op, const Tensor& self, const Tensor& result) {
  copyInto(op, self, result);
  return self;
}
Tensor reluInto(const Tensor& self) {
  return write("relu_", self, relu(self));
}
Tensor relu6Into(const Tensor& self) {
  return write("relu6_", self, relu6(self));
}
Tensor hardtanhInto(const Tensor& self, const Scalar& min, const Scalar& max) {
  return write("hardtanh_", self, hardtanh(self, min, max));
}
Tensor clampInto(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  return write("clamp_", self, clamp(self, min, max));
}
Tensor leakyReluInto(const Tensor& self, const Scalar& slope) {
  const Grid grid = gridOf(perTensorQuantizerOf("leaky_relu_", self));
  return write("leaky_relu_", self, leakyRelu(self, slope, true, grid.scale, grid.zero_point));
}
Tensor relu6Maybe(const Tensor& qx, bool inplace) {
  return inplace ? relu6Into(qx) : relu6(qx);
}

const OperatorRecord kActivationsRecords[] = {
    {"quantized::relu6(Tensor qx, bool inplace=False) -> Tensor", WICK_CPU_KERNEL(relu6Maybe),
     kPlain, nullptr, nullptr, "qx if inplace"},
    {"quantized::clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy",
     WICK_CPU_KERNEL(clamp), kPlain},
    {"quantized::threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy",
     WICK_CPU_KERNEL(thresholded), kPlain},
    {"quantized::sigmoid(Tensor qx, float output_scale, int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL(sigmoidOn), kPlain},
    {"quantized::hardswish(Tensor input, float output_scale, int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL(hardswish), kPlain},
    {"quantized::leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, float output_scale, "
     "int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL(leakyRelu), kPlain},
    {"quantized::elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, "
     "Scalar scale=1, Scalar input_scale=1) -> Tensor",
     WICK_CPU_KERNEL(elu), kPlain},
    {"quantized::celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> "
     "Tensor",
     WICK_CPU_KERNEL(celu), kPlain},
    {"quantized::prelu(Tensor qx, Tensor weight, float output_scale, int output_zero_point) -> "
     "Tensor",
     WICK_CPU_KERNEL(prelu), kPlain},
    {"quantized::softmax(Tensor qx, int dim, float output_scale, int output_zero_point) -> Tensor",
     WICK_CPU_KERNEL(softmax), kPlain},
    {"quantized::dropout(Tensor self, float output_scale, int output_zero_point, Scalar p=0.5, "
     "bool training=False) -> Tensor",
     WICK_CPU_KERNEL(dropout), kPlain},
};
const RegisterOperators kActivationsRegistered(kActivationsRecords);

const KindKernel kActivationsKernels[] = {
    {"aten::relu", WICK_CPU_KERNEL(relu)},
    {"aten::relu_", WICK_CPU_KERNEL(reluInto)},
    {"aten::relu6", WICK_CPU_KERNEL(relu6)},
    {"aten::relu6_", WICK_CPU_KERNEL(relu6Into)},
    {"aten::clamp", WICK_CPU_KERNEL(clamp)},
    {"aten::clamp_", WICK_CPU_KERNEL(clampInto)},
    {"aten::hardtanh", WICK_CPU_KERNEL(hardtanh)},
    {"aten::hardtanh_", WICK_CPU_KERNEL(hardtanhInto)},
    {"aten::leaky_relu_", WICK_CPU_KERNEL(leakyReluInto)},
    {"aten::sigmoid", WICK_CPU_KERNEL(sigmoid)},
    {"aten::tanh", WICK_CPU_KERNEL(tanh)},
    {"aten::gelu", WICK_CPU_KERNEL(gelu)},
    {"aten::hardsigmoid", WICK_CPU_KERNEL(hardsigmoid)},
};
const RegisterKindKernels registered_kinds(TensorKind::Quantized, kActivationsKernels);

}  // namespace

}  // namespace wick::ops::quantized
