// Small rewrites that need to see only a node and the nodes that define its inputs.
#pragma once

#include "ir/graph.h"

namespace wick {

// Replaces nodes by simpler ones that give the same result, to the last bit:
// - numbers: x + 0, x - 0, x * 1, x / 1, -(-x), and x * 0 of ints;
// - booleans: not not x, the negation of a comparison, an If that only chooses True or False;
// - None: `is None` of what can be None always or never, unwrapping and casts that change nothing;
// - lists nobody writes: the length, an element, the elements of a list that the graph builds,
//   the concatenation and slices of such lists;
// - tensors: questions for dtype, device, rank and sizes that the static type answers, the length
//   of size(), t() of t(), arithmetic with 0 and 1 of known floating tensors.
// Where a tensor or list would become another one's equal, alias analysis (ir/alias_db.h) must show
// that nobody notices. True when anything changed. One walk, linear.
bool simplifyPeepholes(Graph& graph);

}  // namespace wick
