// Pointwise operators on CUDA devices by their scalar definitions, complex numbers among them.
#pragma once

#include <span>

#include "core/device.h"
#include "ir/operator.h"
#include "runtime/kernels/pointwise.h"

namespace wick::cuda {

// As wick::pointwise(), into a new tensor. Throws NotOnDevice for definitions without arithmetic for
// the dtype.
Tensor computePointwise(const ScalarDefinition& definition, std::span<const Operand> operands,
                        Device device);
template <class... Operands>
Tensor computePointwise(const ScalarDefinition& definition, Device device,
                        const Operands&... operands) {
  const Operand list[] = {Operand(operands)...};
  return computePointwise(definition, list, device);
}

// Computes a pointwise operator on complex numbers, which the loop forms of groups do not have, by its
// record's definition. False, and nothing happened, for other calls.
bool computeByDefinition(CallFrame& frame, Device device);

}  // namespace wick::cuda
