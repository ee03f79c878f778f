#include "frontend/magic_methods.h"

#include "frontend/lexer.h"
#include "frontend/schema_matching.h"

namespace wick {

namespace {

bool isObject(const TypePtr& type) {
  return type->kind() == TypeKind::Class || type->kind() == TypeKind::Interface;
}

}  // namespace

Value* emitMagic(const SourceRange& range, GraphFunction& fn, const std::string& method,
                 Symbol fallback, const std::vector<NamedValue>& args) {
  if (!args.empty() && isObject(args[0].type())) {
    std::vector<NamedValue> rest(args.begin() + 1, args.end());
    return SimpleValue(args[0].value)
        .attr(range, fn, method)
        ->call(range, fn, std::move(rest), {}, 1)
        ->asValue(range, fn);
  }
  return emitBuiltinCall(range, *fn.graph(), fallback, args);
}

SugaredValuePtr MagicFunction::call(const SourceRange& range, GraphFunction& fn,
                                    std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                    size_t num_binders) {
  if (!args.empty() && isObject(args[0].type())) {
    std::vector<NamedValue> rest(args.begin() + 1, args.end());
    return SimpleValue(args[0].value)
        .attr(range, fn, method_)
        ->call(range, fn, std::move(rest), std::move(kwargs), num_binders);
  }
  return fallback_->call(range, fn, std::move(args), std::move(kwargs), num_binders);
}

const BinaryOperator* binaryOperator(int op) {
  static const BinaryOperator kOperators[] = {
      {'+', "add", "__add__"},
      {'-', "sub", "__sub__"},
      {'*', "mul", "__mul__"},
      {'/', "div", "__truediv__"},
      {'%', "remainder", "__mod__"},
      {'@', "matmul", "__matmul__"},
      {'&', "__and__", "__and__"},
      {'|', "__or__", "__or__"},
      {'^', "__xor__", "__xor__"},
      {'<', "lt", "__lt__"},
      {'>', "gt", "__gt__"},
      {TK_LE, "le", "__le__"},
      {TK_GE, "ge", "__ge__"},
      {TK_EQ, "eq", "__eq__"},
      {TK_NE, "ne", "__ne__"},
      {TK_POW, "pow", "__pow__"},
      {TK_FLOOR_DIV, "floordiv", "__floordiv__"},
      {TK_LSHIFT, "__lshift__", "__lshift__"},
      {TK_RSHIFT, "__rshift__", "__rshift__"},
      {TK_IN, "__contains__", "__contains__"},
      {TK_NOTIN, "__contains__", "__contains__"},
      {TK_IS, "__is__", nullptr},
      {TK_ISNOT, "__isnot__", nullptr},
  };
  for (const BinaryOperator& candidate : kOperators) {
    if (candidate.op == op) return &candidate;
  }
  return nullptr;
}

}  // namespace wick
