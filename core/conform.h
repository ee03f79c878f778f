// Fits a value from outside (a file, an embedding program) to a declared type, so that typed code
// may rely on it.
#pragma once

#include "core/ivalue.h"
#include "core/type.h"

namespace wick {

enum class Conversions {
  None,    // the value must be of the type already; containers may get a more exact element type
  Python,  // as arguments from Python: int for float, numbers for complex and bool, bool for int, a
           // Tensor of one element for a number, a tuple for a list and back, a string for a device
};

// `value` as a `type`. Every part is looked at, whatever the types that containers claim. Lists and
// dicts are corrected in place (they keep their identity) and get the declared element types;
// tuples get the names of a NamedTuple. Throws RuntimeError ("expected List[int], got str") that
// says where in the value it does not fit.
IValue conform(IValue value, const TypePtr& type, Conversions conversions = Conversions::None);

}  // namespace wick
