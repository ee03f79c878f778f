// Kernels that most pointwise operators share: a scalar definition applied to the arguments in the
// schema's order.
#pragma once

#include "runtime/kernels/pointwise.h"
#include "runtime/ops/boxing.h"

namespace wick::ops {

// The same with an operator's Out.
inline Tensor pointwise(const ScalarDefinition& def, std::span<const Operand> operands, Out out) {
  return wick::pointwise(def, operands, out.tensor, out.spare);
}
template <class... Operands>
Tensor pointwise(const ScalarDefinition& def, Out out, const Operands&... operands) {
  const Operand list[] = {Operand(operands)...};
  return wick::pointwise(def, list, out.tensor, out.spare);
}

template <class Def>
Tensor unary(const Tensor& self, Out out) {
  return pointwise(kScalar<Def>, out, self);
}
template <class Def>
Tensor binary(const Tensor& self, const Tensor& other, Out out) {
  return pointwise(kScalar<Def>, out, self, other);
}
template <class Def>
Tensor binaryNumber(const Tensor& self, const Scalar& other, Out out) {
  return pointwise(kScalar<Def>, out, self, other);
}
template <class Def>
Tensor numberBinary(const Scalar& self, const Tensor& other, Out out) {
  return pointwise(kScalar<Def>, out, self, other);
}
template <class Def>
Tensor ternary(const Tensor& a, const Tensor& b, const Tensor& c, Out out) {
  return pointwise(kScalar<Def>, out, a, b, c);
}

// Throws RuntimeError when an integer division by `divisor` would divide by zero. `dividend` is the
// dtype of the other operand; divisions in floating point pass.
void checkDivisor(const Operand& dividend, const Operand& divisor);

}  // namespace wick::ops

// Records of operators whose kernel is the shared one.
#define WICK_UNARY_OP(name, Def, flags)                                                     \
  {                                                                                         \
    "aten::" name "(Tensor self) -> Tensor", WICK_KERNEL(::wick::ops::unary<Def>), (flags), \
        nullptr, &kScalar<Def>                                                              \
  }
#define WICK_BINARY_OP(schema, Def, flags) \
  { "aten::" schema, WICK_KERNEL(::wick::ops::binary<Def>), (flags), nullptr, &kScalar<Def> }
#define WICK_BINARY_NUMBER_OP(schema, Def, flags) \
  { "aten::" schema, WICK_KERNEL(::wick::ops::binaryNumber<Def>), (flags), nullptr, &kScalar<Def> }
#define WICK_NUMBER_BINARY_OP(schema, Def, flags) \
  { "aten::" schema, WICK_KERNEL(::wick::ops::numberBinary<Def>), (flags), nullptr, &kScalar<Def> }
