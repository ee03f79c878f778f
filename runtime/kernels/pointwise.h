// The engine of pointwise operators: broadcasts operands, promotes their dtypes as PyTorch does,
// allocates the result in the operands' memory order, and runs a scalar definition's loop over it
// on all threads.
#pragma once

#include <span>

#include "codegen/scalar/definition.h"
#include "core/dtype_promotion.h"
#include "core/scalar.h"
#include "core/tensor.h"

namespace wick {

// One input of a pointwise operator.
struct Operand {
  Operand(const Tensor& t) : tensor(&t) {}
  Operand(const Scalar& n) : number(n) {}
  const Tensor* tensor = nullptr;  // null: the number; alive during the call
  Scalar number;
};

inline void addTo(DTypePromotion& types, const Tensor& t) {
  types.addTensor(t.dtype(), t.dim() > 0);
}
inline void addTo(DTypePromotion& types, const Scalar& n) {
  types.addNumber(n.dtype());
}
inline void addTo(DTypePromotion& types, const Operand& o) {
  if (o.tensor) {
    addTo(types, *o.tensor);
  } else {
    addTo(types, o.number);
  }
}
// The dtype that operands compute in together, before an operator's own rule (DTypePromotion).
DType resultType(std::span<const Operand> operands);

// Computes `def` over the operands, in the definition's order. With a destination the result is
// written there and it is returned: its dtype must be one that the result casts to; it is resized
// when its shape differs, unless it is also an operand (an in-place form), which is refused.
// Overlap of operands with the destination is refused or resolved as PyTorch does.
//
// Without a destination the result may take the place of `spare`, an operand that the caller does
// not read again: when that is the only handle on its memory and has the result's shape, dtype and
// layout.
//
// Throws RuntimeError, beginning with the definition's name, for dtypes that it does not accept.
Tensor pointwise(const ScalarDefinition& def, std::span<const Operand> operands,
                 const Tensor* destination = nullptr, const Tensor* spare = nullptr);

template <class... Operands>
Tensor pointwise(const ScalarDefinition& def, const Tensor* destination,
                 const Operands&... operands) {
  const Operand list[] = {Operand(operands)...};
  return pointwise(def, list, destination);
}

// Returns an uninitialized tensor for the result of `def`, of that shape, which the operands broadcast to: in their memory order.
Tensor emptyResult(const ScalarDefinition& def, std::span<const Operand> operands, IntSpan shape,
                   DType dtype, Device device);

// A view of one element of each group that shares memory because `t` was expanded: dimensions of
// stride zero have size one. What is written to it is written to all of `t`.
Tensor distinctElements(const Tensor& t);

// Refuses a destination in which elements share memory, or whose memory is read-only.
void checkWritable(const char* op, const Tensor& out);

}  // namespace wick
