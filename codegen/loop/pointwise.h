// What pointwise operators are to a kernel: a scalar definition and its operands.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "codegen/scalar/definition.h"
#include "core/scalar.h"
#include "ir/graph.h"

namespace wick::loop {

// An input of a definition: a value of the graph, or a number that is known.
struct Operand {
  Operand(const Value* value) : value(value) {}
  Operand(Scalar number) : number(number) {}
  const Value* value = nullptr;
  Scalar number;
};

// A number that is known only when the kernel is launched: the operator raises, or has another
// rule, where a tensor of `dtype` does not hold it, or where it is NaN and `number_only` says so.
struct RangeCheck {
  const Value* number;
  DType dtype;
  bool number_only = false;
};

struct PointwiseCall {
  const ScalarDefinition* definition;
  std::vector<Operand> operands;
  // The operands are cast to this dtype first, as an operator of its own would.
  std::optional<DType> cast;
  std::vector<RangeCheck> ranges{};
  bool is_cast = false;  // and nothing else
};

struct OperandType {
  bool is_tensor;
  DType dtype;  // of a number: that of its kind
  int rank;
};
using TypeOf = std::function<OperandType(const Value*)>;

// Whether the operator casts a tensor to a dtype; the result is the tensor itself when it has that
// dtype. castOf() may know which it is: nullopt when it is not a constant.
bool isCast(const Node* node);
std::optional<DType> castOf(const Node* node, const TypeOf& type_of);

// Whether selectPointwise() may know the node's operator.
bool isPointwise(const Node* node);

// The call of a cast that does change the dtype.
PointwiseCall castTo(const Value* operand, DType dtype);

// The call for operands of the given types; nullopt for operators, types and attributes that are
// left to the eager kernel, among them all that raise an error.
std::optional<PointwiseCall> selectPointwise(const Node* node, const TypeOf& type_of);

}  // namespace wick::loop
