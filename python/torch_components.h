// Results of a captured graph whose gradients are independent of each other.
#pragma once

#include <vector>

#include "python/torch_graph.h"

namespace wick::python {

// Returns the components of the graph: outputs whose tapes meet before they reach inputs are in one.
// Reads the tapes of the fakes.
std::vector<TorchComponent> torchComponents(const TorchRecord& record);

// Returns whether PyTorch 1.13 saves a tensor for the backward pass of a component, as far as it is not known to save none.
// Operators that its results do not need have no part in it, nor have those that no gradient flows through. Reads the script.
bool savesTensors(const TorchRecord& record, const TorchComponent& component);

}  // namespace wick::python
