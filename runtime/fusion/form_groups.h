// Which nodes of a graph kernels compute: the last pass before a graph runs.
#pragma once

#include "ir/graph.h"
#include "passes/fusion_groups.h"

namespace wick {

// What a node is to the kernels that lowerGroup() makes.
FusionKind kernelKindOf(const Node* node);

// Forms groups of what kernels compute, unless jitMode() is Off or no compiler for kernels
// is linked. Groups of a single operator are left alone, which has a kernel already, unless its
// arithmetic is long, it reads a transposed tensor beside another, or the environment variable
// WICK_FUSION is "all"; "none" forms no group.
void formKernelGroups(Graph& graph);

// Forms prim::DifferentiableGraph nodes of two or more operators, or of one whose arithmetic is
// long, for which SiteDerivative::Factory knows derivatives. None where formKernelGroups() forms no
// groups, and with the environment variable WICK_GRADIENT_GRAPHS=off. A graph and the call of
// torch.autograd.grad or backward that differentiates its result become one prim::JointGraph, which
// gives result and gradients without a tape.
void formDifferentiableGraphs(Graph& graph);

}  // namespace wick
