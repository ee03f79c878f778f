// What layers of all targets have in common.
#pragma once

#include "codegen/scalar/expression.h"
#include "runtime/kernels/activation.h"

namespace wick::aot {

// The activation of x, in the type of the builder: as activate() of runtime/kernels/activation.cpp has it.
ScalarExpr activated(const ExprBuilder& b, Activation activation, ScalarExpr x);

}  // namespace wick::aot
