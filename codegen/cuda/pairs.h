// Pairs of reduced floats: two neighbours share a register, and one instruction rounds, adds, subtracts
// or multiplies both.
//
// A sum, difference or product of two reduced floats that is computed in float32 and then rounded has
// the bits of the instruction for pairs: float32 has more than twice their digits, so rounding twice is
// rounding once.
#pragma once

#include <optional>
#include <string>

#include "codegen/scalar/expression.h"

namespace wick::codegen {

// "wickHalf2", of a reduced float.
std::string pairType(DType type);
// The definitions that the texts below rely on, behind cudaPreamble().
std::string pairPreamble();

// The pair that node `e` makes at once of pairs n5, n7, … of earlier nodes of its dtype; nothing where
// each of the two is computed by itself.
std::optional<std::string> pairText(const Expression& expression, ScalarExpr e);
// Of two floats, "wickHalf2" rounded to nearest.
std::string pairOfFloats(DType type, const std::string& low, const std::string& high);
// Of two elements.
std::string pairOf(const std::string& low, const std::string& high);

}  // namespace wick::codegen
