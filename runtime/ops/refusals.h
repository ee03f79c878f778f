// Operators that programs may name and that no call can run: those of other devices, and the like.
#pragma once

#include "ir/operator.h"

namespace wick::ops {

// Why every call of the operator is an error; null for operators that run.
const char* refusalOf(const Operator& op);

}  // namespace wick::ops
