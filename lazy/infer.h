// What results of a call will be, before it runs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/ivalue.h"
#include "ir/operator.h"
#include "lazy/geometry.h"

namespace wick::lazy {

struct Inferred {
  // False where only the run can tell, or raises an error.
  bool known = false;
  struct Result {
    // The tensor argument (counted over all tensors, also those in lists) whose memory the result
    // is a view of; -1: memory of its own.
    int argument = -1;
    bool same = false;  // the argument itself
    Geometry geometry;  // an argument's view begins at the argument's first element
  };
  std::vector<Result> results;
  // Sizes and dtypes are those of the results, strides those that they have after `contiguous`.
  bool made_contiguous = false;
  DimVector counts;  // as Record::results
};

// The call on tensors of the device "meta". Remembered by all that it depends on. `args` are those
// of the operator, which is a base form. Never null.
std::shared_ptr<const Inferred> infer(const Operator& op, std::span<const IValue> args);

// Returns whether the record's rule tells the sizes and dtypes of all results from the types of the
// arguments and the numbers among them: no element of a tensor decides them.
bool areSizesKnown(const Operator& op, std::span<const IValue> args);

}  // namespace wick::lazy
