// Results of operators that the device "meta" has no kernel for, found by running them on zeros.
#pragma once

#include "ir/device_kernels.h"

namespace wick::lazy {

// Until its end, calls on the calling thread with tensors of the device "meta" that have no kernel
// there run on the CPU with zeros in place of the tensors; results get the sizes, strides and dtypes
// of what came out. It does so only where no element decides about sizes, and for at most 16 million
// elements. Random numbers may be drawn.
class ZeroResultsScope {
 public:
  ZeroResultsScope();
  ZeroResultsScope(const ZeroResultsScope&) = delete;
  ~ZeroResultsScope();

 private:
  AbsentKernel before_;
};

}  // namespace wick::lazy
