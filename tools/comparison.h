// Comparing values: what diff, run --expect and bisect say and decide.
#pragma once

#include <string>
#include <vector>

#include "core/ivalue.h"

namespace wick::cli {

// How far numbers may be apart and count as equal: as far as any of these allows. All zero: not at all.
struct Tolerance {
  double of_largest =
      0;  // times the largest finite number of the two tensors (of numbers: of the two)
  double absolute = 0;
  double relative = 0;  // times the second number; added to `absolute`, as in torch.allclose
};

// Returns the differences, a line each, "where: how"; empty when nothing does. A part of a value stands behind its name:
// "result[0]['logits']". Values must have the same types, tensors the same dtypes and shapes, dicts their keys in the
// same order; objects of one class are compared by their attributes. NaN is equal to NaN alone. For tensors whose numbers differ the
// line tells how many do, and the largest difference with its position, absolute and relative to the larger
// number. RuntimeError for values that nest too deeply.
std::vector<std::string> differences(const IValue& a, const IValue& b, const Tolerance& tolerance,
                                     const std::string& where);

// Returns the names of two classes that are not the same, as their authors know them: "m.Net and m.Other". Names that
// would be alike then are told as the program has them.
std::string namesOfBoth(const std::string& a, const std::string& b);

}  // namespace wick::cli
