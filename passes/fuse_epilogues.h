// Joins layers with the addition and the activation behind them.
#pragma once

#include "ir/graph.h"

namespace wick {

// conv2d or linear with constant weights [+ add of a tensor] [+ activation] whose intermediate
// results nobody else reads become one wick::conv2d_fused or wick::linear_fused node; an in-place
// relu_ or add_ counts when it writes to such an intermediate. Activations are relu and, without an
// addition in float32, sigmoid, tanh, silu, gelu, relu6 and hardswish. They are computed as oneDNN
// does (see appendActivation in runtime/kernels/onednn.h).
// A conv2d becomes such a node also when nothing follows it, with weights in channels-last order.
// Run it on frozen graphs, where the options are constants. Returns the number of fused nodes.
size_t fuseEpilogues(Graph& graph);

}  // namespace wick
