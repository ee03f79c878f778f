// The TorchScript text of an exported program's methods: from the arguments as callers pass them, in tuples, lists and dicts,
// to the inputs of the graph, and from its outputs to the result.
#pragma once

#include <string>
#include <vector>

#include "serialization/exported/schema.h"
#include "serialization/load_budget.h"

namespace wick::exported {

struct CallText {
  std::string classes;  // of named tuples in results
  std::string methods;  // forward, and forward_and_gradients where the program computes gradients
};

// The method that the text calls: it takes the graph's inputs of the kind User and gives its outputs of the kinds User and
// Loss, then gradients, as a tuple.
inline constexpr const char* kComputation = "computation";

// Sizes of arguments are checked against those of the program, as PyTorch checks them. `name` begins messages about the
// program. Throws LoadError for trees that do not fit the graph.
CallText makeCallText(const ProgramRecord& program, const std::string& name, LoadBudget& budget);

}  // namespace wick::exported
