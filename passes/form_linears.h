// Linear layers that are written as products.
#pragma once

#include <cstddef>

#include "ir/graph.h"

namespace wick {

// mm and matmul by a constant matrix, and addmm of a constant vector to such a product (beta and
// alpha 1), become aten::linear, and a constant vector that is added to a linear layer without a
// bias becomes its bias: this is how archives of older PyTorch versions and hand-written layers
// look. Layers keep their weights packed, and other passes know them. Floating tensors on the CPU; a
// tensor of a rank that mm refuses is multiplied as matmul does.
// Numbers may change in the last bits. Run it on frozen graphs. Returns the number of nodes that
// went.
size_t formLinears(Graph& graph);

}  // namespace wick
