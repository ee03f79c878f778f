// Takes tuples apart that never needed to be one.
#pragma once

#include "ir/graph.h"

namespace wick {

// lowerSimpleTuples (ir/simple_tuples.h), after tuples that are results of Ifs and values carried
// by Loops have been replaced by their elements, where every tuple that gets there is constructed
// there. True when anything changed. Linear.
bool lowerTuples(Graph& graph);

}  // namespace wick
