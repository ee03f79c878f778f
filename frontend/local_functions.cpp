#include "frontend/local_functions.h"

#include <algorithm>

#include "core/error.h"
#include "frontend/ir_emitter.h"
#include "frontend/type_resolver.h"

namespace wick {

Decl LocalFunction::decl() const {
  return tree_->kind() == TK_LAMBDA ? Lambda(tree_).decl() : Def(tree_).decl();
}

Value* LocalFunction::asValue(const SourceRange& range, GraphFunction&) {
  throwCompileError(range,
                    "the {} can be called and handed to a function that is compiled with it, but "
                    "not stored, returned or given to a function that does not declare the "
                    "parameter as Callable",
                    kind());
}

SugaredValuePtr LocalFunction::call(const SourceRange& range, GraphFunction&,
                                    std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                    size_t) {
  if (!emitter_) throwCompileError(range, "the {} cannot be called from here", kind());
  std::vector<Emitter::Argument> arguments;
  for (const std::vector<NamedValue>* values : {&args, &kwargs}) {
    for (const NamedValue& v : *values) {
      arguments.push_back({v.range, v.name, std::make_shared<SimpleValue>(v.value)});
    }
  }
  return emitter_->callLocal(range, *this, arguments);
}

bool isCallableType(const Expr& type) {
  switch (type.kind()) {
    case TK_VAR:
      return Var(type.tree()).name().name() == "Callable";
    case '.':
      return Select(type.tree()).selector().name() == "Callable";
    case TK_SUBSCRIPT:
      return isCallableType(Subscript(type.tree()).value());
    default:
      return false;
  }
}

bool isGenericFunction(const Def& def) {
  for (const Param& param : def.decl().params()) {
    if (param.type() && isCallableType(param.type().get())) return true;
  }
  return false;
}

namespace {

// What a constant may be made of: nothing that could change or be changed.
void checkConstant(const Expr& expr) {
  switch (expr.kind()) {
    case TK_CONST:
    case TK_TRUE:
    case TK_FALSE:
    case TK_NONE:
    case TK_STRINGLITERAL:
    case TK_VAR:
      return;
    case TK_SUBSCRIPT:  // List[int], PAIR[0]
      return checkConstant(Subscript(expr.tree()).value());
    case TK_UNARY_MINUS:
    case TK_UNARY_PLUS:
    case TK_NOT:
    case '~':
      return checkConstant(UnaryOp(expr.tree()).operand());
    case '.':
      return checkConstant(Select(expr.tree()).value());
    case TK_TUPLE_LITERAL:
      for (const Expr& e : TupleLiteral(expr.tree()).inputs()) checkConstant(e);
      return;
    case TK_APPLY: {
      // float('inf'), math.sqrt(2), torch.device('cpu'), but nothing that makes an object.
      Apply apply(expr.tree());
      Expr callee = apply.callee();
      static const char* const kPure[] = {"int", "float", "bool", "str", "complex", "abs",
                                          "min", "max",   "pow",  "len", "round",   "tuple"};
      bool pure = callee.kind() == TK_VAR &&
                  std::find(std::begin(kPure), std::end(kPure), Var(callee.tree()).name().name()) !=
                      std::end(kPure);
      if (callee.kind() == '.') {
        Select select(callee.tree());
        pure =
            select.selector().name() == "device" ||
            (select.value().kind() == TK_VAR && Var(select.value().tree()).name().name() == "math");
      }
      if (!pure) break;
      for (const Expr& e : apply.inputs()) checkConstant(e);
      return;
    }
    default:
      if (BinOp::isBinOp(expr.kind())) {
        checkConstant(BinOp(expr.tree()).lhs());
        checkConstant(BinOp(expr.tree()).rhs());
        return;
      }
      break;
  }
  throwCompileError(expr.range(),
                    "a global variable must be a constant number, string, bool, None or tuple of "
                    "these: programs have no global state");
}

}  // namespace

void FileScope::addConstant(const std::string& name, const Expr& value) {
  checkConstant(value);
  if (!constants_.emplace(name, Constant{value}).second) {
    throwCompileError(value.range(), "the global constant '{}' is assigned twice", name);
  }
}

void FileScope::addGeneric(const Def& def) {
  const std::string name = def.name().name();
  if (!generics_.emplace(name, def).second) {
    throwCompileError(def.range(), "the function '{}' is defined twice", name);
  }
}

SugaredValuePtr FileScope::resolveValue(const std::string& name, GraphFunction& fn,
                                        const SourceRange& range) {
  if (auto it = constants_.find(name); it != constants_.end()) {
    Expr value = it->second.value;
    // An alias of a type stands for it.
    if (value.kind() == TK_SUBSCRIPT || value.kind() == TK_VAR) {
      if (TypePtr type = resolveType(name, range)) return sugaredType(type);
    }
    return std::make_shared<GlobalConstant>(name, value, shared_from_this(),
                                            &it->second.being_compiled);
  }
  if (auto it = generics_.find(name); it != generics_.end()) {
    return std::make_shared<LocalFunction>(name, it->second.tree(), shared_from_this(), nullptr);
  }
  return base_->resolveValue(name, fn, range);
}

TypePtr FileScope::resolveType(const std::string& name, const SourceRange& range) {
  auto it = constants_.find(name);
  if (it == constants_.end()) return base_->resolveType(name, range);
  Constant& alias = it->second;
  if (alias.being_compiled ||
      (alias.value.kind() != TK_SUBSCRIPT && alias.value.kind() != TK_VAR)) {
    return nullptr;
  }
  alias.being_compiled = true;
  TypePtr type;
  try {
    type = TypeResolver(shared_from_this()).typeOf(alias.value);
  } catch (const CompileError&) {
    // A value and no type: the caller says so.
  }
  alias.being_compiled = false;
  return type;
}

}  // namespace wick
