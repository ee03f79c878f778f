#include "frontend/file_scope.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/conform.h"
#include "core/error.h"
#include "frontend/builtin_table.h"
#include "frontend/compile.h"
#include "frontend/decorators.h"
#include "frontend/type_resolver.h"

namespace wick {
namespace {

// T of Final[T]; the expression itself otherwise. No expression for a bare Final.
std::optional<Expr> constantType(const Expr& expr) {
  if (lastName(expr) == "Final") return std::nullopt;
  if (expr.kind() == TK_SUBSCRIPT) {
    Subscript subscript(expr.tree());
    if (lastName(subscript.value()) == "Final" && subscript.subscripts().size() == 1) {
      return subscript.subscripts()[0];
    }
  }
  return expr;
}

bool isImmutable(const IValue& value) {
  if (value.isTuple()) return std::ranges::all_of(value.elements(), isImmutable);
  return value.isNone() || value.isInt() || value.isDouble() || value.isBool() ||
         value.isString() || value.isComplex() || value.isDevice() || value.isEnum();
}

// The strings of ["x", "y"], or the words of "x y" and "x, y".
std::vector<std::string> fieldNames(const Expr& expr) {
  std::vector<std::string> names;
  if (expr.kind() == TK_STRINGLITERAL) {
    std::string word;
    for (char c : StringLiteral(expr.tree()).text() + " ") {
      if (c != ' ' && c != ',') {
        word += c;
      } else if (!word.empty()) {
        names.push_back(std::exchange(word, {}));
      }
    }
    return names;
  }
  auto add = [&](const List<Expr>& elements) {
    for (const Expr& e : elements) {
      if (e.kind() != TK_STRINGLITERAL) throwCompileError(e.range(), "expected a field's name");
      names.push_back(StringLiteral(e.tree()).text());
    }
  };
  if (expr.kind() == TK_LIST_LITERAL) {
    add(ListLiteral(expr.tree()).inputs());
  } else if (expr.kind() == TK_TUPLE_LITERAL) {
    add(TupleLiteral(expr.tree()).inputs());
  } else {
    throwCompileError(expr.range(), "expected the names of the fields");
  }
  return names;
}

// Types by name for who only wants to know whether there is one: what is missing is not compared
// with all names of the file.
class TypeNames : public Resolver {
 public:
  explicit TypeNames(ResolverPtr base) : base_(std::move(base)) {}
  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                               const SourceRange& range) override {
    return base_->resolveValue(name, fn, range);
  }
  TypePtr resolveType(const std::string& name, const SourceRange& range) override {
    return base_->resolveType(name, range);
  }
  void checkBroken(const std::string& name) const override { base_->checkBroken(name); }

 private:
  ResolverPtr base_;
};

}  // namespace

FileScope::FileScope(const std::shared_ptr<CompilationUnit>& unit, std::string prefix)
    : unit_(unit), unit_names_(nativeResolver(unit, prefix)), prefix_(std::move(prefix)) {}

void FileScope::checkNew(const std::string& name, const SourceRange& range) const {
  if (constants_.contains(name) || types_.contains(name) || exceptions_.contains(name) ||
      overloads_.contains(name)) {
    throwCompileError(range, "'{}' is defined twice at the top level", name);
  }
}

void FileScope::assign(const Assign& statement) {
  if (statement.targets().size() != 1 || statement.target().kind() != TK_VAR ||
      !statement.value()) {
    throwCompileError(statement.range(),
                      "a program's top level assigns constants and types, each to one name");
  }
  const std::string name = Var(statement.target().tree()).name().name();
  checkNew(name, statement.range());
  const Expr value = statement.value().get();
  if (value.kind() == TK_APPLY && defineNamedTuple(name, Apply(value.tree()))) return;
  TypeResolver resolver(shared_from_this());
  if (!statement.type()) {
    // Only types are written with brackets; a name may be either.
    try {
      if (value.kind() == TK_SUBSCRIPT || value.kind() == TK_VAR || value.kind() == '.') {
        const bool is_type = value.kind() == TK_SUBSCRIPT;
        TypeResolver by_name(is_type ? ResolverPtr(shared_from_this())
                                     : std::make_shared<TypeNames>(shared_from_this()));
        types_.emplace(name, by_name.typeOf(value));
        return;
      }
    } catch (const CompileError&) {
      if (value.kind() == TK_SUBSCRIPT) throw;
    }
  }
  std::optional<Expr> type =
      statement.type() ? constantType(statement.type().get()) : std::optional<Expr>();
  IValue constant = resolver.constantOfType(value, type ? resolver.typeOf(*type) : types::Any());
  if (!isImmutable(constant)) {
    throwCompileError(value.range(),
                      "'{}' cannot be a constant of the program: a {} can be changed", name,
                      constant.tagName());
  }
  TypePtr held = constant.type();
  constants_.emplace(name, Constant{std::move(constant), std::move(held)});
}

bool FileScope::defineNamedTuple(const std::string& name, const Apply& call) {
  const std::string callee = lastName(call.callee());
  if (callee != "namedtuple" && callee != "NamedTuple") return false;
  if (call.inputs().size() != 2 || !call.attributes().empty() ||
      call.inputs()[0].kind() != TK_STRINGLITERAL) {
    throwCompileError(call.range(), "{} takes a name and the fields", callee);
  }
  std::vector<std::string> fields;
  std::vector<TypePtr> field_types;
  const Expr declared = call.inputs()[1];
  if (callee == "namedtuple") {
    fields = fieldNames(declared);
    field_types.assign(fields.size(), types::Tensor());
  } else {
    TypeResolver resolver(shared_from_this());
    if (declared.kind() != TK_LIST_LITERAL) {
      throwCompileError(declared.range(), "expected a list of (name, type)");
    }
    for (const Expr& field : ListLiteral(declared.tree()).inputs()) {
      const bool is_pair =
          field.kind() == TK_TUPLE_LITERAL && TupleLiteral(field.tree()).inputs().size() == 2;
      if (!is_pair || TupleLiteral(field.tree()).inputs()[0].kind() != TK_STRINGLITERAL) {
        throwCompileError(field.range(), "expected (name, type)");
      }
      const TupleLiteral pair(field.tree());
      fields.push_back(StringLiteral(pair.inputs()[0].tree()).text());
      field_types.push_back(resolver.typeOf(pair.inputs()[1]));
    }
  }
  auto unit = unit_.lock();
  WICK_ASSERT(unit != nullptr, "the unit is gone");
  const std::string qualified = prefix_ + name;
  unit->registerType(
      qualified, std::make_shared<const TupleType>(qualified, std::move(fields),
                                                   std::move(field_types), std::vector<IValue>()));
  return true;
}

void FileScope::defineFunctions(const std::vector<Def>& definitions, const ResolverPtr& resolver) {
  auto unit = unit_.lock();
  WICK_ASSERT(unit != nullptr, "the unit is gone");
  std::string prefix = prefix_;
  prefix.pop_back();
  const auto define = [&](const Def& def) {
    return wick::defineFunctions(*unit, prefix, {def}, resolver).at(0);
  };
  std::map<std::string, std::vector<Def>> declared;
  for (const Def& def : definitions) {
    const std::string name = def.name().name();
    if (hasDecorator(def, "_overload")) {
      declared[name].push_back(def);
      continue;
    }
    auto overloads = declared.find(name);
    if (overloads == declared.end()) {
      define(hasDecorator(def, "unused") ? unusedFunction(def) : def);
      continue;
    }
    checkNew(name, def.range());
    std::vector<Function*>& functions = overloads_[name];
    for (const Def& overload : overloads->second) {
      const std::string own_name = name + "__" + std::to_string(functions.size());
      functions.push_back(define(def.withDecl(overload.decl()).withName(own_name)));
    }
    declared.erase(overloads);
  }
  for (const auto& [name, overloads] : declared) {
    throwCompileError(overloads[0].range(), "the overloads of '{}' have no implementation", name);
  }
}

bool FileScope::defineException(const ClassDef& definition) {
  const std::string name = definition.name().name();
  for (const Expr& base : definition.bases()) {
    const std::string of = lastName(base);
    if (base.kind() != TK_VAR || (!isExceptionName(of) && !exceptions_.contains(of))) continue;
    checkNew(name, definition.range());
    exceptions_.emplace(name, prefix_ + name);
    return true;
  }
  return false;
}

void FileScope::markBroken(const std::string& class_name, const CompileError& error) {
  broken_classes_.emplace(class_name, error);
}

void FileScope::markBroken(const Broken& statement) {
  for (const Ident& name : statement.names()) broken_names_.emplace(name.name(), statement);
  if (statement.names().empty()) broken_nameless_.push_back({statement, ""});
}

void FileScope::checkBroken(const std::string& name) const {
  for (const auto& [broken, statement] : broken_names_) {
    // What should have ended the name may be what is missing.
    if (broken.starts_with(name)) statement.raise();
  }
  for (Nameless& nameless : broken_nameless_) {
    if (nameless.name.empty()) nameless.name = name;
    if (nameless.name == name) nameless.statement.raise();
  }
}

SugaredValuePtr FileScope::resolveValue(const std::string& name, GraphFunction& fn,
                                        const SourceRange& range) {
  if (auto it = broken_classes_.find(name); it != broken_classes_.end()) throw it->second;
  if (auto it = constants_.find(name); it != constants_.end()) {
    const auto& [value, type] = it->second;
    return std::make_shared<SimpleValue>(fn.graph()->insertConstant(value, type));
  }
  if (auto it = exceptions_.find(name); it != exceptions_.end()) {
    return std::make_shared<ExceptionValue>(it->second);
  }
  if (auto it = overloads_.find(name); it != overloads_.end()) {
    return std::make_shared<FunctionValue>(it->second);
  }
  if (auto it = types_.find(name); it != types_.end()) {
    if (SugaredValuePtr value = sugaredType(it->second)) return value;
  }
  return unit_names_->resolveValue(name, fn, range);
}

TypePtr FileScope::resolveType(const std::string& name, const SourceRange& range) {
  if (auto it = broken_classes_.find(name); it != broken_classes_.end()) throw it->second;
  if (auto it = types_.find(name); it != types_.end()) return it->second;
  return unit_names_->resolveType(name, range);
}

std::set<std::string> FileScope::knownNames() const {
  std::set<std::string> names = unit_names_->knownNames();
  for (const auto& [name, value] : constants_) names.insert(name);
  for (const auto& [name, type] : types_) names.insert(name);
  for (const auto& [name, functions] : overloads_) names.insert(name);
  for (const auto& [name, qualified] : exceptions_) names.insert(name);
  return names;
}

}  // namespace wick
