// remap: an output whose every dimension looks its source position up in a table, for padding,
// flipping, rolling and selecting by index.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dim_vector.h"

namespace wick {

// out[i0, i1, …] = src[tables[0][i0] + tables[1][i1] + …]; the tables hold element offsets, one
// entry an index of the output, which is row-major. `item_size` bytes are moved an element.
void remap(void* out, const void* src, const std::vector<std::vector<int64_t>>& tables,
           size_t item_size);

}  // namespace wick
