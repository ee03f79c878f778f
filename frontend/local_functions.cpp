#include "frontend/local_functions.h"

#include "core/error.h"
#include "frontend/ir_emitter.h"

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

void GenericScope::add(const Def& def) {
  const std::string name = def.name().name();
  if (!functions_.emplace(name, def).second) {
    throwCompileError(def.range(), "the function '{}' is defined twice", name);
  }
}

SugaredValuePtr GenericScope::resolveValue(const std::string& name, GraphFunction& fn,
                                           const SourceRange& range) {
  if (auto it = functions_.find(name); it != functions_.end()) {
    return std::make_shared<LocalFunction>(name, it->second.tree(), shared_from_this(), nullptr);
  }
  return base_->resolveValue(name, fn, range);
}

}  // namespace wick
