// Rules of the program for captured graphs: wick.compiler.register_decomposition and
// register_pattern.
#pragma once

#include "ir/graph.h"
#include "python/object.h"

namespace wick::python {

// Applies all rules to a graph that was captured: decompositions first, then patterns in the order
// in which they were registered. The caller holds the GIL.
void applyGraphRules(Graph& graph);

void addGraphRules(PyObject* module);

}  // namespace wick::python
