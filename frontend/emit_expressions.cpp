// Expressions: names, operators, literals of single values, arguments.
#include <fmt/format.h>

#include <complex>
#include <optional>

#include "core/error.h"
#include "frontend/class_definitions.h"
#include "frontend/ir_emitter.h"
#include "frontend/magic_methods.h"

namespace wick {

Value* Emitter::emitExpr(const Expr& expr, const TypePtr& type_hint) {
  RangeGuard at(&graph_, expr.range());
  Value* value = emitSugared(expr, 1, type_hint)->asValue(expr.range(), fn_);
  // Any is the one type that branches do not unify to by themselves.
  if (type_hint && type_hint->kind() == TypeKind::Any && value->type()->kind() != TypeKind::Any) {
    return uncheckedCast(value, type_hint);
  }
  return value;
}

SugaredValuePtr Emitter::emitSugared(const Expr& expr, size_t num_binders,
                                     const TypePtr& type_hint) {
  RangeGuard at(&graph_, expr.range());
  switch (expr.kind()) {
    case TK_VAR:
      return env_->get(expr.range(), Var(expr.tree()).name().name());
    case TK_LAMBDA: {
      Lambda lambda(expr.tree());
      return makeLocalFunction("<lambda>", expr.tree(), lambda.decl());
    }
    case '.': {
      Select select(expr.tree());
      return emitMember(emitSugared(select.value()), expr.range(), select.selector().name());
    }
    case TK_APPLY:
      return emitApply(Apply(expr.tree()), num_binders, type_hint);
    case TK_SUBSCRIPT:
      return emitSubscript(Subscript(expr.tree()), type_hint);
    default:
      return simple(emitSimple(expr, type_hint));
  }
}

SugaredValuePtr Emitter::emitMember(const SugaredValuePtr& object, const SourceRange& range,
                                    const std::string& name) {
  try {
    return object->attr(range, fn_, name);
  } catch (const MissingMember& error) {
    if (!resolver_) throw;
    throw error.among(resolver_->functionsOf(error.className()));
  }
}

Value* Emitter::emitSimple(const Expr& expr, const TypePtr& type_hint) {
  switch (expr.kind()) {
    case TK_CONST:
      return emitConst(Const(expr.tree()));
    case TK_TRUE:
      return constant(IValue(true));
    case TK_FALSE:
      return constant(IValue(false));
    case TK_NONE:
      return emitNone(type_hint);
    case TK_STRINGLITERAL:
      return constant(IValue(StringLiteral(expr.tree()).text()));
    case TK_JOINED_STR:
      return emitJoinedStr(JoinedStr(expr.tree()));
    case TK_IF_EXPR:
      return emitTernary(TernaryIf(expr.tree()), type_hint);
    case TK_LIST_LITERAL:
      return emitListLiteral(ListLiteral(expr.tree()), type_hint);
    case TK_TUPLE_LITERAL:
      return emitTupleLiteral(TupleLiteral(expr.tree()), type_hint);
    case TK_DICT_LITERAL:
      return emitDictLiteral(DictLiteral(expr.tree()), type_hint);
    case TK_LIST_COMP:
      return emitListComp(ListComp(expr.tree()), type_hint);
    case TK_DICT_COMP:
      return emitDictComp(DictComp(expr.tree()), type_hint);
    case TK_AND:
    case TK_OR:
    case TK_NOT:
    case TK_IS:
    case TK_ISNOT:
    case TK_COMPARE_CHAIN:
      return emitCond(expr).value;
    case TK_UNARY_MINUS:
    case TK_UNARY_PLUS:
    case '~':
      return emitUnary(UnaryOp(expr.tree()));
    case TK_STARRED:
      throwCompileError(expr.range(),
                        "an unpacked value can only stand among arguments or elements");
    case TK_DOTS:
      throwCompileError(expr.range(), "'...' can only stand in a subscript");
    default:
      if (BinOp::isBinOp(expr.kind())) return emitBinary(BinOp(expr.tree()));
      throwCompileError(expr.range(), "this expression is not supported: {}",
                        kindToString(expr.kind()));
  }
}

Value* Emitter::emitConst(const Const& expr) {
  if (expr.isInt()) return constant(IValue(expr.asInt()));
  if (expr.isComplex()) return constant(IValue(expr.asComplex()));
  return constant(IValue(expr.asFloat()));
}

Value* Emitter::emitNone(const TypePtr&) {
  return graph_.insertConstant(IValue(), types::None());
}

Value* Emitter::emitUnary(const UnaryOp& expr) {
  Expr operand = expr.operand();
  if (operand.kind() == TK_CONST && expr.kind() != '~') {
    bool negate = expr.kind() == TK_UNARY_MINUS;
    Const number(operand.tree());
    if (number.isInt()) return constant(IValue(number.asInt(negate)));
    if (number.isFloat()) return constant(IValue(negate ? -number.asFloat() : number.asFloat()));
    return constant(IValue(negate ? -number.asComplex() : number.asComplex()));
  }
  Value* value = emitExpr(operand);
  if (value->type()->kind() == TypeKind::Bool) value = asInt(expr.range(), value);
  NamedValue arg(operand.range(), value);
  switch (expr.kind()) {
    case TK_UNARY_MINUS:
      return emitMagic(expr.range(), fn_, "__neg__", aten::neg, {arg});
    case '~':
      return emitMagic(expr.range(), fn_, "__invert__", Symbol::aten("bitwise_not"), {arg});
    default:
      if (value->type()->kind() == TypeKind::Class) {
        return emitMagic(expr.range(), fn_, "__pos__", Symbol::aten("positive"), {arg});
      }
      if (!value->type()->isSubtypeOf(*types::Number()) &&
          value->type()->kind() != TypeKind::Tensor) {
        throwCompileError(expr.range(), "unary plus is not defined for {}",
                          value->type()->annotation());
      }
      return value;
  }
}

namespace {

// Whether a boolean operand means the number 0 or 1, as it does in Python beside another number. The bitwise
// operators make a boolean of two.
bool takesBoolsAsInts(int op, const TypePtr& left, const TypePtr& right) {
  const auto isBool = [](const TypePtr& t) { return t->kind() == TypeKind::Bool; };
  const auto isNumber = [](const TypePtr& t) { return t->isSubtypeOf(*types::Number()); };
  const bool bools = isBool(left) || isBool(right);
  if (!bools || !(isBool(left) || isNumber(left)) || !(isBool(right) || isNumber(right)))
    return false;
  switch (op) {
    case '&':
    case '|':
    case '^':
      return !(isBool(left) && isBool(right));
    case '+':
    case '-':
    case '*':
    case '/':
    case '%':
    case '<':
    case '>':
    case TK_LE:
    case TK_GE:
    case TK_POW:
    case TK_FLOOR_DIV:
    case TK_LSHIFT:
    case TK_RSHIFT:
      return true;
    default:
      return false;
  }
}

// "2.5+1.j" is one number, as it was when it was printed.
std::optional<std::complex<double>> complexLiteral(int op, const Value* lhs, const Value* rhs) {
  if (op != '+' && op != '-') return std::nullopt;
  const std::optional<IValue> left = constantOf(lhs), right = constantOf(rhs);
  if (!left || !right || !right->isComplex() || right->toComplex().real() != 0) return std::nullopt;
  if (!left->isDouble() && !left->isInt()) return std::nullopt;
  const double real = left->isDouble() ? left->toDouble() : static_cast<double>(left->toInt());
  const double imaginary = right->toComplex().imag();
  if (op == '-' && imaginary == 0) return std::nullopt;  // whose sign subtraction loses
  return std::complex<double>(real, op == '+' ? imaginary : -imaginary);
}

}  // namespace

Value* Emitter::emitBinary(const BinOp& expr) {
  Value* lhs = emitExpr(expr.lhs());
  if (expr.kind() == TK_IN || expr.kind() == TK_NOTIN) {
    SugaredValuePtr container = emitSugared(expr.rhs());
    if (auto* range = dynamic_cast<RangeValue*>(container.get())) {
      Value* in = range->contains(expr.range(), fn_, lhs);
      return expr.kind() == TK_IN ? in : builtin(expr.range(), aten::__not__, {in});
    }
    Value* rhs = container->asValue(expr.rhs().range(), fn_);
    return emitBinary(expr.range(), expr.kind(), NamedValue(expr.lhs().range(), lhs),
                      NamedValue(expr.rhs().range(), rhs));
  }
  Value* rhs = emitExpr(expr.rhs());
  if (std::optional<std::complex<double>> number = complexLiteral(expr.kind(), lhs, rhs)) {
    return graph_.insertConstant(IValue(*number));
  }
  return emitBinary(expr.range(), expr.kind(), NamedValue(expr.lhs().range(), lhs),
                    NamedValue(expr.rhs().range(), rhs));
}

Value* Emitter::emitBinary(const SourceRange& range, int op, const NamedValue& lhs,
                           const NamedValue& rhs) {
  const BinaryOperator* found = binaryOperator(op);
  if (!found) throwCompileError(range, "the operator {} is not supported", kindToString(op));
  TypeKind left = lhs.type()->kind();
  TypeKind right = rhs.type()->kind();
  if (op == '+' && left == TypeKind::Tuple && right == TypeKind::Tuple) {
    return emitTupleAdd(lhs.value, rhs.value);
  }
  if (op == '%' && left == TypeKind::String) {
    Node* n = graph_.create(Symbol::aten("percentFormat"), {lhs.value, rhs.value});
    n->output()->setType(types::String());
    return graph_.insertNode(n)->output();
  }
  if (Value* compared = emitValueComparison(range, op, lhs.value, rhs.value)) return compared;
  if (takesBoolsAsInts(op, lhs.type(), rhs.type())) {
    const auto number = [&](const NamedValue& v) {
      return v.type()->kind() == TypeKind::Bool ? NamedValue(v.range, asInt(range, v.value)) : v;
    };
    return emitBinary(range, op, number(lhs), number(rhs));
  }
  if (op == '|' && left == TypeKind::Dict && sameType(lhs.type(), rhs.type())) {
    Value* merged = builtin(range, Symbol::aten("copy"), {lhs.value});
    builtin(range, Symbol::aten("update"), {merged, rhs.value});
    return merged;
  }
  if (op == TK_IN || op == TK_NOTIN) {
    // The container is asked, so it comes first.
    Value* in = emitMagic(range, fn_, found->method, aten::__contains__, {rhs, lhs});
    return op == TK_IN ? in : builtin(range, aten::__not__, {emitToBool(range, in)});
  }
  Symbol name = Symbol::aten(found->name);
  // The floor division of tensors has a name of its own. A number divided by a tensor is a number,
  // as in PyTorch.
  if (op == TK_FLOOR_DIV && left == TypeKind::Tensor) {
    name = Symbol::aten("floor_divide");
  }
  if (!found->method) return builtin(range, name, {lhs.value, rhs.value});
  return emitMagic(range, fn_, found->method, name, {lhs, rhs});
}

Value* Emitter::asInt(const SourceRange& range, Value* flag) {
  return builtin(range, Symbol::aten("Int"), {flag});
}

Value* Emitter::emitTupleAdd(Value* lhs, Value* rhs) {
  std::vector<Value*> elements;
  for (Value* tuple : {lhs, rhs}) {
    Node* unpacked = graph_.insertNode(graph_.createTupleUnpack(tuple));
    elements.insert(elements.end(), unpacked->outputs().begin(), unpacked->outputs().end());
  }
  return graph_.insertNode(graph_.createTuple(elements))->output();
}

// The elements of *values among arguments or elements: of a tuple, or of a list that is written
// out.
std::vector<SugaredValuePtr> Emitter::unpackStarred(const Expr& expr) {
  SugaredValuePtr value = emitSugared(expr);
  return value->asTuple(expr.range(), fn_, literalSize(value));
}

// How many elements a list literal has that nothing can have changed yet.
std::optional<size_t> Emitter::literalSize(const SugaredValuePtr& value) {
  Value* list = asSimple(value);
  if (!list || list->type()->kind() != TypeKind::List) return std::nullopt;
  const Node* n = list->node();
  if (n->kind() != prim::ListConstruct || n->output()->hasUses()) return std::nullopt;
  return n->inputs().size();
}

std::vector<NamedValue> Emitter::emitArguments(const List<Expr>& inputs) {
  std::vector<NamedValue> out;
  for (const Expr& e : inputs) {
    if (e.kind() == TK_STARRED) {
      Expr unpacked = Starred(e.tree()).expr();
      for (const SugaredValuePtr& v : unpackStarred(unpacked)) {
        out.emplace_back(unpacked.range(), v->asValue(unpacked.range(), fn_));
      }
    } else {
      out.emplace_back(e.range(), emitExpr(e));
    }
  }
  return out;
}

std::vector<Value*> Emitter::emitValues(const List<Expr>& inputs, const TypePtr& type_hint) {
  std::vector<Value*> out;
  for (const Expr& e : inputs) {
    if (e.kind() == TK_STARRED) {
      Expr unpacked = Starred(e.tree()).expr();
      for (const SugaredValuePtr& v : unpackStarred(unpacked)) {
        out.push_back(v->asValue(unpacked.range(), fn_));
      }
    } else {
      out.push_back(emitExpr(e, type_hint));
    }
  }
  return out;
}

std::vector<NamedValue> Emitter::emitKeywords(const List<Attribute>& attributes) {
  std::vector<NamedValue> out;
  for (const Attribute& a : attributes) {
    out.emplace_back(a.range(), a.name().name(), emitExpr(a.value()));
  }
  return out;
}

}  // namespace wick
