// Sizes of results that follow from the arguments of operators.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "serialization/exported/size_fit.h"

namespace wick::exported {

// An argument of a node: the expressions that are known of it.
struct KnownArgument {
  std::optional<SizeVector> sizes;                 // of a tensor
  std::optional<SizeExpression> number;            // an int
  std::optional<SizeVector> numbers;               // a list of ints
  std::optional<std::vector<SizeVector>> tensors;  // the sizes of a list's tensors
  const IValue* constant = nullptr;                // the same in all calls
};

// Returns the sizes of the node's tensors, all of which have the same; nullopt for operators that have no rule here, and for
// arguments that are not known well enough. `arguments` are in the order of the node's inputs.
std::optional<SizeVector> sizesByRule(const Node& node, const std::vector<KnownArgument>& arguments,
                                      const SizeArithmetic& arithmetic);

// Returns the int that a node computes from ints; nullopt as above.
std::optional<SizeExpression> numberByRule(const Node& node,
                                           const std::vector<KnownArgument>& arguments,
                                           const SizeArithmetic& arithmetic);

}  // namespace wick::exported
