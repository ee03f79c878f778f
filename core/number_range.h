// Which numbers a dtype holds.
#pragma once

#include "core/dtype.h"
#include "core/error.h"
#include "core/scalar.h"

namespace wick {

// Whether `number` can become an element of this dtype, as PyTorch decides before it converts one:
// a finite number has to lie in the range (beyond that of a floating dtype is no infinity),
// infinity and NaN need a floating dtype, a complex number with an imaginary part a complex one. An
// int that is negative wraps around in an unsigned dtype as long as its magnitude fits.
// Booleans take everything. Thread-safe.
bool holdsNumber(DType dtype, const Scalar& number);

// Throws RuntimeError "value cannot be converted to type float without overflow" where holdsNumber
// is false.
void checkFits(const Scalar& number, DType dtype);

}  // namespace wick
