// Removes tuples that are built only to be taken apart.
#pragma once

#include "ir/graph.h"

namespace wick {

//   %t : (int, int) = prim::TupleConstruct(%a, %b)
//   %x : int, %y : int = prim::TupleUnpack(%t)      ->  users of %x and %y read %a and %b
//
// `a, b = b, a` and functions that return several values make such tuples. A TupleConstruct that
// nobody reads any more goes as well.
void lowerSimpleTuples(Graph& graph);

}  // namespace wick
