#include "training/update_operators.h"

#include "core/device_backend.h"
#include "runtime/ops/common_calls.h"

namespace wick::training {
namespace {

const OperatorHandle kShift{"aten::add_", "Scalar"}, kAddProduct{"aten::addcmul", ""},
    kAddProductTo{"aten::addcmul_", ""}, kAddQuotientTo{"aten::addcdiv_", ""};

// The operands, with complex numbers as pairs of real ones.
struct Operands {
  Tensor parameter;
  Tensor gradient;
  std::array<Tensor, 3> buffers;
};

// What the loops call the gradient: with its sign, and with the decay of weights in it.
Tensor gradientOf(const Operands& of, const UpdateNumbers& u) {
  Tensor g = of.gradient;
  if (u.sign < 0) g = ops::neg(g);
  if (u.weight_decay != 0) g = ops::add(g, of.parameter, Scalar(u.weight_decay));
  return g;
}

// sqrt(t) / by + eps.
Tensor root(const Tensor& t, double by, double eps) {
  Tensor made = ops::sqrt(t);
  if (by != 1) made = ops::divScalar(made, Scalar(by));
  return kShift(made, Scalar(eps), Scalar(1));
}

void apply(const Sgd& rule, const Operands& of, const UpdateNumbers& u) {
  Tensor g = gradientOf(of, u);
  if (rule.momentum != 0) {
    const Tensor& buffer = of.buffers[0];
    const bool first = u.beta1 != 0;
    if (first && u.fresh != 1) {
      ops::copyInto(buffer, g, false);
    } else {
      // A new buffer is full of -0.0, to which any number may be added without a change.
      ops::addInto(ops::mulScalarInto(buffer, Scalar(u.momentum)), g, Scalar(u.fresh));
    }
    g = rule.nesterov ? ops::add(g, buffer, Scalar(u.momentum)) : buffer;
  }
  ops::addInto(of.parameter, g, Scalar(u.rate));
}

template <class Rule>
void applyAdam(const Rule& rule, const Operands& of, const UpdateNumbers& u) {
  if (u.shrink != 1) ops::mulScalarInto(of.parameter, Scalar(u.shrink));
  const Tensor g = gradientOf(of, u);
  const Tensor& average = of.buffers[0];
  Tensor square = of.buffers[1];
  ops::addInto(ops::mulScalarInto(average, Scalar(u.beta1)), g, Scalar(u.fresh));
  kAddProductTo(ops::mulScalarInto(square, Scalar(u.beta2)), g, g, Scalar(u.fresh2));
  if (rule.amsgrad) {
    square = ops::maximum(of.buffers[2], square);
    ops::copyInto(of.buffers[2], square, false);
  }
  kAddQuotientTo(of.parameter, average, root(square, u.correction, u.eps), Scalar(u.rate));
}
void apply(const Adam& rule, const Operands& of, const UpdateNumbers& u) {
  applyAdam(rule, of, u);
}
void apply(const AdamW& rule, const Operands& of, const UpdateNumbers& u) {
  applyAdam(rule, of, u);
}

void apply(const RmsProp& rule, const Operands& of, const UpdateNumbers& u) {
  const Tensor g = gradientOf(of, u);
  Tensor square = of.buffers[0];
  kAddProductTo(ops::mulScalarInto(square, Scalar(u.beta2)), g, g, Scalar(u.fresh2));
  if (rule.centered) {
    const Tensor& average = of.buffers[2];
    ops::addInto(ops::mulScalarInto(average, Scalar(u.beta2)), g, Scalar(u.fresh2));
    square = kAddProduct(square, average, average, Scalar(-1));
  }
  const Tensor scale = root(square, 1, u.eps);
  if (rule.momentum > 0) {
    kAddQuotientTo(ops::mulScalarInto(of.buffers[1], Scalar(u.momentum)), g, scale, Scalar(1));
    ops::addInto(of.parameter, of.buffers[1], Scalar(u.rate));
  } else {
    kAddQuotientTo(of.parameter, g, scale, Scalar(u.rate));
  }
}

void apply(const Adagrad&, const Operands& of, const UpdateNumbers& u) {
  const Tensor g = gradientOf(of, u);
  const Tensor& sum = of.buffers[0];
  kAddProductTo(sum, g, g, Scalar(1));
  kAddQuotientTo(of.parameter, g, root(sum, 1, u.eps), Scalar(u.rate));
}

Tensor asReal(const Tensor& t) {
  return t.defined() && isComplex(t.dtype()) ? ops::viewAsReal(t) : t;
}

}  // namespace

void updateByOperators(const UpdateRule& rule, const UpdateNumbers& numbers,
                       const Tensor& parameter, const Tensor& gradient,
                       const std::array<Tensor, 3>& buffers) {
  Operands of{asReal(parameter.detach()), asReal(gradient.detach()), {}};
  for (size_t i = 0; i < buffers.size(); ++i) of.buffers[i] = asReal(buffers[i]);
  std::visit([&](const auto& known) { apply(known, of, numbers); }, rule);
}

Tensor newBuffer(const Tensor& parameter, double value) {
  const Tensor& p = parameter;
  const Tensor made =
      p.isNonOverlappingAndDense()
          ? Tensor::emptyStrided(p.sizes(), p.strides(), p.dtype())
          : Tensor::emptyStrided(p.sizes(), denseStrides(p.sizes(), p.strides()), p.dtype());
  if (isComplex(p.dtype())) {
    // The value in both parts.
    made.copyFrom(Tensor::scalar(std::complex<double>(value, value)).to(p.dtype()));
  } else {
    made.fill(value);
  }
  return p.device().isCpu() ? made : moveTo(made, p.device());
}

}  // namespace wick::training
