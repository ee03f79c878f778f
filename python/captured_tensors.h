// Wick's own tensors for wick.compile, which captures their operators.
#pragma once

#include <memory>

#include "capture/world.h"

namespace wick::python {

// The world of wick.Tensor. Lives as long as the process.
std::shared_ptr<const capture::World> ownTensors();

}  // namespace wick::python
