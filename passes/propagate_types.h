// What is known of tensors, forwards through a graph.
#pragma once

#include "ir/graph.h"
#include "ir/symbolic_sizes.h"

namespace wick {

// Gives every tensor of the graph the most precise static type that follows from the types of the
// graph's inputs and the constants: dtype, rank, sizes, device, and where they are known strides
// and that no gradient is required. Operators say by their shape rules (ir/operator.h) what
// follows; results of other operators, attributes and calls stay as declared. Types that earlier
// runs left are forgotten, except those of the graph's inputs and of nodes that are no operators.
//
// A size that is not known is named by a symbol, a negative number: within one run of the graph,
// and within one iteration of the loop that computes it, equal symbols are equal sizes. What
// branches and loops merge keeps only what they agree on. Of a tensor that somebody may give other
// sizes or a gradient in place (resize_, t_, requires_grad_, out=) only the dtype and device are
// stated, and nothing of one that may become another's data (set_, calls).
//
// Supposes the default dtype of now. Neither adds nor removes nodes. Linear.
void propagateTypes(Graph& graph);
// The same, with what the symbols mean as expressions of those of the inputs.
void propagateTypes(Graph& graph, SymbolicSizes& sizes);

// The least symbol that a type in the graph names, or 0: where new ones begin.
int64_t lowestSymbol(const Graph& graph);

// Whether a node of the graph may give a tensor other sizes in place, or make it another's data.
bool mayChangeMetadata(const Graph& graph);

// What both types say; `a` and `b` are tensor types.
TypePtr joinTensorTypes(const TypePtr& a, const TypePtr& b);

// All that can be said of this tensor.
TypePtr typeOfTensor(const Tensor& tensor);

}  // namespace wick
