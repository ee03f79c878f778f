// The tensors that wick.compile captures: Wick's own, and PyTorch's once a program has imported it.
#pragma once

#include <memory>

#include "capture/world.h"

namespace wick::python {

// Returns the world of both. A graph belongs to one of them: to the one whose tensor or function it
// uses first. Lives as long as the process.
std::shared_ptr<const capture::World> anyTensors();

}  // namespace wick::python
