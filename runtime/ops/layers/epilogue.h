// What fused layers do where their kernels cannot.
#pragma once

#include "core/tensor.h"
#include "runtime/kernels/activation.h"

namespace wick::ops {

// activation(sum + residual) when the residual is not simply added element by element: the pass
// that fuses layers cannot know shapes, so a residual that broadcasts or has another dtype reaches
// the operator too. In place the sum keeps its dtype and its shape, or add_ refuses. Only relu may
// follow.
Tensor addAndActivate(const char* op, const Tensor& sum, const Tensor& residual,
                      Activation activation, bool in_place);

}  // namespace wick::ops
