// Joins convolutions with the addition and the activation behind them.
#pragma once

#include "ir/graph.h"

namespace wick {

// conv2d [+ add of a tensor] [+ activation] whose intermediate results nobody else reads become one
// wick::conv2d_fused node; an in-place relu_ or add_ counts when it writes to such an intermediate.
// Activations are relu and, without an addition in float32, sigmoid, tanh, silu, gelu, relu6 and
// hardswish.
// Run it on frozen graphs, where the options are constants. Returns the number of fused nodes.
size_t fuseConvolution(Graph& graph);

}  // namespace wick
