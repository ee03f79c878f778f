// Pointwise operators on the device "ahead" by their scalar definitions, where groups have no loop form for them:
// quotients of integers, and steps of recurrent layers.
#pragma once

#include <span>

#include "runtime/kernels/lstm.h"
#include "runtime/kernels/pointwise.h"

namespace wick::aot {

// As wick::pointwise(), into a new tensor of one or more elements.
Tensor computePointwise(const ScalarDefinition& definition, std::span<const Operand> given);

void computeLstmStep(const LstmStep& step);

}  // namespace wick::aot
