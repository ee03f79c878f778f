// Removes tuples that are built only to be taken apart.
#pragma once

#include "ir/graph.h"

namespace wick {

//   %t : (int, int) = prim::TupleConstruct(%a, %b)
//   %x : int, %y : int = prim::TupleUnpack(%t)      ->  users of %x and %y read %a and %b
//
// `a, b = b, a` and functions that return several values make such tuples. Elements that are picked
// by a constant index and slices are taken from the construct as well. A TupleConstruct that nobody
// reads any more goes. `may_lower` is asked before each node that is lowered, when given. Linear;
// true when anything changed.
bool lowerSimpleTuples(Graph& graph, bool (*may_lower)(const Node* node) = nullptr);

}  // namespace wick
