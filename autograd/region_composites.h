// Operators that regions (autograd/region_plan.h) take apart: scripts of operators whose formulas
// are known, with the results of the kernels, and the random numbers that the tape draws.
#pragma once

#include <memory>

#include "ir/graph.h"
#include "ir/operator.h"

namespace wick::autograd {

// The graph that computes what the operator does, of its arguments in their order; null for others.
// Thread-safe.
std::shared_ptr<const Graph> compositeGraph(const Operator& op);

// Whether the node is known to need no more than that: what its script asks for are constants, or
// booleans that a plan knows.
bool compositeJoins(const wick::Node& node);

// Whether the call is one that the graph computes, now that its types are known; others may have an
// error to raise.
bool compositeFits(const wick::Node& node);

}  // namespace wick::autograd
