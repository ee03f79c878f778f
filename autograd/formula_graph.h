// Formulas as parts of graphs: what prim::DifferentiableGraphs are differentiated with.
#pragma once

#include "autograd/formula.h"
#include "ir/graph.h"

namespace wick::autograd {

// Bit i: input i of the node is a tensor that the rule has a formula for.
uint64_t coveredInputs(const Rule& rule, const wick::Node* node);

// The tuple of gradients that the function returns; null where it is something else, or where a
// gradient may be None or something is read that graphs do not keep.
const wick::Node* gradientsIn(const GradientFunction& gradients);

// Takes out what asks for complex numbers, where all tensors are real.
void withoutComplexNumbers(Graph& graph);

}  // namespace wick::autograd
