// How values of lists are ordered, and which elements a slice names.
#pragma once

#include <optional>
#include <vector>

#include "core/counted_vector.h"
#include "core/ivalue.h"

namespace wick::ops {

// Python's a < b for numbers, strings, tensors of one element, tuples and lists of these, and
// objects whose class has __lt__. RuntimeError for others.
bool lessThan(const IValue& a, const IValue& b);

// Sorts stably, also when reversed; NaNs come last. RuntimeError as lessThan's. A comparison may run
// a program, which must not reach `values`: it gets a copy of a list's.
void sortValues(std::vector<IValue>& values, bool reverse);

// The first of the largest or the smallest elements of a list, as max() and min() choose: comparisons
// with NaN are false, so a NaN stays where it came first and is passed over later. ValueError for an
// empty list, RuntimeError as lessThan's.
IValue largest(const IValue& list);
IValue smallest(const IValue& list);

// Operators stand below the interpreter and cannot run a method themselves: what runs
// `a.__lt__(b)` is installed from above, once, before programs run.
using ObjectLess = bool (*)(const IValue& a, const IValue& b);
void setObjectLess(ObjectLess less);

// The elements first, first + step, … that [start:end:step] selects of n elements, as Python counts
// them. RuntimeError for step 0.
struct Slice {
  int64_t first = 0;
  int64_t step = 1;
  size_t count = 0;
  int64_t at(size_t i) const { return first + static_cast<int64_t>(i) * step; }
};
Slice sliceOf(int64_t n, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step);
// The indices that [start:end:step] selects of n elements, as Python counts them. RuntimeError for
// step 0.
CountedVector<int64_t> sliceIndices(int64_t n, std::optional<int64_t> start,
                                    std::optional<int64_t> end, int64_t step);

}  // namespace wick::ops
