// Which results of a captured graph have gradients that are independent of each other.
#pragma once

#include <vector>

#include "python/torch_graph.h"

namespace wick::python {

// Returns the components of the graph: outputs whose tapes meet before they reach inputs are in one.
// Reads the tapes of the fakes.
std::vector<TorchComponent> torchComponents(const TorchRecord& record);

}  // namespace wick::python
