#include "serialization/constant_expr.h"

#include <cmath>
#include <complex>
#include <limits>
#include <optional>

#include "core/budget.h"
#include "core/conform.h"
#include "core/error.h"
#include "core/stack.h"

namespace wick {
namespace {

class Evaluator {
 public:
  explicit Evaluator(const ConstantScope& scope) : scope_(scope) {}

  IValue evaluate(const Expr& expr) const {
    checkBudget();
    switch (expr.kind()) {
      case TK_CONST:
        return number(Const(expr.tree()), false);
      case TK_STRINGLITERAL:
        return StringLiteral(expr.tree()).text();
      case TK_TRUE:
        return true;
      case TK_FALSE:
        return false;
      case TK_NONE:
        return IValue();
      case TK_UNARY_MINUS:
        return negated(UnaryOp(expr.tree()));
      case TK_TUPLE_LITERAL:
        return makeTuple(all(TupleLiteral(expr.tree()).inputs()));
      case TK_LIST_LITERAL:
        return list(all(ListLiteral(expr.tree()).inputs()));
      case TK_DICT_LITERAL:
        return dict(DictLiteral(expr.tree()));
      case TK_VAR:
        return named(Var(expr.tree()));
      case '.':
        return selected(Select(expr.tree()));
      case TK_APPLY:
        return applied(Apply(expr.tree()));
      default:
        fail(expr);
    }
  }

 private:
  [[noreturn]] static void fail(const Expr& expr) {
    throwCompileError(expr.range(), "expected a constant");
  }

  static IValue number(const Const& number, bool negated) {
    if (number.isInt()) return number.asInt(negated);
    if (number.isComplex()) return negated ? -number.asComplex() : number.asComplex();
    return negated ? -number.asFloat() : number.asFloat();
  }

  IValue negated(const UnaryOp& op) const {
    if (op.operand().kind() == TK_CONST) return number(Const(op.operand().tree()), true);
    IValue value = evaluate(op.operand());
    if (!value.isDouble()) fail(op);
    return -value.toDouble();
  }

  std::vector<IValue> all(const List<Expr>& exprs) const {
    std::vector<IValue> values;
    values.reserve(exprs.size());
    for (const Expr& e : exprs) values.push_back(evaluate(e));
    return values;
  }

  static IValue list(std::vector<IValue> values) {
    TypePtr type = elementTypeOf(values, types::Any());
    return makeList(std::move(type), std::move(values));
  }

  IValue dict(const DictLiteral& literal) const {
    std::vector<IValue> keys = all(literal.keys());
    std::vector<IValue> values = all(literal.values());
    auto result =
        makeRef<DictObject>(elementTypeOf(keys, types::Any()), elementTypeOf(values, types::Any()));
    for (size_t i = 0; i < keys.size(); ++i) result->set(keys[i], values[i]);
    return result;
  }

  static IValue named(const Var& var) {
    const std::string& name = var.name().name();
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    if (name == "inf") return kInf;
    if (name == "nan") return kNaN;
    if (name == "infj") return std::complex<double>(0, kInf);
    if (name == "nanj") return std::complex<double>(0, kNaN);
    fail(var);
  }

  static bool isVariable(const Expr& expr, const char* name) {
    return expr.kind() == TK_VAR && Var(expr.tree()).name().name() == name;
  }

  IValue selected(const Select& select) const {
    if (!isVariable(select.value(), "CONSTANTS") || !scope_.constant) fail(select);
    return scope_.constant(select.range(), select.selector().name());
  }

  IValue applied(const Apply& apply) const {
    const List<Expr> inputs = apply.inputs();
    if (isVariable(apply.callee(), "annotate") && inputs.size() == 2 && scope_.type) {
      TypePtr type = scope_.type(inputs[0]);
      try {
        return conform(evaluate(inputs[1]), type);
      } catch (const RuntimeError& error) {
        throwCompileError(apply.range(), "{}", error.brief());
      }
    }
    if (apply.callee().kind() == '.' && inputs.size() == 1) {
      Select callee(apply.callee().tree());
      if (isVariable(callee.value(), "torch") && callee.selector().name() == "device") {
        const IValue text = evaluate(inputs[0]);
        if (!text.isString() || !scope_.device) fail(apply);
        const std::optional<Device> device = scope_.device(text.toString());
        if (device) return *device;
        throwCompileError(apply.range(), "{} is no device that is known", text.shortRepr(60));
      }
    }
    fail(apply);
  }

  const ConstantScope& scope_;
};

}  // namespace

IValue evaluateConstant(const Expr& expr, const ConstantScope& scope) {
  constexpr size_t kStackPerLevel = 1024;
  IValue value;
  withStack((expr.tree()->height() + 64) * kStackPerLevel,
            [&] { value = Evaluator(scope).evaluate(expr); });
  return value;
}

}  // namespace wick
