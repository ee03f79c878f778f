// A picture of a model that fits a screen: a box for each module instead of one for each operator.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ir/function.h"
#include "runtime/module.h"

namespace wick::cli {

// Leaves out the branches that only raise, so that what a graph checks is not drawn, and the computations that
// nobody needs then. The graph is no longer the program.
void leaveOutChecks(Graph& graph);

struct ModulePicture {
  // How deep modules are opened: with 1 each attribute of the outermost module is a box, with 2 theirs, and so on. nullopt:
  // as deep as there are no more than `kFewBoxes`.
  std::optional<size_t> depth;
  static constexpr size_t kFewBoxes = 26;
  // The module whose method it is, for classes and numbers of parameters; may be empty.
  Module self;
};

// Graphviz text of a graph whose calls are inlined. A module's box tells its name, class and number of parameters, a frame
// holds the opened modules; operators of opened modules themselves are boxes with their names, those in a row one box.
// Edges are tensors, with dtypes and sizes as far as types know them; constants, numbers and weights are not drawn.
// `method` is the method whose graph it was before passes changed it: its calls tell the modules. "" for a graph that
// no call of a module leads to.
std::string modulePicture(const Graph& graph, GraphFunction& method, const ModulePicture& options);

}  // namespace wick::cli
