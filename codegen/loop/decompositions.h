// Operators that lowering takes apart: what they are made of has loop forms of its own.
#pragma once

#include <functional>

#include "codegen/loop/layout.h"
#include "ir/graph.h"

namespace wick::loop {

// What is known of a value of the body.
struct ValueFacts {
  bool is_tensor = false;
  DType dtype = DType::Float;
  TensorLayout layout{};  // the example's; which sizes are one is the same in all calls
};
using FactsOf = std::function<ValueFacts(const Value*)>;

// Whether decompose() may know the node's operator, by what is constant among its arguments.
bool isComposite(const Node* node);

// Replaces the node by others in front of it. What the operator refuses has shapes that those
// refuse too. Throws Unsupported for types and ranks that it does not know.
void decompose(Node* node, const FactsOf& facts_of);

}  // namespace wick::loop
