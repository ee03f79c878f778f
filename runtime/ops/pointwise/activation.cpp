// Activations, and dropout as far as it is pointwise.
#include <cmath>

#include "codegen/scalar/activations.h"
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/mathematics.h"
#include "runtime/ops/pointwise/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

using namespace scalar;

Tensor relu(const Tensor& self, Out out) {
  WICK_CHECK(self.dtype() != DType::Bool, "Boolean inputs not supported for relu");
  return unary<Relu>(self, out);
}
Tensor hardtanh(const Tensor& self, const Scalar& min, const Scalar& max, Out out) {
  WICK_CHECK(self.dtype() != DType::Bool, "Bool inputs not supported for hardtanh");
  // Limits of integers are integers: -0.5 is zero, and no negative limit.
  const bool whole = isIntegral(self.dtype(), true);
  const auto limit = [&](const Scalar& n) {
    return whole && std::fabs(n.toDouble()) < 1 ? Scalar(0) : n;
  };
  const Scalar least = limit(min), most = limit(max);
  WICK_CHECK(self.dtype() != DType::Byte || (least.toDouble() >= 0 && most.toDouble() >= 0),
             "cannot do hardtanh on an unsigned type with negative limits");
  return pointwise(kScalar<Hardtanh>, out, self, least, most);
}
Tensor relu6(const Tensor& self, Out out) {
  return hardtanh(self, Scalar(0), Scalar(6), out);
}
Tensor leakyRelu(const Tensor& self, const Scalar& slope, Out out) {
  return pointwise(kScalar<LeakyRelu>, out, self, slope);
}
Tensor eluOf(const Tensor& self, double alpha, double scale, double input_scale, Out out) {
  return pointwise(kScalar<Elu>, out, self, Scalar(alpha * scale), Scalar(scale),
                   Scalar(input_scale));
}
Tensor elu(const Tensor& self, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
           Out out) {
  return eluOf(self, alpha.toDouble(), scale.toDouble(), input_scale.toDouble(), out);
}
Tensor selu(const Tensor& self, Out out) {
  return eluOf(self, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1, out);
}
Tensor celu(const Tensor& self, const Scalar& alpha, Out out) {
  WICK_CHECK(alpha.toDouble() != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
  return eluOf(self, alpha.toDouble(), 1, 1 / alpha.toDouble(), out);
}
Tensor gelu(const Tensor& self, const std::string& approximate, Out out) {
  if (approximate == "none") return unary<Gelu>(self, out);
  if (approximate == "tanh") return unary<GeluTanh>(self, out);
  throwRuntimeError("approximate argument must be either none or tanh.");
}
Tensor softplus(const Tensor& self, const Scalar& beta, const Scalar& threshold, Out out) {
  return pointwise(kScalar<Softplus>, out, self, beta, threshold);
}
void checkLambda(const Scalar& lambda) {
  WICK_CHECK(lambda.toDouble() >= 0, "lambda must be greater or equal to 0, but found to be {:g}.",
             lambda.toDouble());
}
Tensor softshrink(const Tensor& self, const Scalar& lambda, Out out) {
  checkLambda(lambda);
  return pointwise(kScalar<Softshrink>, out, self, lambda);
}
Tensor hardshrink(const Tensor& self, const Scalar& lambda, Out out) {
  return pointwise(kScalar<Hardshrink>, out, self, lambda);
}
Tensor threshold(const Tensor& self, const Scalar& limit, const Scalar& value, Out out) {
  if (!out || !out.tensor->isSame(self)) {
    return pointwise(kScalar<Threshold>, out, self, limit, value);
  }
  Tensor target = distinctElements(self);
  pointwise(kScalar<Threshold>, &target, target, limit, value);
  return self;
}
std::tuple<Tensor, Tensor> logSigmoidForward(const Tensor& self) {
  // The second result is what the backward pass reuses.
  return {unary<LogSigmoid>(self, Out{}),
          unary<Exp>(unary<Neg>(unary<Abs>(self, Out{}), Out{}), Out{})};
}

// One weight for all, or one for each channel, which is dimension 1.
Tensor prelu(const Tensor& self, const Tensor& weight, Out out) {
  WICK_CHECK(weight.defined(), "prelu: expected a weight, got None");
  WICK_CHECK(weight.dim() <= 1,
             "prelu: Expected `weight` to be a scalar or 1D tensor, but got ndim = {}",
             weight.dim());
  Tensor w = weight;
  if (weight.numel() != 1) {
    WICK_CHECK(self.dim() > 0, "Not allow zero-dim input tensor.");
    int64_t channels = self.dim() > 1 ? self.size(1) : 1;
    WICK_CHECK(channels == weight.numel(),
               "Mismatch of parameter numbers and input channel size. Found parameter numbers = {} "
               "and channel size = {}.",
               weight.numel(), channels);
    DimVector shape(self.dim(), 1);
    shape[1] = channels;
    w = weight.reshape(shape);
  } else {
    w = weight.reshape(IntSpan());
  }
  WICK_CHECK(self.dtype() == weight.dtype(), "expected scalar type {} but found {}",
             scalarTypeName(self.dtype()), scalarTypeName(weight.dtype()));
  return binary<Prelu>(self, w, out);
}

// A tensor of the sizes of `self` whose elements are 1 / (1 - p) with probability 1 - p and 0
// otherwise. They are drawn row by row, whatever order those of `self` lie in.
Tensor dropoutNoise(const Tensor& self, double p) {
  const bool wide = self.dtype() == DType::Double || self.dtype() == DType::ComplexDouble;
  const Tensor keep = Tensor::empty(self.sizes(), wide ? DType::Double : DType::Float);
  GeneratorObject& generator = defaultGenerator();
  dispatch<kFloats>("dropout", keep.dtype(), [&]<class T>() {
    T* values = static_cast<T*>(keep.rawData());
    for (int64_t i = 0; i < keep.numel(); ++i) {
      values[i] = generator.uniformDouble() < 1 - p ? T{1} : T{0};
    }
  });
  return pointwise(kScalar<TrueDiv>, nullptr, keep, Scalar(1 - p)).to(self.dtype());
}
Tensor dropout(const Tensor& input, double p, bool train, Out out) {
  WICK_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got {}", p);
  if (p == 0 || !train || input.numel() == 0) return input;
  WICK_CHECK(isFloating(input.dtype()) || isComplex(input.dtype()),
             "dropout: expected a floating point tensor, got {}", toString(input.dtype()));
  if (p == 1) return pointwise(kScalar<Mul>, out, input, Scalar(0.0));
  WICK_CHECK(input.device().isCpu(), "dropout: no kernel for device {}", input.device().str());
  return binary<Mul>(input, dropoutNoise(input, p), out);
}
Tensor dropoutInPlace(const Tensor& self, double p, bool train) {
  return dropout(self, p, train, Out{&self});
}
// Random slopes when training, their mean otherwise.
Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             Generator* generator, Out out) {
  double low = lower.toDouble();
  double high = upper.toDouble();
  WICK_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  if (!training) {
    return pointwise(kScalar<LeakyRelu>, out, self, Scalar((low + high) / 2));
  }
  WICK_CHECK(isFloating(self.dtype()), "\"rrelu_with_noise_out_cpu\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
  const Tensor values = self.contiguous().to(DType::Double);
  Tensor slopes = Tensor::empty(self.sizes(), DType::Double);
  for (int64_t i = 0; i < slopes.numel(); ++i) {
    // Others draw no number.
    const bool scaled = values.data<double>()[i] <= 0;
    slopes.data<double>()[i] = scaled ? low + (high - low) * generator->uniformDouble() : 1;
  }
  return binary<Prelu>(self, slopes.to(self.dtype()), out);
}

const OperatorRecord kActivationRecords[] = {
    {"aten::relu(Tensor self) -> Tensor", WICK_KERNEL(relu), kBothForms | kOutAny, nullptr,
     &kScalar<Relu>},
    {"aten::relu6(Tensor self) -> Tensor", WICK_KERNEL(relu6), kInplaceForm | kNeutralLast,
     shapes::likeFirst},
    WICK_UNARY_OP("sigmoid", Sigmoid, kBothForms),
    WICK_UNARY_OP("silu", Silu, kBothForms | kOutSame),
    WICK_UNARY_OP("mish", Mish, kBothForms | kOutSame),
    WICK_UNARY_OP("hardswish", Hardswish, kBothForms | kOutSame),
    WICK_UNARY_OP("hardsigmoid", Hardsigmoid, kBothForms | kOutSame),
    {"aten::log_sigmoid(Tensor self) -> Tensor", WICK_KERNEL(unary<LogSigmoid>),
     kOutForm | kOutSame | kNeutralLast, nullptr, &kScalar<LogSigmoid>},
    {"aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
     WICK_KERNEL(logSigmoidForward), kNeutral},
    {"aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", WICK_KERNEL(leakyRelu),
     kBothForms | kOutSame, nullptr, &kScalar<LeakyRelu>},
    {"aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
     WICK_KERNEL(elu), kBothForms | kOutSame | kNeutralLast, shapes::likeFirst},
    {"aten::selu(Tensor self) -> Tensor", WICK_KERNEL(selu), kInplaceForm | kNeutralLast,
     shapes::likeFirst},
    {"aten::celu(Tensor self, Scalar alpha=1.0) -> Tensor", WICK_KERNEL(celu),
     kBothForms | kOutAny | kNeutralLast, shapes::likeFirst},
    {"aten::gelu(Tensor self, *, str approximate=\"none\") -> Tensor", WICK_KERNEL(gelu),
     kBothForms | kOutSame | kNeutralLast | kCastFull, shapes::likeFirst},
    {"aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
     WICK_KERNEL(hardtanh), kBothForms | kOutSame, nullptr, &kScalar<Hardtanh>},
    {"aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
     WICK_KERNEL(softplus), kOutForm | kOutSame | kCastFull, nullptr, &kScalar<Softplus>},
    {"aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", WICK_KERNEL(softshrink),
     kOutForm | kOutSame, nullptr, &kScalar<Softshrink>},
    {"aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", WICK_KERNEL(hardshrink),
     kOutForm | kOutSame, nullptr, &kScalar<Hardshrink>},
    {"aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
     WICK_KERNEL(threshold), kBothForms, nullptr, &kScalar<Threshold>},
    {"aten::prelu(Tensor self, Tensor weight) -> Tensor", WICK_KERNEL(prelu),
     kOutForm | kOutAny | kNeutral | kCastReduced, shapes::likeFirst},
    {"aten::dropout(Tensor input, float p, bool train) -> Tensor", WICK_KERNEL(dropout),
     kNondeterministic | kMayReturnArgument, shapes::likeFirst},
    {"aten::dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)",
     WICK_KERNEL(dropoutInPlace), kNondeterministic},
    {"aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool "
     "training=False, Generator? generator=None) -> Tensor",
     WICK_KERNEL(rrelu), kInplaceForm | kNondeterministic, shapes::likeFirst},
};

constexpr OperatorAlias kActivationAliases[] = {
    {"aten::special_expit", "aten::sigmoid"},
};

const RegisterOperators kActivationRegistered(kActivationRecords, kActivationAliases);

}  // namespace

}  // namespace wick::ops
