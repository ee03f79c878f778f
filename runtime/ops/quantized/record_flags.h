// Flags that the records of most quantized operators have.
#pragma once

#include "ir/operator.h"

namespace wick::ops::quantized {

inline constexpr uint64_t kPlain = kNotDifferentiable | kAnyKind;

}  // namespace wick::ops::quantized
