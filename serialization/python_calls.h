// The right-hand side of one node as an expression. Private to the Python printer.
#pragma once

#include <string>

#include "ir/graph.h"

namespace wick {

class ExpressionContext {
 public:
  virtual ~ExpressionContext() = default;
  // The name or the expression of a value that was printed before.
  virtual const std::string& useOf(const Value* value) const = 0;
  virtual std::string typeName(const Type& type) = 0;
  virtual std::string constant(const IValue& value) = 0;
  // The name of a function that the text calls.
  virtual const std::string& functionName(Function* function) = 0;
  virtual void noteOperator(const FunctionSchema& schema) = 0;
};

// Operators as torch.name(…) or ops.ns.name(…), without trailing arguments that equal the defaults.
// RuntimeError for nodes that source has no form for.
std::string printExpression(const Node& node, ExpressionContext& context);

}  // namespace wick
