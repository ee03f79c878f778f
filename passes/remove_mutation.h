// Replaces writes by new values where that cannot be told apart.
#pragma once

#include "ir/graph.h"

namespace wick {

// Lets a list be built with the elements that it is given right after it is made: append, insert at
// a constant index, extend and += by a list that the graph builds, and assignment to a constant
// index become part of the ListConstruct, as long as nobody has seen the list before. True when
// anything changed. Linear in the size of the graph and the elements moved.
bool removeListMutation(Graph& graph);

// Replaces an in-place operator by the one that gives a new tensor, when the tensor that it writes
// was made in the same block by an operator that gives new memory and was used by nobody before:
// nobody but the later users sees the write, and these read the new tensor. Only operators for
// which the result has the dtype and sizes of the tensor that they would write: those that keep
// them always, and arithmetic with numbers on a tensor known to be floating. True when anything
// changed. Linear.
bool removeTensorMutation(Graph& graph);

// The same where the types of the graph hold for every call (passes/propagate_types.h): also arithmetic
// with tensors that have the dtype of the one that is written and, but for dimensions of size 1, its
// sizes.
bool removeTypedTensorMutation(Graph& graph);

}  // namespace wick
