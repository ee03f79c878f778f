// Operators that lowering takes apart: what they are made of has loop forms of its own.
#pragma once

#include <functional>
#include <optional>

#include "codegen/loop/layout.h"
#include "ir/graph.h"

namespace wick::loop {

// What is known of a value of the body.
struct ValueFacts {
  bool is_tensor = false;
  DType dtype = DType::Float;
  TensorLayout layout{};  // the example's; which sizes are one is the same in all calls
};
struct Facts {
  std::function<ValueFacts(const Value*)> of;
  // Whether the tensor's channels lie innermost; the kernels are used only for tensors that agree
  // with the answer.
  std::function<bool(const Value*)> is_channels_last;
  // The value of a constant, or of a boolean argument: it is the same in all calls.
  std::function<std::optional<bool>(const Value*)> truth;
  // The result of a pointwise operator lies row-major, whatever order its operands lie in.
  std::function<void(const Value*)> lay_row_major;
  // Where the first is computed the second, booleans of its shape, must be true; otherwise the
  // operators raise.
  std::function<void(const Value*, const Value*)> require;
  // The first, which the operator writes to, becomes what the second is.
  std::function<void(const Value*, Value*)> write;
  // A value that gets a kernel of its own, because others read each of its elements many times.
  std::function<void(const Value*)> keep_apart;
};

// Whether decompose() may know the node's operator, by what is constant among its arguments; and
// whether the operator itself computes with several others, one after the other.
bool isComposite(const Node* node);
bool takesSeveralKernels(const Node* node);
// Whether a composite operator writes to some of its arguments (perhaps: a boolean decides),
// which its schema does not tell.
bool updatesArguments(const Node* node);

// Replaces the node by others in front of it. What the operator refuses has shapes that those
// refuse too. Throws Unsupported for types and ranks that it does not know.
void decompose(Node* node, const Facts& facts);

}  // namespace wick::loop
