// Operators on objects: `a + b` calls a.__add__(b) where a is an instance of a script class.
#pragma once

#include <string>
#include <vector>

#include "frontend/sugared_value.h"

namespace wick {

// The method when the first argument is a class instance, else the operator.
Value* emitMagic(const SourceRange& range, GraphFunction& fn, const std::string& method,
                 Symbol fallback, const std::vector<NamedValue>& args);

// A builtin function that an object may replace by a method: len(x) is x.__len__().
class MagicFunction : public SugaredValue {
 public:
  MagicFunction(std::string method, SugaredValuePtr fallback)
      : method_(std::move(method)), fallback_(std::move(fallback)) {}
  std::string kind() const override { return fallback_->kind(); }
  SugaredValuePtr call(const SourceRange&, GraphFunction&, std::vector<NamedValue>,
                       std::vector<NamedValue>, size_t) override;

 private:
  std::string method_;
  SugaredValuePtr fallback_;
};

// What a binary operator of programs stands for: the name of an operator, and the method by which
// classes replace it, null for `is`.
struct BinaryOperator {
  int op;
  const char* name;
  const char* method;
};
// Null when there is no such operator.
const BinaryOperator* binaryOperator(int op);

}  // namespace wick
