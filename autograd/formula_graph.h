// Formulas as parts of graphs: what prim::DifferentiableGraphs are differentiated with.
#pragma once

#include "autograd/formula.h"
#include "ir/graph.h"

namespace wick::autograd {

// Bit i: input i of the node is a tensor, or a list of them, that the rule has a formula for.
uint64_t coveredInputs(const Rule& rule, const wick::Node* node);

bool isTensorList(const Value* v);

// The tuple of gradients that the function returns; null where it is something else, or where a
// gradient may be None or something is read that graphs do not keep. `lists`: also where gradients
// are lists of tensors.
const wick::Node* gradientsIn(const GradientFunction& gradients, bool lists = false);

// Takes out what asks for complex numbers, where all tensors are real.
void withoutComplexNumbers(Graph& graph);

}  // namespace wick::autograd
