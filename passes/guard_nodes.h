// The nodes by which programs learn what tensors they see and rely on it:
//
//   = prim::profile[index=3](%x)            tells the profile of the run what value 3 is
//   = prim::profile()                       tells it that the run came to its end
//   %y : Float(*, *) = prim::Guard[types=[Float(*, *)], profiles=[3]](%x)
//                                           %x, whose type the rest of the graph supposes
//   %y : Float(*, *) = prim::BailOut[index=0, types=…, profiles=…](%x, %a, %b)
//                                           the same, and what to do when the type is another:
//                                           leave the graph and go on with %x, %a and %b in
//                                           continuation 0 (passes/bail_outs.h)
//
// A Guard or BailOut has as many outputs as types; the first inputs are the values that they are.
// `profiles` says which of the profile's values each of them is. Types are TensorTypes, or NoneType
// for an absent optional tensor.
#pragma once

#include "ir/graph.h"

namespace wick {

Symbol profileKind();
Symbol guardKind();
Symbol bailOutKind();

// Whether the node's result, or what passes make of it, depends on the static type of its tensor
// inputs: questions for dtype, rank and the like, casts, and tests for None. A function without
// such nodes gets one plan. A pass that uses types in another way names its nodes here.
bool asksForTypes(const Node* node);
// Whether any node of the graph does.
bool asksForTypes(const Graph& graph);
// Whether the graph may change the dtype, sizes or gradient requirement of a tensor that exists, or
// the attributes of a module, where nobody sees it: by a call, by waiting for a fork or by an
// operator like resize_. Then nothing that was seen of a tensor holds for long.
bool mayChangeTypes(const Graph& graph);

// Whether the graphs compute the same, apart from guards, profiles and the types of values.
bool sameComputation(const Graph& a, const Graph& b);

// Replaces the outputs of a Guard by its inputs and destroys it.
void removeGuard(Node* guard);

}  // namespace wick
