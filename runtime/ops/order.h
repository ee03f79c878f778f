// How values of lists are ordered, and which elements a slice names.
#pragma once

#include <optional>
#include <vector>

#include "core/ivalue.h"

namespace wick::ops {

// Python's a < b for numbers, strings, tensors of one element, tuples and lists of these, and
// objects whose class has __lt__. RuntimeError for others.
bool lessThan(const IValue& a, const IValue& b);

// Sorts stably, also when reversed; NaNs come last. RuntimeError as lessThan's.
void sortValues(std::vector<IValue>& values, bool reverse);

// Operators stand below the interpreter and cannot run a method themselves: what runs
// `a.__lt__(b)` is installed from above, once, before programs run.
using ObjectLess = bool (*)(const IValue& a, const IValue& b);
void setObjectLess(ObjectLess less);

// The indices that [start:end:step] selects of n elements, as Python counts them. RuntimeError for
// step 0.
std::vector<int64_t> sliceIndices(int64_t n, std::optional<int64_t> start,
                                  std::optional<int64_t> end, int64_t step);

}  // namespace wick::ops
