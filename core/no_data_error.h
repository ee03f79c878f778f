// The error of those who ask for elements that a tensor does not have.
#pragma once

#include "core/error.h"

namespace wick {

// Thrown where elements of a tensor on the device "meta" are read.
class NoDataError : public RuntimeError {
 public:
  NoDataError() : RuntimeError("Cannot copy out of meta tensor; no data!") {}
};

}  // namespace wick
