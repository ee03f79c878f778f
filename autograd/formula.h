// Formulas: the derivatives of operators, written in TorchScript.
//
// One formula an operator, found by its schema's name and overload ("aten::mul.Tensor"; in-place
// forms share that of the plain operator). Operators with the same formula stand in one record,
// with commas between their names. A text has lines
//
//   let scale = grad * 2              a value that the expressions below may use
//   self: scale * cos(self)           the gradient of an argument
//
// in which stand for values: the operator's arguments by their names; `result`, or `result0`,
// `result1`, …; the gradients of results `grad`, or `grad0`, `grad1`, …, or `grads` for a list;
// and of each tensor NAME the sizes `NAME_size`, strides `NAME_stride`, offset `NAME_offset` and
// dtype `NAME_dtype`; of a list of tensors NAME their sizes `NAME_sizes`. What an expression does
// not use is not saved. A gradient may be None for zeros; it is summed over what was broadcast,
// converted to the argument's dtype, and of a complex one the real part is taken for a real
// argument, so no formula does that. Arguments without a line get no gradient. A line that begins
// with blanks continues the one above. A gradient of a result that nobody needs is zeros, or None
// in a formula that asks whether it is (`grad1 is None`).
//
// Other texts:
//   none                 the results depend on nothing
//   others               the kernel calls other operators, whose gradients are its own
//   return EXPRESSION    after let lines: what the operator is made of; run instead of its kernel
//   missing REASON       there is no derivative: an error when it is asked for
//   refused MESSAGE      an error at once where what is written requires a gradient
//   results 0 2          before all others: only these results have gradients
//
// Helpers are script functions that formulas call.
//
// A formula of "nested aten::add.Tensor" holds where an argument is a nested tensor; operators
// without one have no derivative there.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/operator.h"

namespace wick::autograd {

struct FormulaText {
  const char* ops;
  const char* text;
};
struct HelperText {
  const char* name;
  const char* source;
};

// A static object that adds its tables when the program starts.
struct RegisterFormulas {
  explicit RegisterFormulas(std::span<const FormulaText> formulas,
                            std::span<const HelperText> helpers = {});
};

// Adds a formula while the program runs, before the operator is first called with gradients: `op`
// is one name as in FormulaText. The text is kept. Thread-safe.
void addFormula(const std::string& op, std::string text);
// What is wrong with a text as a formula of the operator; empty when nothing is. An expression that
// calls operators by torch.ops is only parsed: they may come later.
std::string formulaError(const Operator& op, const std::string& text);

// The compiled gradient function for one set of arguments that need gradients. Immutable.
struct GradientFunction {
  // What the function's parameters are.
  struct Source {
    enum class Kind { Gradient, Gradients, Argument, Result } kind;
    enum class Part { Value, Size, Stride, Offset, DType } part = Part::Value;
    size_t index = 0;       // of the argument or result
    bool optional = false;  // a Gradient that may be None
  };
  std::vector<Source> sources;
  std::vector<size_t> arguments;  // whose gradients the function returns, as a tuple
  std::shared_ptr<CompilationUnit> unit;
  GraphFunction* function = nullptr;
  // The same for arguments without complex tensors, without what then changes nothing, so
  // that kernels compute more at a time; null when there is nothing to leave out.
  GraphFunction* of_reals = nullptr;
};

// What is known of an operator's gradient. Lives as long as the process. Thread-safe.
class Rule {
 public:
  enum class Kind {
    Ignored,  // no tensors are made
    None,     // the results depend on nothing
    Others,   // the kernel calls other operators
    Script,   // made of other operators, in script
    Formula,
    Missing,
    Refused,  // must not be called with tensors that require gradients
    Out,      // results are written to arguments `out`
  };
  explicit Rule(const Operator& op);
  // With this text as the formula; null: without one.
  Rule(const Operator& op, const char* text);
  Kind kind() const { return kind_; }
  const Operator& op() const { return op_; }
  // Of Kind::Missing, why, and of Kind::Refused the message; may be empty.
  const std::string& reason() const { return reason_; }
  bool hasGradient(size_t result) const;
  // Whether a gradient of the argument is given.
  bool covers(size_t argument) const;
  // Whether its gradient is None whatever comes: the results do not depend on the argument.
  bool ignores(size_t argument) const;
  // Bit i of `mask`: argument i needs a gradient. Compiled when first asked for.
  const GradientFunction& gradients(uint64_t mask) const;
  // Of Kind::Script: the function that takes the operator's arguments.
  GraphFunction& script() const;
  // What its parameters are: Arguments alone.
  const std::vector<GradientFunction::Source>& scriptSources() const;
  // Throws CompileError for expressions that are not script, and UsageError for results that the
  // operator does not have. `compile`: also for those whose types do not fit.
  void check(bool compile) const;

 private:
  void parse(const std::string& text);
  std::string parameters(const std::string& text, std::vector<GradientFunction::Source>& sources,
                         bool with_results) const;
  std::unique_ptr<GradientFunction> compile(uint64_t mask) const;
  const Operator& op_;
  Kind kind_ = Kind::Missing;
  std::vector<std::string> lets_;
  std::map<std::string, std::string> expressions_;  // by argument
  std::string returns_;
  std::string reason_;
  std::optional<std::vector<size_t>> results_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, std::unique_ptr<GradientFunction>> compiled_;
  mutable std::unique_ptr<GradientFunction> script_;
};

const Rule& ruleOf(const Operator& op);
// For calls with a nested tensor among the arguments.
const Rule& nestedRuleOf(const Operator& op);

}  // namespace wick::autograd
