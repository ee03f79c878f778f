// Operators of a recorded graph whose results nobody needs.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace wick::python {

// Returns the operators of the graph itself, in order, that no output and no effect needs. Not those in blocks.
std::vector<const Node*> deadOperators(const Graph& graph, const std::vector<Value*>& outputs);

// Returns whether the operator may raise an error that depends on the sizes of its inputs.
bool mayRaiseBySizes(const Node* node);

}  // namespace wick::python
