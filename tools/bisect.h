// The parts of `torchscript-cli bisect` that know nothing of processes.
#pragma once

#include <cstdint>
#include <functional>

#include "core/ivalue.h"

namespace wick::cli {

// The smallest n in 1..last for which `right(n)` is false, given that right(0) holds and
// right(last) does not; asks about log2(last) times.
uint64_t firstWrong(uint64_t last, const std::function<bool(uint64_t)>& right);

// Whether two results are the same: same types, dtypes, shapes and texts; numbers within
// `tolerance` relative to the larger (0: the same numbers; NaN is NaN). Objects are compared by
// their attributes.
bool agree(const IValue& a, const IValue& b, double tolerance);

}  // namespace wick::cli
