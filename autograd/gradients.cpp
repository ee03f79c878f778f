#include "autograd/gradients.h"

#include <algorithm>

#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/common_calls.h"

namespace wick::autograd {

Tensor sumOfGradients(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return ops::add(a, b, Scalar(int64_t{1}));
}

void addGradient(Tensor& sum, const Tensor& gradient) {
  // Nobody else sees a tensor when this is the only reference to it.
  const auto ours = [](const Tensor& t) {
    return t.impl()->useCount() == 1 && t.storage()->useCount() == 1 && !t.impl()->history &&
           t.isNonOverlappingAndDense();
  };
  if (sum.defined() && gradient.defined() && !gradEnabled() && sum.dtype() == gradient.dtype() &&
      std::ranges::equal(sum.sizes(), gradient.sizes()) && sum.kind() == TensorKind::Dense &&
      gradient.kind() == TensorKind::Dense && ours(sum)) {
    ops::addInto(sum, gradient, Scalar(int64_t{1}));
    return;
  }
  sum = sumOfGradients(sum, gradient);
}

bool broadcastsTo(IntSpan from, IntSpan to) {
  if (from.size() > to.size()) return false;
  const size_t more = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1 && from[d] != to[more + d]) return false;
  }
  return true;
}

Tensor fitted(const Tensor& gradient, const Shape& shape, const std::string& where) {
  static const OperatorHandle kSum("aten::sum_to_size", ""), kMove("aten::to", "prim_Device");
  if (!gradient.defined()) return gradient;
  Tensor out = gradient;
  if (!std::ranges::equal(out.sizes(), shape.sizes)) {
    WICK_CHECK(broadcastsTo(shape.sizes, out.sizes()),
               "{} returned an invalid gradient: got {}, expected a shape compatible with {}",
               where, formatInts(out.sizes()), formatInts(shape.sizes));
    out = kSum(out, IntSpan(shape.sizes));
  }
  if (isComplex(out.dtype()) && !isComplex(shape.dtype)) out = ops::real(out);
  if (out.dtype() != shape.dtype) {
    out = ops::toDType(out, static_cast<int64_t>(shape.dtype), false, false, IValue());
  }
  // The operator may have copied to another device.
  if (out.device() != shape.device) out = kMove(out, shape.device, IValue(), false, false);
  return out;
}

Tensor zerosFor(const Shape& shape) {
  return Tensor::zeros(shape.sizes, shape.dtype, shape.device);
}

Tensor copyOf(const Tensor& t) {
  if (t.kind() != TensorKind::Nested) return t.detach().clone();
  return ops::clone(t.detach(), IValue());
}

}  // namespace wick::autograd
