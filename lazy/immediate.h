// Calls of operators that are not recorded.
#pragma once

#include <algorithm>

#include "ir/operator.h"

namespace wick::lazy {

inline bool isTensorList(const IValue& v) {
  return v.isList() &&
         std::ranges::any_of(v.elements(), [](const IValue& e) { return e.isTensor(); });
}

// Evaluates the call's lazy tensors, runs the operator, and makes its results lazy tensors. Bit i of
// `written`: argument i is written to.
void runImmediately(CallFrame& frame, uint64_t written);

}  // namespace wick::lazy
