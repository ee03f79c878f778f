// Graphs as pictures: text for Graphviz.
#pragma once

#include <string>

#include "core/ivalue.h"
#include "ir/graph.h"

namespace wick {

struct DotOptions {
  // The module whose method the graph is, for shapes of weights and values of attributes; null:
  // they are shown by their names alone.
  const Object* self = nullptr;
};

// An operator is a box with its constant arguments, a tensor of the module a box with its name and
// shape, a submodule or a sub-block a frame around what belongs to it. Edges tell dtypes and sizes
// as far as the types of values do, and types of other values than tensors. RuntimeError for a graph whose
// blocks nest too deeply to be read.
std::string printDot(const Graph& graph, const DotOptions& options = {});
// Returns the label of edges for a value of this type: "float32[1, 3, *]", "" for a tensor about which nothing is known.
std::string edgeText(const Type& type);
// The text of a label: backslashes and quotes for Graphviz; lines are set left.
std::string dotText(const std::string& text);

}  // namespace wick
