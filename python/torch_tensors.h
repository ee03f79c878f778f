// PyTorch's tensors for wick.compile.
#pragma once

#include <memory>

#include "capture/world.h"

namespace wick::python {

class TorchLibrary;

// Returns the world of torch.Tensor. Lives as long as the process.
std::shared_ptr<const capture::World> torchTensors(const TorchLibrary& library);

}  // namespace wick::python
