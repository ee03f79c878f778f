// Donation: memory of data that nobody will see again becomes memory of results.
//
// An update of a weight reads the old weight and makes the new one. The old one is kept while
// anything can fail, because a step that failed has to leave it as it was. So a graph that ends a
// step is split: what can fail runs first; then the graph lets go of its inputs, and what cannot
// fail runs, writing over them.
#pragma once

#include "lazy/graph.h"

namespace wick::lazy {

// Two parts of a plan, the second of which reads results of the first. The outputs of the first are
// sorted, those of the plan and what the second needs.
struct Split {
  Graph::Plan first, last;
};

}  // namespace wick::lazy
