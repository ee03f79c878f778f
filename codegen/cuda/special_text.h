// Functions that CUDA has no name for: the sources that the CPU's engine compiles, as CUDA C.
#pragma once

#include <string>

#include "codegen/scalar/expression.h"

namespace wick::codegen {

// A call of the function on arguments of float32 or float64; empty when it is none of these.
std::string specialCall(ScalarFunction f, const std::string& type, const std::string& arguments);
// What the calls of such functions in the expression rely on; empty when there are none.
std::string specialPreamble(const Expression& expression);
// The parts of the standard library that sources of the CPU use. Once in a text.
std::string standardText();

}  // namespace wick::codegen
