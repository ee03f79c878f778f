// Functions that compiled code calls only for unusual arguments: what computes the usual ones.
#pragma once

#include <optional>

#include "codegen/scalar/expression.h"

namespace wick {

// Arithmetic for the usual arguments of a function that is called for the others.
struct UsualForm {
  Expression arithmetic;  // inputs 0 and 1 are the arguments
  ScalarExpr value;
  ScalarExpr usual;  // a boolean; invalid: all arguments are usual
};

// Gives the bits that the function gives; nullopt where it is always called.
std::optional<UsualForm> usualForm(ScalarFunction f, DType type);

}  // namespace wick
