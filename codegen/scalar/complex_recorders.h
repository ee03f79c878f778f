// The arithmetic of definitions on complex numbers, recorded as that of their parts.
#pragma once

#include "codegen/scalar/definition.h"

namespace wick {

// The parts of a complex number. Of a mask, and of a result that is real or boolean, the first alone
// is valid.
struct ComplexParts {
  ScalarExpr re, im;
};

struct ComplexRecorder {
  // `real` has the dtype that parts are computed in; inputs are of it, masks of Bool.
  ComplexParts (*record)(const ExprBuilder& real, const ComplexParts* inputs);
  // Whether parts of float32 are computed in float64, because formulas lose digits.
  bool wide;
};

// Null when the definition takes no complex numbers and gives none.
const ComplexRecorder* complexRecorderOf(const ScalarDefinition& definition);

}  // namespace wick
