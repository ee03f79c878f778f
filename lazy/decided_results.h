// Results whose sizes elements decide (positions of nonzero elements, selections by a mask), for tensors
// that have none.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/operator.h"

namespace wick::lazy {

// Decides about such sizes in the place of elements. Told of each dimension that has one.
class DecidedSizes {
 public:
  virtual ~DecidedSizes() = default;
  // Returns the size for a call, at least 1; nothing where no size may stand for the elements' own. It is the
  // number of nonzero elements of `counted`, if that is defined.
  virtual std::optional<int64_t> next(const Tensor& counted) = 0;
  // Says that the dimension of a result of this call has that size.
  virtual void note(const Tensor& result, size_t dim) = 0;
};

// Computes the results of a call with a size of `sizes`, on the device "meta". Returns false for operators whose
// sizes follow from those of the arguments, and for calls that it does not know. Throws what the operator throws for
// all elements.
bool computeDecided(CallFrame& frame, DecidedSizes& sizes);

}  // namespace wick::lazy
