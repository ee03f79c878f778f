// Results of operators that the device "meta" has no kernel for, found by running them on zeros.
#pragma once

#include <span>

#include "ir/device_kernels.h"
#include "lazy/decided_results.h"

namespace wick::lazy {

// Until its end, calls on the calling thread with tensors of the device "meta" that have no kernel
// there run on the CPU with zeros in place of the tensors; results get the sizes, strides and dtypes
// of what came out. It does so only where no element decides about sizes: operators that are not known
// for that run on ones and unit matrices too, and must give the same. At most 16 million elements.
// Random numbers may be drawn. The object `sizes`, if there is one, is asked where elements decide.
//
// An operator that is composed of others asks for no kernel of its own; where it reads elements,
// computeOnTwins() finds its results.
class ZeroResultsScope {
 public:
  // The object must live as long.
  explicit ZeroResultsScope(DecidedSizes* sizes = nullptr);
  ZeroResultsScope(const ZeroResultsScope&) = delete;
  ~ZeroResultsScope();

 private:
  AbsentKernel before_;
  DecidedSizes* sizes_before_;
};

// Computes the results of a call in that way. Returns false where it cannot. Throws what the operator
// throws. Within a ZeroResultsScope.
bool computeOnTwins(CallFrame& frame);
// Lets results that were computed so depend on all arguments that require a gradient. RuntimeError for
// results that cannot be replaced.
void connectResults(std::span<const IValue> arguments, std::span<IValue> results);

}  // namespace wick::lazy
